"""Nodes of the None platform, looked at in the hosted cluster itself: here the hub's own API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NODES, PODS
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hosted_values import condition
from tests.support.kube_hub.manual_hypershift import ManualHyperShift

HAND_MADE = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}


async def hosted(client: KubeClient, plane: ControlPlane) -> ManualHyperShift:
    """A cluster whose kubeconfig leads to the API server on which it is hosted."""
    hypershift = ManualHyperShift(client)
    await hypershift.up()
    await hypershift.give_access(json.dumps(plane.kubeconfig()))
    return hypershift


async def node(client: KubeClient, name: str, *, ready: bool = True) -> None:
    await client.apply(NODES, name, {})
    status = {
        "conditions": [condition("Ready", str(ready))],
        "addresses": [{"type": "InternalIP", "address": "10.4.0.9"}],
    }
    await client.apply(NODES, name, {"status": status}, subresource="status")


async def pod(client: KubeClient, name: str, on: str, **about: Any) -> None:
    containers = [{"name": "c", "image": "x:1"}]
    spec = {"nodeName": on, "containers": containers, "terminationGracePeriodSeconds": 0}
    await client.create(PODS, {"metadata": {"name": name, **about}, "spec": spec}, "default")


async def is_there(client: KubeClient, name: str) -> bool:
    try:
        await client.get(NODES, name)
    except NotFound:
        return False
    return True


async def test_a_host_that_joins_by_itself_is_waited_for(
    hosting: KubeClient, hosting_plane: ControlPlane
) -> None:
    hypershift = await hosted(hosting, hosting_plane)
    name = f"host-{hypershift.id[:8]}"
    try:
        assert (await hypershift.join("compute-0", name)).reason == "WorkersJoining"
        pool = await hypershift.pool()
        assert pool["spec"]["platform"] == {"type": "None"}
        assert pool["spec"]["replicas"] == 0, "HyperShift makes no machines there"
        await node(hosting, name, ready=False)
        assert (await hypershift.join("compute-0", name)).reason == "WorkersJoining"
        assert not (await hypershift.driver.observe(hypershift.key)).nodes[0].ready
        await node(hosting, name)
        assert await hypershift.join("compute-0", name) == Done()
        seen = await hypershift.driver.observe(hypershift.key)
        assert ([one.ready for one in seen.nodes], seen.degraded) == ([True], False)
    finally:
        await hosting.delete(NODES, name)
        await hypershift.driver.close()


async def test_it_is_drained_and_removed(hosting: KubeClient, hosting_plane: ControlPlane) -> None:
    hypershift = await hosted(hosting, hosting_plane)
    name = f"host-{hypershift.id[:8]}"
    work, daemon = f"work-{hypershift.id[:8]}", f"daemon-{hypershift.id[:8]}"
    await node(hosting, name)
    assert isinstance(await hypershift.join("compute-0", name), Done)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": hypershift.id}
    await pod(hosting, work, name)
    await pod(hosting, daemon, name, ownerReferences=[owner])
    assert (await hypershift.leave("compute-0")).reason == "Draining"
    assert (await hosting.get(NODES, name))["spec"]["unschedulable"] is True
    await hosting.delete(PODS, work, "default", grace=0)
    assert (await hypershift.leave("compute-0")).reason == "Leaving", "a daemon goes with its node"
    assert not await is_there(hosting, name)
    assert await hypershift.leave("compute-0") == Done()
    assert await hypershift.slots() == {}
    assert await hypershift.leave("compute-0") == Done()
    await hosting.delete(PODS, daemon, "default", grace=0)
    await hypershift.driver.close()


async def test_a_cluster_that_is_past_answering_is_left_with_its_nodes(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    cluster = {"server": "http://127.0.0.1:9"}
    dead = {
        **HAND_MADE,
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    await hypershift.give_access(json.dumps(dead))
    with pytest.raises(Unavailable):
        await hypershift.join("compute-0", "host-0")
    assert await hypershift.slots() == {"compute-0": False}
    with pytest.raises(Unavailable):
        await hypershift.leave("compute-0")
    assert not (await hypershift.driver.observe(hypershift.key)).nodes[0].ready
    assert await hypershift.leave("compute-0", drain=False) == Done()
    await hypershift.driver.close()


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch"}},
            id="a program",
        ),
        pytest.param({"tokenFile": "/etc/hostname"}, id="a file"),
    ],
)
async def test_a_kubeconfig_that_leads_into_our_own_machine_is_not_used(
    hosting: KubeClient, user: dict[str, Any]
) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    bad = {
        **HAND_MADE,
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": user}],
    }
    await hypershift.give_access(json.dumps(bad))

    def connect(config: object) -> KubeClient:
        raise AssertionError("it was used")

    hypershift.driver = HostedPlatform(
        hosting, hypershift.settings, hypershift.hub, connect=connect
    )
    with pytest.raises(Unavailable) as caught:
        await hypershift.join("compute-0", "host-0")
    assert caught.value.reason == "NoAccess"


async def test_a_slot_of_another_key_is_left_alone(
    hosting: KubeClient, hosting_plane: ControlPlane
) -> None:
    hypershift = await hosted(hosting, hosting_plane)
    await hypershift.join("compute-0", "host-0")
    with pytest.raises(Refused):
        await hypershift.driver.release_node("other/node/compute-0", hypershift.key, "compute-0")
    with pytest.raises(Refused):
        await hypershift.join("compute-1", "host-0")
    assert await hypershift.slots() == {"compute-0": False}
    await hypershift.driver.close()
