"""The player killed, its API server gone, its watches too old: nothing is lost, and nothing is doubled."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fake_hypershift import (
    FakeHyperShiftProcess,
    Kubectl,
    conditions,
    eventually,
    playing,
)
from tests.support.kube_hub.hypershift_tenant import HyperShiftTenant, is_ready
from tests.support.soak import soak

Object = dict[str, Any]

AGENTS = "agents.agent-install.openshift.io"
KILLS = soak(short=4, long=8)


@contextlib.contextmanager
def watching(kubectl: Kubectl, folder: Path, kind: str, *words: str) -> Iterator[Path]:
    """What `kubectl get --watch` prints meanwhile, in a file."""
    seen = folder / f"{kind}.seen"
    with seen.open("w") as out:
        process = subprocess.Popen(
            [
                str(kubectl.program),
                f"--kubeconfig={kubectl.kubeconfig}",
                *("get", kind, "--watch", *words),
            ],
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield seen
        finally:
            process.kill()
            process.wait(timeout=30)


def test_conditions_are_seen_to_come_one_after_the_other(kubectl: Kubectl, tmp_path: Path) -> None:
    with playing(kubectl.kubeconfig, "--pace", "0.02"):
        tenant = HyperShiftTenant(kubectl)
        with watching(kubectl, tmp_path, "hostedcluster", "-n", tenant.name, "-o=json") as seen:
            tenant.order(replicas=1)
            tenant.wait("hostedcluster:ClusterVersionAvailable", "c", seconds=90)
            eventually(lambda: "ClusterVersionAvailable" in trues(seen)[-1], why=seen.read_text)
        lines = trues(seen)

    order = [
        "ValidConfiguration",
        "InfrastructureReady",
        "EtcdAvailable",
        "KubeAPIServerAvailable",
        "IgnitionEndpointAvailable",
        "Available",
        "ClusterVersionAvailable",
    ]
    first = [next(place for place, line in enumerate(lines) if kind in line) for kind in order]
    assert first == sorted(first)
    assert len(set(first)) == len(first)  # each at a moment of its own


def trues(seen: Path) -> list[set[str]]:
    """The conditions that were True, in each state that was printed so far."""
    text, place, found = seen.read_text(), 0, [set[str]()]
    with contextlib.suppress(json.JSONDecodeError):  # the last one may be half written
        while place < len(text):
            thing, place = json.JSONDecoder().raw_decode(text, place)
            place += len(text[place:]) - len(text[place:].lstrip())
            found.append({kind for kind, status in conditions(thing).items() if status == "True"})
    return found


@pytest.mark.timeout(240)
def test_killed_again_and_again_it_loses_and_doubles_nothing(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    with playing(kubectl.kubeconfig, "--pace", "0.01") as player:
        kill_again_and_again(HyperShiftTenant(kubectl, hosts=7), player, tmp_path)


def kill_again_and_again(
    tenant: HyperShiftTenant, player: FakeHyperShiftProcess, tmp_path: Path
) -> None:
    kubectl = tenant.kubectl
    named = '-o=jsonpath={.metadata.namespace} {.metadata.name}{"\\n"}'
    with watching(kubectl, tmp_path, "machines", "-A", named) as seen:
        tenant.order("c", 3)
        tenant.order("d", 3)
        for number in range(KILLS):
            time.sleep(0.15 + 0.17 * number)  # each time at another moment of their way
            if number == KILLS // 2:  # a machine that was never made could not leave
                eventually(lambda: len(tenant.machines("c")) == 3)
            player.end(signal.SIGKILL)
            if number == KILLS // 2:
                tenant.scale(2)
            player.start()
        tenant.until_ready("c")
        tenant.until_ready("d")
        eventually(lambda: len(tenant.machines("c")) == 2)
        made = set(seen.read_text().splitlines())
    ours = {line for line in made if line.split()[0] in (f"{tenant.name}-c", f"{tenant.name}-d")}
    assert len(ours) == 6  # ever, although one of them has left since
    hosts = {
        machine["spec"]["providerID"].removeprefix("agent://")
        for name in ("c", "d")
        for machine in tenant.machines(name)
    }
    assert len(hosts) == 5
    eventually(
        lambda: {one for one, state in tenant.agents().items() if state != "known-unbound"} == hosts
    )

    for name in ("c", "d"):
        tenant.kubectl.delete("hostedcluster", name, tenant.name)
    for number in range(KILLS // 2):
        time.sleep(0.1 + 0.23 * number)
        player.end(signal.SIGKILL)
        player.start()
    eventually(lambda: kubectl.list("hostedclusters", tenant.name) == [])
    eventually(lambda: set(tenant.agents().values()) == {"known-unbound"})
    assert kubectl.list("nodepools", tenant.name) == []
    homes = {line.split()[0] for line in ours}
    assert not [one for one in kubectl.list("machines") if one["metadata"]["namespace"] in homes]


def test_an_api_server_that_goes_away_is_waited_for(
    kubectl: Kubectl, played_hub: ControlPlane
) -> None:
    plane = played_hub
    with playing(kubectl.kubeconfig, "--pace", "0.01") as player:
        tenant = HyperShiftTenant(kubectl)
        tenant.order()
        tenant.wait("hostedcluster:InfrastructureReady", "c")
        with plane.without("kube-apiserver"):
            eventually(lambda: "Unreachable" in player.said())
        tenant.until_ready()

        # While the player stands still, etcd forgets what it would ask for next: its watches are too old.
        expire(plane, tenant, player)
        tenant.until_ready()
        assert len(tenant.machines()) == 3


def expire(plane: ControlPlane, tenant: HyperShiftTenant, player: FakeHyperShiftProcess) -> None:
    player.pause()
    plane.stop("kube-apiserver")
    plane.start_api()
    tenant.scale(3)
    plane.compact(tenant.pool()["metadata"]["resourceVersion"])
    plane.stop("kube-apiserver")  # its own memory of events goes as well
    plane.start_api()
    player.resume()


def test_a_token_will_do(kubectl: Kubectl, played_hub: ControlPlane, tmp_path: Path) -> None:
    words = ("--clusterrole=cluster-admin", "--serviceaccount=default:player")
    kubectl.run("create", "serviceaccount", "player", "-n", "default")
    kubectl.run("create", "clusterrolebinding", "player", *words)
    token = kubectl.run("create", "token", "player", "-n", "default").stdout.strip()
    (tmp_path / "token").write_text(token)
    config = tmp_path / "token.kubeconfig"
    config.write_text(json.dumps(played_hub.kubeconfig_for({"tokenFile": "token"})))
    with playing(config, "--pace", "instant"):
        tenant = HyperShiftTenant(kubectl)
        tenant.order(replicas=1)
        tenant.until_ready()

    assert is_ready(tenant.pool())


def test_a_user_who_may_nothing_is_told_at_once(played_hub: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "nobody.kubeconfig"
    config.write_text(json.dumps(played_hub.kubeconfig("nobody", groups=())))

    with pytest.raises(AssertionError, match="refuses its user"), playing(config):
        pass


def test_finalizers_labels_and_owners_taken_off_by_hand_come_back(tenant: HyperShiftTenant) -> None:
    tenant.order()
    tenant.until_ready()
    kubectl, home = tenant.kubectl, f"{tenant.name}-c"
    bare = {"metadata": {"finalizers": None, "ownerReferences": None}}
    kubectl.patch("hostedcluster", "c", tenant.name, {"metadata": {"finalizers": None}})
    kubectl.patch("nodepool", "c-p", tenant.name, bare)
    for machine in tenant.machines():
        kubectl.patch("machine", machine["metadata"]["name"], home, bare)
    kubectl.run("label", "namespace", home, "hypershift.openshift.io/hosted-control-plane-")
    kubectl.run("label", "agents", "--all", "agentMachineRef-", "-n", tenant.hosts)

    def whole() -> bool:
        things = [tenant.cluster(), tenant.pool(), *tenant.machines()]
        return all(one["metadata"].get("finalizers") for one in things)

    eventually(whole)
    eventually(lambda: tenant.pool()["metadata"].get("ownerReferences"))
    tenant.until_ready()
    assert len(tenant.machines()) == 2
    kubectl.delete("hostedcluster", "c", tenant.name, wait=True)
    assert kubectl.get("namespace", home) is None
    eventually(lambda: set(tenant.agents().values()) == {"known-unbound"})


def test_a_kind_that_is_not_installed_is_no_trouble_for_the_others(kubectl: Kubectl) -> None:
    """A hub with virtual machines only need not have Agents."""
    with unserved(kubectl, AGENTS), playing(kubectl.kubeconfig, "--pace", "instant"):
        tenant = HyperShiftTenant(kubectl, hosts=0)
        tenant.order(platform={"type": "None"}, pool_platform={"type": "None"})
        tenant.wait("hostedcluster:Available", "c")
        assert conditions(tenant.cluster())["Progressing"] == "False"


@contextlib.contextmanager
def unserved(kubectl: Kubectl, crd: str) -> Iterator[None]:
    """Meanwhile the API server answers for the kind as if it were not installed: 404."""
    plural, _, group = crd.partition(".")

    def is_served() -> bool:
        done = kubectl.run("get", "--raw", f"/apis/{group}/v1beta1/{plural}?limit=1", check=False)
        return done.returncode == 0

    def serve(served: bool) -> None:
        change = [{"op": "replace", "path": "/spec/versions/0/served", "value": served}]
        kubectl.run("patch", "crd", crd, "--type=json", "-p", json.dumps(change))
        eventually(lambda: is_served() is served)

    serve(False)
    try:
        yield
    finally:
        serve(True)
