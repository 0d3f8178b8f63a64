"""One real API server with our CRDs and an audit log for all tests here; each test has a hub of its own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.audit import audit_flags
from tests.support.control_plane import ControlPlane
from tests.support.desks import KubeDesk
from tests.support.hub_plane import hub_plane
from tests.support.operating import OperatedHub


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with hub_plane(api_flags=audit_flags) as plane:
        yield plane


@pytest.fixture
async def desk(plane: ControlPlane) -> AsyncIterator[KubeDesk]:
    async with KubeDesk.open(plane) as desk:
        yield desk


@pytest.fixture
async def hub(plane: ControlPlane) -> AsyncIterator[OperatedHub]:
    async with OperatedHub.open(plane) as hub:
        yield hub
