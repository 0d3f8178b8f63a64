"""A tenant on a hub where HyperShift is played: fixtures and words for the tests of the player. See tests/kube."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fake_hypershift import (
    FakeHyperShiftProcess,
    Kubectl,
    condition,
    eventually,
    hypershift_hub,
)
from tests.support.kube_hub.hypershift_manifests import (
    agent,
    hosted_cluster,
    namespace,
    node_pool,
    pull_secret,
)

Object = dict[str, Any]

KUBEVIRT = {"type": "KubeVirt", "kubevirt": {}}
VMS = {
    "type": "KubeVirt",
    "kubevirt": {"rootVolume": {"type": "Persistent", "persistent": {"size": "32Gi"}}},
}
FAULT = "player.boatyard.io/fault"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def played_hub() -> Iterator[ControlPlane]:
    with hypershift_hub() as plane:
        yield plane


@pytest.fixture(scope="session")
def shared_player(played_hub: ControlPlane) -> Iterator[FakeHyperShiftProcess]:
    """The player of all tests that need no player of their own: to start one costs a second of CPU."""
    player = FakeHyperShiftProcess(Kubectl(played_hub).kubeconfig, "--pace", "instant")
    yield player
    player.end()


@pytest.fixture
def kubectl(played_hub: ControlPlane, shared_player: FakeHyperShiftProcess) -> Kubectl:
    """For tests that start a player of their own: nobody plays on the hub."""
    shared_player.end()
    return Kubectl(played_hub)


class HyperShiftTenant:
    """A namespace with a pull secret, and another one with hosts of its own."""

    def __init__(self, kubectl: Kubectl, hosts: int = 4) -> None:
        self.kubectl = kubectl
        self.name = f"t{next(_NUMBERS)}"
        self.hosts = f"{self.name}-hosts"
        kubectl.apply(
            *(namespace(self.name), namespace(self.hosts), pull_secret(self.name)),
            *(agent(f"a{number}", namespace=self.hosts) for number in range(hosts)),
        )

    def order(self, name: str = "c", replicas: int = 2, *, fault: str = "", **spec: Any) -> None:
        """A cluster with one pool `<name>-p`; a fault is on it from the beginning."""
        platform = {"type": "Agent", "agent": {"agentNamespace": self.hosts}}
        pool = {"platform": spec.pop("pool_platform")} if "pool_platform" in spec else {}
        cluster = hosted_cluster(self.name, name, **{"platform": platform, **spec})
        cluster["metadata"]["annotations"] = {FAULT: fault} if fault else {}
        self.kubectl.apply(cluster, node_pool(self.name, f"{name}-p", name, replicas, **pool))

    def cluster(self, name: str = "c") -> Object:
        found = self.kubectl.get("hostedcluster", name, self.name)
        assert found is not None
        return found

    def pool(self, name: str = "c") -> Object:
        found = self.kubectl.get("nodepool", f"{name}-p", self.name)
        assert found is not None
        return found

    def machines(self, name: str = "c") -> list[Object]:
        return self.kubectl.list("machines", f"{self.name}-{name}")

    def agents(self) -> dict[str, str]:
        """Agent → its state."""
        return {
            one["metadata"]["name"]: one["status"]["debugInfo"]["state"]
            for one in self.kubectl.list("agents", self.hosts)
        }

    def plant(self, kind: str, name: str, fault: str, where: str = "") -> None:
        self.kubectl.annotate(kind, name, where or self.name, f"{FAULT}={fault}")

    def free(self, kind: str, name: str, where: str = "") -> None:
        self.kubectl.annotate(kind, name, where or self.name, f"{FAULT}-")

    def wait(self, what: str, name: str, *, where: str = "", seconds: int = 60) -> None:
        """Until a condition is so, as kubectl waits: `Available`, or `Available=false`."""
        kind, _, told = what.partition(":")
        words = ("wait", f"--for=condition={told}", kind, name, f"--timeout={seconds}s")
        self.kubectl.run(*words, "-n", where or self.name)

    def until_ready(self, name: str = "c") -> None:
        self.wait("hostedcluster:Available", name)
        eventually(lambda: is_ready(self.pool(name)), why=lambda: self.pool(name)["status"])

    def scale(self, replicas: int, name: str = "c") -> None:
        self.kubectl.patch("nodepool", f"{name}-p", self.name, {"spec": {"replicas": replicas}})


def is_ready(pool: Object) -> bool:
    """Of what is asked for now, not of what was asked before."""
    told = condition(pool, "Ready")
    return (
        told.get("status") == "True"
        and told.get("observedGeneration") == pool["metadata"]["generation"]
        and pool["status"]["replicas"] == pool["spec"]["replicas"]
    )


@pytest.fixture
def player(shared_player: FakeHyperShiftProcess) -> Iterator[FakeHyperShiftProcess]:
    """It plays at once, and must still play at the end."""
    if not shared_player.runs:
        shared_player.end()
        shared_player.start()
    yield shared_player
    assert shared_player.runs, f"the player ended by itself: {shared_player.said()}"


@pytest.fixture
def tenant(played_hub: ControlPlane, player: FakeHyperShiftProcess) -> HyperShiftTenant:
    return HyperShiftTenant(Kubectl(played_hub))
