"""One real API server for all tests here; each test has hubs of its own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import hub_plane
from tests.support.kube_hub.fault_environment import FaultyHubEnvironment


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with hub_plane() as plane:
        yield plane


@pytest.fixture
async def hub(plane: ControlPlane) -> AsyncIterator[FaultyHubEnvironment]:
    async with FaultyHubEnvironment.open_faulty(plane) as hub:
        yield hub
