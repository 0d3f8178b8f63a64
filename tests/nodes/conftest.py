"""One real control plane for all tests here, quick to miss a node; each test has nodes and a namespace of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.node_field import Field, field_on

# Simulated nodes have no kubelet to call: without an address to call it under, `kubectl logs` says so at once.
API_FLAGS = ("--kubelet-preferred-address-types=ExternalIP",)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with control_plane(api_flags=API_FLAGS) as plane:
        plane.start_controller_manager(
            "--node-monitor-grace-period=10s", "--node-monitor-period=1s"
        )
        plane.start_scheduler("--kube-api-qps=200", "--kube-api-burst=400")
        yield plane


@pytest.fixture
async def field(plane: ControlPlane) -> AsyncIterator[Field]:
    async with field_on(plane) as field:
        yield field


@pytest.fixture
async def bare_field() -> AsyncIterator[Field]:
    """On an API server of the test's own, without controllers, which it may break."""
    with control_plane() as plane:
        async with field_on(plane, managed=False) as field:
            yield field
