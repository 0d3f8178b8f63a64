"""One real API server for all tests here; each test has hubs of its own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.fault_lab import FaultHub
from tests.support.hub_plane import hub_plane


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with hub_plane() as plane:
        yield plane


@pytest.fixture
async def hub(plane: ControlPlane) -> AsyncIterator[FaultHub]:
    async with FaultHub.open_faulty(plane) as hub:
        yield hub
