"""An order on a real Kubernetes hub, from the API call to an empty hub, as people see it: commands and kubectl."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.control_plane import free_port
from tests.support.kube_hub.fake_hypershift import Kubectl, eventually
from tests.support.kube_hub.processes import KubeHubProcesses, kube_hub_processes

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

ORDERS = "clusterorders.osac.openshift.io"
ROAD_SECONDS = 120  # from the call to the last trace, where HyperShift takes no time


@pytest.fixture(scope="module")
def hub_processes(module_home: Path) -> Iterator[KubeHubProcesses]:
    """For all tests here; each registers the hub and takes it away again."""
    words = ("--pace", "instant", "--answer", f"127.0.0.1:{free_port()}")
    with kube_hub_processes(module_home, *words) as hub_processes:
        yield hub_processes


def test_an_order_on_a_kubernetes_hub_from_the_call_to_the_last_trace(
    hub_processes: KubeHubProcesses,
) -> None:
    hub_processes.register("Agent")
    hub_processes.add_agents()
    began = time.monotonic()

    hub_processes.type(
        *("create", "cluster", "web-1", "--tenant", "acme", "--template", "ocp_4_17_small"),
        *("--node-set", "compute=2", "--pull-secret-file", str(hub_processes.pull_secret)),
    )
    (order,) = hub_processes.kubectl.list(ORDERS)
    assert order["metadata"]["namespace"] == "boatyard-acme"
    assert order["status"]["phase"] == "Ready"
    assert "pullSecret" not in order["spec"]
    (hosted,) = hub_processes.kubectl.list("hostedclusters")
    assert hosted["metadata"]["name"] == order["metadata"]["name"]
    assert nodes(hub_processes) == 2
    assert hub_processes.type("password", "web-1", "-o", "-").strip() == kubeadmin_password(
        hub_processes, hosted
    )

    hub_processes.type("scale", "cluster", "web-1", "compute=4")
    assert nodes(hub_processes) == 4
    (pool,) = hub_processes.kubectl.list("nodepools")
    assert pool["spec"]["replicas"] == 4
    hub_processes.type("scale", "cluster", "web-1", "compute=1")
    assert nodes(hub_processes) == 1
    assert len(hub_processes.left()["agents in use"]) == 1

    receipt = hub_processes.type("delete", "cluster", "web-1")
    assert "0 left" in receipt or "nothing left" in receipt, receipt
    eventually(
        lambda: not hub_processes.left(),
        why=lambda: f"{hub_processes.left()} {hub_processes.logs()}",
    )
    took = time.monotonic() - began
    print(f"{took:.0f} s from the call to the last trace")
    assert took < ROAD_SECONDS
    hub_processes.unregister()


def test_machines_that_the_hub_makes_itself_take_no_hosts(hub_processes: KubeHubProcesses) -> None:
    hub_processes.register("KubeVirt")
    hub_processes.type(
        *("create", "cluster", "web-1", "--tenant", "acme", "--template", "ocp_4_17_small"),
        *("--node-set", "compute=2", "--pull-secret-file", str(hub_processes.pull_secret)),
    )
    assert nodes(hub_processes) == 2
    pools = {one["spec"]["pool"] for one in hub_processes.kubectl.list("claims.boatyard.io")}
    assert pools
    assert not [pool for pool in pools if pool.endswith("/hosts")]
    hub_processes.type("scale", "cluster", "web-1", "compute=1")
    assert nodes(hub_processes) == 1
    hub_processes.type("delete", "cluster", "web-1")
    eventually(
        lambda: not hub_processes.left(),
        why=lambda: f"{hub_processes.left()} {hub_processes.logs()}",
    )
    hub_processes.unregister()


def kubeadmin_password(hub_processes: KubeHubProcesses, hosted: dict[str, Any]) -> str:
    """As HyperShift has it."""
    name = hosted["status"]["kubeadminPassword"]["name"]
    secret = hub_processes.kubectl.get("secret", name, hosted["metadata"]["namespace"])
    assert secret is not None
    return b64decode(secret["data"]["password"]).decode()


def nodes(hub_processes: KubeHubProcesses) -> int:
    """As the tenant sees them, with the kubeconfig that was asked of the hub."""
    path = hub_processes.home / "web-1.kubeconfig"
    hub_processes.type("kubeconfig", "web-1", "-o", str(path))
    said = Kubectl(hub_processes.plane, path).run("get", "--raw", "/api/v1/nodes").stdout
    return len(json.loads(said)["items"])
