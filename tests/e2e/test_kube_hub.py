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
from tests.support.hypershift_player import Kubectl, eventually
from tests.support.kube_site import KubeSite, kube_site

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

ORDERS = "clusterorders.osac.openshift.io"
ROAD_SECONDS = 120  # from the call to the last trace, where HyperShift takes no time


@pytest.fixture(scope="module")
def site(module_home: Path) -> Iterator[KubeSite]:
    """For all tests here; each registers the hub and takes it away again."""
    words = ("--pace", "instant", "--answer", f"127.0.0.1:{free_port()}")
    with kube_site(module_home, *words) as site:
        yield site


def test_an_order_on_a_kubernetes_hub_from_the_call_to_the_last_trace(site: KubeSite) -> None:
    site.register("Agent")
    site.add_agents()
    began = time.monotonic()

    site.type(
        *("create", "cluster", "web-1", "--tenant", "acme", "--template", "ocp_4_17_small"),
        *("--node-set", "compute=2", "--pull-secret-file", str(site.pull_secret)),
    )
    (order,) = site.kubectl.list(ORDERS)
    assert order["metadata"]["namespace"] == "boatyard-acme"
    assert order["status"]["phase"] == "Ready"
    assert "pullSecret" not in order["spec"]
    (hosted,) = site.kubectl.list("hostedclusters")
    assert hosted["metadata"]["name"] == order["metadata"]["name"]
    assert nodes(site) == 2
    assert site.type("password", "web-1", "-o", "-").strip() == kubeadmin_password(site, hosted)

    site.type("scale", "cluster", "web-1", "compute=4")
    assert nodes(site) == 4
    (pool,) = site.kubectl.list("nodepools")
    assert pool["spec"]["replicas"] == 4
    site.type("scale", "cluster", "web-1", "compute=1")
    assert nodes(site) == 1
    assert len(site.left()["agents in use"]) == 1

    receipt = site.type("delete", "cluster", "web-1")
    assert "0 left" in receipt or "nothing left" in receipt, receipt
    eventually(lambda: not site.left(), why=lambda: f"{site.left()} {site.logs()}")
    took = time.monotonic() - began
    print(f"{took:.0f} s from the call to the last trace")
    assert took < ROAD_SECONDS
    site.unregister()


def test_machines_that_the_hub_makes_itself_take_no_hosts(site: KubeSite) -> None:
    site.register("KubeVirt")
    site.type(
        *("create", "cluster", "web-1", "--tenant", "acme", "--template", "ocp_4_17_small"),
        *("--node-set", "compute=2", "--pull-secret-file", str(site.pull_secret)),
    )
    assert nodes(site) == 2
    pools = {one["spec"]["pool"] for one in site.kubectl.list("claims.boatyard.io")}
    assert pools
    assert not [pool for pool in pools if pool.endswith("/hosts")]
    site.type("scale", "cluster", "web-1", "compute=1")
    assert nodes(site) == 1
    site.type("delete", "cluster", "web-1")
    eventually(lambda: not site.left(), why=lambda: f"{site.left()} {site.logs()}")
    site.unregister()


def kubeadmin_password(site: KubeSite, hosted: dict[str, Any]) -> str:
    """As HyperShift has it."""
    name = hosted["status"]["kubeadminPassword"]["name"]
    secret = site.kubectl.get("secret", name, hosted["metadata"]["namespace"])
    assert secret is not None
    return b64decode(secret["data"]["password"]).decode()


def nodes(site: KubeSite) -> int:
    """As the tenant sees them, with the kubeconfig that was asked of the hub."""
    path = site.home / "web-1.kubeconfig"
    site.type("kubeconfig", "web-1", "-o", str(path))
    said = Kubectl(site.plane, path).run("get", "--raw", "/api/v1/nodes").stdout
    return len(json.loads(said)["items"])
