"""Taking hosted clusters away: in the right order, never on a view that failed, and found also where marks are gone."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done
from boatyard.platforms.drivers.hosted.cluster_manifests import RenderedObject
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.kinds import AGENTS, HOSTED_CLUSTERS, NODE_POOLS
from tests.contracts.rules import keys
from tests.kube.checking import until
from tests.support.kube_hub.hosted_values import pool
from tests.support.kube_hub.manual_hypershift import (
    FINALIZER,
    MACHINES,
    ManualHyperShift,
    RecordingWriter,
)

HELD = {"metadata": {"finalizers": [FINALIZER]}}
FREE: dict[str, Any] = {"metadata": {"finalizers": None}}


async def with_a_pool(client: KubeClient) -> ManualHyperShift:
    """A cluster with a node, held by finalizers as HyperShift holds it."""
    hypershift = ManualHyperShift(client, "KubeVirt")
    await hypershift.up()
    await hypershift.join("compute-0", "host-0")
    await client.merge_patch(HOSTED_CLUSTERS, hypershift.order, HELD, hypershift.namespace)
    name = (await hypershift.pool())["metadata"]["name"]
    await client.merge_patch(NODE_POOLS, name, HELD, hypershift.namespace)
    return hypershift


async def release(hypershift: ManualHyperShift) -> Any:
    return await hypershift.driver.release_cluster(hypershift.key)


async def gone(hypershift: ManualHyperShift, name: str) -> None:
    async def is_gone() -> bool:
        return name not in await hypershift.namespaces()

    await until(is_gone)


async def test_nodes_then_the_control_plane_then_its_home_then_ours(hosting: KubeClient) -> None:
    hypershift = await with_a_pool(hosting)
    name = (await hypershift.pool())["metadata"]["name"]

    assert (await release(hypershift)).reason == "RemovingNodes"
    assert "deletionTimestamp" in (await hypershift.pool())["metadata"]
    assert "deletionTimestamp" not in (await hypershift.cluster())["metadata"]
    assert (await release(hypershift)).reason == "RemovingNodes"
    await hosting.merge_patch(NODE_POOLS, name, FREE, hypershift.namespace)

    assert (await release(hypershift)).reason == "RemovingControlPlane"
    assert "deletionTimestamp" in (await hypershift.cluster())["metadata"]
    seen = await hypershift.driver.observe(hypershift.key)
    assert (seen.exists, seen.available) == (True, False)
    assert (await hypershift.ensure()).reason == "Deleting", (
        "nothing is made under a cluster that goes"
    )
    await hosting.merge_patch(HOSTED_CLUSTERS, hypershift.order, FREE, hypershift.namespace)

    assert (await release(hypershift)).reason == "RemovingControlPlane"
    assert hypershift.namespace in await hypershift.namespaces(), (
        "ours stays while the control plane's is there"
    )
    await hosting.delete(NAMESPACES, hypershift.home)
    await gone(hypershift, hypershift.home)

    assert keys(await hypershift.driver.list_owned()) == [hypershift.key], "found to the end"
    assert (await release(hypershift)).reason == "RemovingNamespace"
    await gone(hypershift, hypershift.namespace)
    assert await release(hypershift) == Done()
    assert await hypershift.driver.list_owned() == []
    assert not (await hypershift.driver.observe(hypershift.key)).exists


FAILURES = [
    pytest.param(Unavailable("the server is away"), id="no answer"),
    pytest.param(NotFound("no such kind"), id="the kind is not served"),
    pytest.param(Refused("forbidden", reason="Forbidden"), id="not allowed to look"),
]


@pytest.mark.parametrize("blind", [NODE_POOLS, HOSTED_CLUSTERS], ids=lambda kind: kind.plural)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_look_that_failed_is_not_an_empty_one(
    hosting: KubeClient, blind: KubeKind, failure: Exception
) -> None:
    hypershift = await with_a_pool(hosting)
    spy = hypershift.client = RecordingWriter(hosting)
    hypershift.driver = hypershift.another_driver()
    await hypershift.driver.observe(hypershift.key)
    spy.fails = lambda verb, kind: failure if verb == "list" and kind == blind else None
    with pytest.raises((Unavailable, Refused)):
        await release(hypershift)
    assert spy.written == []


@pytest.mark.parametrize("failure", FAILURES)
async def test_nobody_leaves_while_machines_cannot_be_seen(
    hosting: KubeClient, failure: Exception
) -> None:
    hypershift = await with_a_pool(hosting)
    spy = hypershift.client = RecordingWriter(hosting)
    hypershift.driver = hypershift.another_driver()
    spy.fails = lambda verb, kind: failure if verb == "list" and kind == MACHINES else None
    with pytest.raises((Unavailable, Refused)):
        await hypershift.leave("compute-0")
    assert spy.written == []
    assert await hypershift.slots() == {"compute-0": False}


async def test_a_cluster_of_which_only_the_namespace_was_made_goes_too(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    spy = hypershift.client = RecordingWriter(hosting)
    hypershift.driver = hypershift.another_driver()
    spy.fails = lambda verb, kind: (
        Unavailable("gone") if verb == "apply" and kind == HOSTED_CLUSTERS else None
    )
    with pytest.raises(Unavailable):
        await hypershift.ensure()
    assert keys(await hypershift.driver.list_owned()) == [hypershift.key]
    hypershift.client = hosting
    assert (await release(hypershift)).reason == "RemovingNamespace"
    await gone(hypershift, hypershift.namespace)
    assert await release(hypershift) == Done()


async def test_it_is_found_without_its_labels_and_by_another_process(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    bare = {
        "metadata": {"labels": {hub_names.ORDER: None, hub_names.HUB: None, hub_names.KEY: None}}
    }
    await hosting.merge_patch(NAMESPACES, hypershift.namespace, bare)
    hypershift.driver = hypershift.another_driver()
    assert keys(await hypershift.driver.list_owned()) == [hypershift.key], "its HostedCluster tells"
    assert (await release(hypershift)).reason == "RemovingControlPlane"


async def test_it_is_found_by_its_hosted_cluster_when_its_order_is_gone(
    hosting: KubeClient,
) -> None:
    """Nobody knows in which namespace its order was."""
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    bare = {"metadata": {"labels": {hub_names.ORDER: None, hub_names.HUB: None}}}
    await hosting.merge_patch(NAMESPACES, hypershift.namespace, bare)
    hypershift.settings["kube.namespace"] = "elsewhere"
    hypershift.driver = hypershift.another_driver()
    assert (await release(hypershift)).reason == "RemovingControlPlane"


async def test_a_cluster_of_another_hub_is_not_listed_here(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    hypershift.hub = "another"
    assert await hypershift.another_driver().list_owned() == []


async def test_what_is_asked_for_in_a_namespace_that_goes_is_asked_again(
    hosting: KubeClient,
) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.ensure()
    await hosting.merge_patch(
        NAMESPACES, hypershift.namespace, {"metadata": {"finalizers": [FINALIZER]}}
    )
    await hosting.delete(HOSTED_CLUSTERS, hypershift.order, hypershift.namespace)
    await hosting.delete(NAMESPACES, hypershift.namespace)
    assert (await hypershift.ensure()).reason == "Deleting"
    late = RenderedObject(NODE_POOLS, rendered_pool(hypershift))
    with pytest.raises(Unavailable) as caught:
        await HubApi(hosting, hypershift.settings, hypershift.hub).apply(late)
    assert caught.value.reason == "NamespaceTerminating"
    await hosting.merge_patch(NAMESPACES, hypershift.namespace, FREE)


def rendered_pool(hypershift: ManualHyperShift) -> dict[str, Any]:
    made = pool("KubeVirt")
    made["metadata"] = {"name": made["metadata"]["name"], "namespace": hypershift.namespace}
    return made


async def test_nodes_are_listed_by_their_keys(hosting: KubeClient) -> None:
    hypershift = await with_a_pool(hosting)
    owned = await hypershift.driver.list_owned()
    assert {one.key: one.kind for one in owned} == {
        hypershift.key: "cluster",
        hypershift.node_key("compute-0"): "node",
    }
    assert keys(await hypershift.driver.list_owned(f"{hypershift.id}/node/")) == [
        hypershift.node_key("compute-0")
    ]


async def test_a_host_of_a_cluster_that_is_gone_is_let_go(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "Agent")
    await hypershift.up()
    name = f"host-{hypershift.id[:8]}"
    await hypershift.agent(name)
    await hypershift.join("compute-0", name)
    await hypershift.bind(name)
    for kind in (NODE_POOLS, HOSTED_CLUSTERS):
        for thing in await hypershift.all(kind):
            await hosting.delete(kind, thing["metadata"]["name"], hypershift.namespace)
    hypershift.driver = hypershift.another_driver()
    assert keys(await hypershift.driver.list_owned(f"{hypershift.id}/node/")) == [
        hypershift.node_key("compute-0")
    ]
    assert (await hypershift.leave("compute-0")).reason == "Unbinding"
    await hypershift.bind(name, bound=False)
    assert await hypershift.leave("compute-0") == Done()
    agent = await hosting.get(AGENTS, name, hypershift.agents)
    assert not agent["metadata"].get("labels")


async def test_a_hosted_cluster_of_another_key_is_left_alone(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    other = {"metadata": {"annotations": {hub_names.KEY: "another/cluster"}}}
    await hosting.merge_patch(HOSTED_CLUSTERS, hypershift.order, other, hypershift.namespace)
    with pytest.raises(Refused) as caught:
        await release(hypershift)
    assert caught.value.reason == "HeldByAnother"
    assert "deletionTimestamp" not in (await hypershift.cluster())["metadata"]
    assert not (await hypershift.driver.observe(hypershift.key)).exists
