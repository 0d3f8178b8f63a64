"""Real nodes need root and some packages; where something is missing, one line says what and how to have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boatyard.assets import DEFAULT_VERSION
from boatyard.platforms.drivers.local import real
from tests.real.cluster import NamespacedCluster
from tests.support.assets import needs_assets


@pytest.fixture(scope="session")
def machine() -> None:
    """Skips where real nodes cannot be had."""
    missing = real.list_missing()
    if missing:
        pytest.skip("real nodes cannot be had here: " + "; ".join(missing))


@pytest.fixture(scope="session")
def programs(machine: None) -> Path:
    """The folder of the Kubernetes programs."""
    return needs_assets().program(DEFAULT_VERSION, "kubelet").parent


@pytest.fixture(scope="module")
def cluster(programs: Path) -> Iterator[NamespacedCluster]:
    """Two nodes, both Ready."""
    cluster = NamespacedCluster(programs, "test1")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
