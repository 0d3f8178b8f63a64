"""One real control plane for all tests here, quick to miss a node; each test has nodes and a namespace of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.real_clusters.simulated_nodes import NodeEnvironment, open_node_environment

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
async def node_environment(plane: ControlPlane) -> AsyncIterator[NodeEnvironment]:
    async with open_node_environment(plane) as node_environment:
        yield node_environment


@pytest.fixture
async def bare_node_environment() -> AsyncIterator[NodeEnvironment]:
    """On an API server of the test's own, without controllers, which it may break."""
    with control_plane() as plane:
        async with open_node_environment(plane, managed=False) as node_environment:
            yield node_environment
