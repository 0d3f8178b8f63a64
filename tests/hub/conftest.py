"""One real API server with our CRDs and an audit log for all tests here; each test has a hub of its own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.contracts.order_books import KubeBookHarness
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import hub_plane
from tests.support.kube_hub.audit import audit_flags
from tests.support.kube_hub.environment import KubeHubEnvironment


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with hub_plane(api_flags=audit_flags) as plane:
        yield plane


@pytest.fixture
async def harness(plane: ControlPlane) -> AsyncIterator[KubeBookHarness]:
    async with KubeBookHarness.open(plane) as harness:
        yield harness


@pytest.fixture
async def hub(plane: ControlPlane) -> AsyncIterator[KubeHubEnvironment]:
    async with KubeHubEnvironment.open(plane) as hub:
        yield hub
