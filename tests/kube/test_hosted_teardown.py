"""Taking hosted clusters away: in the right order, never on a view that failed, and found also where marks are gone."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import NAMESPACES, Kind
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done
from boatyard.platforms.drivers.hosted.hub import Hub
from boatyard.platforms.drivers.hosted.kinds import AGENTS, HOSTED_CLUSTERS, NODE_POOLS
from boatyard.platforms.drivers.hosted.rendering import Rendered
from tests.contracts.rules import keys
from tests.kube.checking import until
from tests.support.hosted_play import FINALIZER, MACHINES, Play, Spy
from tests.support.hosted_values import pool

HELD = {"metadata": {"finalizers": [FINALIZER]}}
FREE: dict[str, Any] = {"metadata": {"finalizers": None}}


async def with_a_pool(client: KubeClient) -> Play:
    """A cluster with a node, held by finalizers as HyperShift holds it."""
    play = Play(client, "KubeVirt")
    await play.up()
    await play.join("compute-0", "host-0")
    await client.merge_patch(HOSTED_CLUSTERS, play.order, HELD, play.namespace)
    name = (await play.pool())["metadata"]["name"]
    await client.merge_patch(NODE_POOLS, name, HELD, play.namespace)
    return play


async def release(play: Play) -> Any:
    return await play.driver.release_cluster(play.key)


async def gone(play: Play, name: str) -> None:
    async def is_gone() -> bool:
        return name not in await play.namespaces()

    await until(is_gone)


async def test_nodes_then_the_control_plane_then_its_home_then_ours(hosting: KubeClient) -> None:
    play = await with_a_pool(hosting)
    name = (await play.pool())["metadata"]["name"]

    assert (await release(play)).reason == "RemovingNodes"
    assert "deletionTimestamp" in (await play.pool())["metadata"]
    assert "deletionTimestamp" not in (await play.cluster())["metadata"]
    assert (await release(play)).reason == "RemovingNodes"
    await hosting.merge_patch(NODE_POOLS, name, FREE, play.namespace)

    assert (await release(play)).reason == "RemovingControlPlane"
    assert "deletionTimestamp" in (await play.cluster())["metadata"]
    seen = await play.driver.observe(play.key)
    assert (seen.exists, seen.available) == (True, False)
    assert (await play.ensure()).reason == "Deleting", "nothing is made under a cluster that goes"
    await hosting.merge_patch(HOSTED_CLUSTERS, play.order, FREE, play.namespace)

    assert (await release(play)).reason == "RemovingControlPlane"
    assert play.namespace in await play.namespaces(), (
        "ours stays while the control plane's is there"
    )
    await hosting.delete(NAMESPACES, play.home)
    await gone(play, play.home)

    assert keys(await play.driver.list_owned()) == [play.key], "found to the end"
    assert (await release(play)).reason == "RemovingNamespace"
    await gone(play, play.namespace)
    assert await release(play) == Done()
    assert await play.driver.list_owned() == []
    assert not (await play.driver.observe(play.key)).exists


FAILURES = [
    pytest.param(Unavailable("the server is away"), id="no answer"),
    pytest.param(NotFound("no such kind"), id="the kind is not served"),
    pytest.param(Refused("forbidden", reason="Forbidden"), id="not allowed to look"),
]


@pytest.mark.parametrize("blind", [NODE_POOLS, HOSTED_CLUSTERS], ids=lambda kind: kind.plural)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_look_that_failed_is_not_an_empty_one(
    hosting: KubeClient, blind: Kind, failure: Exception
) -> None:
    play = await with_a_pool(hosting)
    spy = play.client = Spy(hosting)
    play.driver = play.another_driver()
    await play.driver.observe(play.key)
    spy.fails = lambda verb, kind: failure if verb == "list" and kind == blind else None
    with pytest.raises((Unavailable, Refused)):
        await release(play)
    assert spy.written == []


@pytest.mark.parametrize("failure", FAILURES)
async def test_nobody_leaves_while_machines_cannot_be_seen(
    hosting: KubeClient, failure: Exception
) -> None:
    play = await with_a_pool(hosting)
    spy = play.client = Spy(hosting)
    play.driver = play.another_driver()
    spy.fails = lambda verb, kind: failure if verb == "list" and kind == MACHINES else None
    with pytest.raises((Unavailable, Refused)):
        await play.leave("compute-0")
    assert spy.written == []
    assert await play.slots() == {"compute-0": False}


async def test_a_cluster_of_which_only_the_namespace_was_made_goes_too(hosting: KubeClient) -> None:
    play = Play(hosting)
    spy = play.client = Spy(hosting)
    play.driver = play.another_driver()
    spy.fails = lambda verb, kind: (
        Unavailable("gone") if verb == "apply" and kind == HOSTED_CLUSTERS else None
    )
    with pytest.raises(Unavailable):
        await play.ensure()
    assert keys(await play.driver.list_owned()) == [play.key]
    play.client = hosting
    assert (await release(play)).reason == "RemovingNamespace"
    await gone(play, play.namespace)
    assert await release(play) == Done()


async def test_it_is_found_without_its_labels_and_by_another_process(hosting: KubeClient) -> None:
    play = Play(hosting)
    await play.up()
    bare = {
        "metadata": {"labels": {hub_names.ORDER: None, hub_names.HUB: None, hub_names.KEY: None}}
    }
    await hosting.merge_patch(NAMESPACES, play.namespace, bare)
    play.driver = play.another_driver()
    assert keys(await play.driver.list_owned()) == [play.key], "its HostedCluster tells"
    assert (await release(play)).reason == "RemovingControlPlane"


async def test_it_is_found_by_its_hosted_cluster_when_its_order_is_gone(
    hosting: KubeClient,
) -> None:
    """Nobody knows in which namespace its order was."""
    play = Play(hosting)
    await play.up()
    bare = {"metadata": {"labels": {hub_names.ORDER: None, hub_names.HUB: None}}}
    await hosting.merge_patch(NAMESPACES, play.namespace, bare)
    play.settings["kube.namespace"] = "elsewhere"
    play.driver = play.another_driver()
    assert (await release(play)).reason == "RemovingControlPlane"


async def test_a_cluster_of_another_hub_is_not_listed_here(hosting: KubeClient) -> None:
    play = Play(hosting)
    await play.up()
    play.hub = "another"
    assert await play.another_driver().list_owned() == []


async def test_what_is_asked_for_in_a_namespace_that_goes_is_asked_again(
    hosting: KubeClient,
) -> None:
    play = Play(hosting)
    await play.ensure()
    await hosting.merge_patch(NAMESPACES, play.namespace, {"metadata": {"finalizers": [FINALIZER]}})
    await hosting.delete(HOSTED_CLUSTERS, play.order, play.namespace)
    await hosting.delete(NAMESPACES, play.namespace)
    assert (await play.ensure()).reason == "Deleting"
    late = Rendered(NODE_POOLS, rendered_pool(play))
    with pytest.raises(Unavailable) as caught:
        await Hub(hosting, play.settings, play.hub).apply(late)
    assert caught.value.reason == "NamespaceTerminating"
    await hosting.merge_patch(NAMESPACES, play.namespace, FREE)


def rendered_pool(play: Play) -> dict[str, Any]:
    made = pool("KubeVirt")
    made["metadata"] = {"name": made["metadata"]["name"], "namespace": play.namespace}
    return made


async def test_nodes_are_listed_by_their_keys(hosting: KubeClient) -> None:
    play = await with_a_pool(hosting)
    owned = await play.driver.list_owned()
    assert {one.key: one.kind for one in owned} == {
        play.key: "cluster",
        play.node_key("compute-0"): "node",
    }
    assert keys(await play.driver.list_owned(f"{play.id}/node/")) == [play.node_key("compute-0")]


async def test_a_host_of_a_cluster_that_is_gone_is_let_go(hosting: KubeClient) -> None:
    play = Play(hosting, "Agent")
    await play.up()
    name = f"host-{play.id[:8]}"
    await play.agent(name)
    await play.join("compute-0", name)
    await play.bind(name)
    for kind in (NODE_POOLS, HOSTED_CLUSTERS):
        for thing in await play.all(kind):
            await hosting.delete(kind, thing["metadata"]["name"], play.namespace)
    play.driver = play.another_driver()
    assert keys(await play.driver.list_owned(f"{play.id}/node/")) == [play.node_key("compute-0")]
    assert (await play.leave("compute-0")).reason == "Unbinding"
    await play.bind(name, bound=False)
    assert await play.leave("compute-0") == Done()
    agent = await hosting.get(AGENTS, name, play.agents)
    assert not agent["metadata"].get("labels")


async def test_a_hosted_cluster_of_another_key_is_left_alone(hosting: KubeClient) -> None:
    play = Play(hosting)
    await play.up()
    other = {"metadata": {"annotations": {hub_names.KEY: "another/cluster"}}}
    await hosting.merge_patch(HOSTED_CLUSTERS, play.order, other, play.namespace)
    with pytest.raises(Refused) as caught:
        await release(play)
    assert caught.value.reason == "HeldByAnother"
    assert "deletionTimestamp" not in (await play.cluster())["metadata"]
    assert not (await play.driver.observe(play.key)).exists
