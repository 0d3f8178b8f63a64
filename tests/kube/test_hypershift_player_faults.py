"""Every fault the player can be told to have, seen through kubectl; and what it says when it is told nonsense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kube_hub.fake_hypershift import (
    Kubectl,
    condition,
    conditions,
    eventually,
    playing,
)
from tests.support.kube_hub.hypershift_manifests import RELEASE
from tests.support.kube_hub.hypershift_tenant import HyperShiftTenant, is_ready

Object = dict[str, Any]


def test_blocked(tenant: HyperShiftTenant) -> None:
    tenant.order(fault="blocked=QuotaExceeded")

    tenant.wait("hostedcluster:Available=false", "c")

    eventually(lambda: condition(tenant.cluster(), "Available")["reason"] == "QuotaExceeded")
    assert condition(tenant.cluster(), "InfrastructureReady")["reason"] == "QuotaExceeded"
    tenant.free("hostedcluster", "c")
    tenant.until_ready()


def test_unsupported(tenant: HyperShiftTenant) -> None:
    tenant.order(fault="unsupported=NoNestedVMs")

    tenant.wait("hostedcluster:SupportedHostedCluster=false", "c")

    told = condition(tenant.cluster(), "SupportedHostedCluster")
    assert told["reason"] == "NoNestedVMs"
    assert condition(tenant.cluster(), "Progressing")["reason"] == "Blocked"


def test_degraded_and_down(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()

    tenant.plant("hostedcluster", "c", "degraded")
    tenant.wait("hostedcluster:Degraded", "c")
    assert conditions(tenant.cluster())["Available"] == "True"
    tenant.plant("hostedcluster", "c", "down")
    tenant.wait("hostedcluster:Available=false", "c")
    assert conditions(tenant.cluster())["KubeAPIServerAvailable"] == "False"
    assert conditions(tenant.cluster())["Degraded"] == "False"
    tenant.free("hostedcluster", "c")
    tenant.wait("hostedcluster:Available", "c")


def test_slow(tenant: HyperShiftTenant) -> None:
    tenant.order("slow", fault="slow=3600")
    tenant.order("quick", replicas=1)
    tenant.until_ready("quick")

    assert conditions(tenant.cluster("slow"))["Available"] == "False"
    tenant.plant("hostedcluster", "slow", "slow=0")
    tenant.wait("hostedcluster:Available", "slow")


def test_a_node_that_never_joins(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.plant("nodepool", "c-p", "never-joins")
    # A pool may have its nodes before the fault is planted: the third one has not.
    tenant.scale(3)

    eventually(lambda: tenant.pool()["status"].get("replicas") == 2)
    eventually(lambda: condition(tenant.pool(), "AllNodesHealthy")["reason"] == "WaitingForNodeRef")
    assert condition(tenant.pool(), "Ready")["status"] == "False"
    tenant.free("nodepool", "c-p")
    tenant.until_ready()


def test_another_machine_leaves_than_the_one_named(tenant: HyperShiftTenant) -> None:
    tenant.order(replicas=3)
    tenant.until_ready()
    tenant.plant("nodepool", "c-p", "wrong-machine")
    newest = next(one for one in tenant.machines() if one["spec"]["providerID"] == "agent://a2")
    name = newest["metadata"]["name"]
    tenant.kubectl.annotate(
        "machine", name, f"{tenant.name}-c", "cluster.x-k8s.io/delete-machine=yes"
    )

    tenant.scale(2)

    eventually(lambda: len(tenant.machines()) == 2)
    assert name in {one["metadata"]["name"] for one in tenant.machines()}


def test_a_lost_agent(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()

    tenant.plant("agent", "a0", "lost", tenant.hosts)

    eventually(lambda: condition(tenant.pool(), "Ready")["status"] == "False")
    assert tenant.pool()["status"]["replicas"] == 1
    assert tenant.agents()["a0"] == "disconnected"
    tenant.free("agent", "a0", tenant.hosts)
    eventually(lambda: is_ready(tenant.pool()))


@pytest.mark.parametrize(
    "kind, left",
    [("hostedcluster", "namespace"), ("nodepool", "machines"), ("machine", "machines")],
)
def test_a_deletion_that_is_stuck(tenant: HyperShiftTenant, kind: str, left: str) -> None:
    tenant.order()
    tenant.until_ready()
    home = f"{tenant.name}-c"
    name, where = {"hostedcluster": ("c", ""), "nodepool": ("c-p", "")}.get(
        kind, (tenant.machines()[0]["metadata"]["name"], home)
    )
    tenant.plant(kind, name, "stuck-deletion", where)
    tenant.kubectl.delete("hostedcluster", "c", tenant.name)
    if left == "namespace":
        # All but the control plane goes, and then nothing more.
        eventually(lambda: tenant.kubectl.list("nodepools", tenant.name) == [])
        eventually(lambda: conditions(tenant.cluster())["Available"] == "False")
        assert tenant.kubectl.get("namespace", home) is not None
    else:
        eventually(lambda: {m["status"]["phase"] for m in tenant.machines()} == {"Deleting"})
        eventually(lambda: len(tenant.machines()) == (2 if kind == "nodepool" else 1))
    assert tenant.cluster()["metadata"]["finalizers"] == ["hypershift.openshift.io/finalizer"]

    tenant.free(kind, name, where)

    tenant.kubectl.run(
        "wait", "--for=delete", "hostedcluster/c", "-n", tenant.name, "--timeout=60s"
    )
    assert tenant.kubectl.get("namespace", home) is None


def test_an_upgrade_that_is_stuck(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()
    tenant.wait("hostedcluster:ClusterVersionAvailable", "c")
    tenant.plant("hostedcluster", "c", "stuck-upgrade")
    newer = {"spec": {"release": {"image": f"{RELEASE}:4.19.3-multi"}}}
    tenant.kubectl.patch("hostedcluster", "c", tenant.name, newer)

    tenant.wait("hostedcluster:ClusterVersionSucceeding=false", "c")

    status = tenant.cluster()["status"]
    assert status["version"]["history"][0]["state"] == "Partial"
    assert conditions(tenant.cluster())["Available"] == "True"


def test_a_control_file_is_followed(kubectl: Kubectl, tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("faults: [{kind: HostedCluster, name: 'b*', fault: blocked=NoRoom}]")
    with playing(kubectl.kubeconfig, "--pace", "instant", "--faults", str(faults)) as player:
        tenant = HyperShiftTenant(kubectl)
        tenant.order("blue")
        tenant.order("red")
        tenant.until_ready("red")
        assert condition(tenant.cluster("blue"), "Available")["reason"] == "NoRoom"

        faults.write_text("faults: {nonsense")
        eventually(lambda: "control file not understood" in player.said())
        faults.write_text(json.dumps({"faults": [{"kind": "HostedCluster", "fault": "degraded"}]}))
        tenant.wait("hostedcluster:Available", "blue")
        tenant.wait("hostedcluster:Degraded", "red")
        faults.unlink()
        tenant.wait("hostedcluster:Degraded=false", "red")


def test_a_fault_that_there_is_not_is_told_in_the_log(
    tenant: HyperShiftTenant, player: Any
) -> None:
    tenant.order()
    tenant.plant("hostedcluster", "c", "bloked")

    eventually(lambda: "has no fault 'bloked'" in player.said())
    tenant.until_ready()


@pytest.mark.parametrize(
    "words, why",
    [
        (["--kubeconfig", "none"], "cannot read none"),
        (["--kubeconfig", "KUBECONFIG", "--pace", "hasty"], "no pace 'hasty'"),
        (["--kubeconfig", "KUBECONFIG", "--faults", "FAULTS"], "faults[0].kind is Pod"),
    ],
)
def test_it_says_at_once_what_it_cannot_use(tmp_path: Path, words: list[str], why: str) -> None:
    (tmp_path / "k").write_text(
        "{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u}]}"
    )
    (tmp_path / "f").write_text("faults: [{kind: Pod, fault: lost}]")
    places = {"KUBECONFIG": str(tmp_path / "k"), "FAULTS": str(tmp_path / "f")}
    done = subprocess.run(
        [sys.executable, "-m", "boatyard.app.main", "player", "hypershift"]
        + [places.get(word, word) for word in words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 4
    assert why in done.stderr
