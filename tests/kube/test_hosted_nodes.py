"""Hosts that join and leave through HyperShift: who leaves is agreed on first, and nobody is let go too early."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.model import hub_names
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.drivers.hosted import nodes
from boatyard.platforms.drivers.hosted.hub import Hub
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    DELETE_FIRST,
    NODE_POOLS,
    WITHOUT_DRAINING,
)
from boatyard.platforms.drivers.hosted.rendering import JOINS
from tests.support.hosted_play import MACHINES, Play, Spy
from tests.support.hosted_values import condition


def host(play: Play, number: int) -> str:
    return f"host-{play.id[:8]}-{number}"


async def with_agents(client: KubeClient, count: int) -> Play:
    """A cluster on the Agent platform with so many nodes."""
    play = Play(client, "Agent")
    await play.up()
    for number in range(count):
        await play.agent(host(play, number))
        await play.join(f"compute-{number}", host(play, number))
        await play.bind(host(play, number))
        await play.machine(f"m-{number}", agent=host(play, number))
        assert isinstance(await play.join(f"compute-{number}", host(play, number)), Done)
    return play


async def replicas(play: Play) -> int:
    count: int = (await play.pool())["spec"]["replicas"]
    return count


async def marks(play: Play, machine: str) -> dict[str, str]:
    found = await play.client.get(MACHINES, machine, play.home)
    return found["metadata"].get("annotations") or {}


async def labels(play: Play, number: int) -> dict[str, str]:
    return (await play.look_at_agent(host(play, number)))["metadata"].get("labels") or {}


# --- joining -----------------------------------------------------------------------------------


async def test_a_host_joins_by_its_agent(hosting: KubeClient) -> None:
    play = Play(hosting, "Agent")
    await play.up()
    assert (await play.join("compute-0", host(play, 0))).reason == "NoAgent"
    await play.agent(host(play, 0))
    assert (await play.join("compute-0", host(play, 0))).reason == "WorkersJoining"
    agent = await play.look_at_agent(host(play, 0))
    assert agent["spec"]["approved"] is True
    assert agent["metadata"]["labels"][hub_names.ORDER] == play.order
    assert agent["metadata"]["annotations"][hub_names.KEY] == play.node_key("compute-0")
    pool = await play.pool()
    selector = pool["spec"]["platform"]["agent"]["agentLabelSelector"]["matchLabels"]
    assert selector.items() <= agent["metadata"]["labels"].items()
    assert pool["spec"]["replicas"] == 1
    await play.bind(host(play, 0))
    await play.machine("m-0", agent=host(play, 0), ready=False)
    assert (await play.join("compute-0", host(play, 0))).reason == "WorkersJoining"
    await play.machine("m-0", agent=host(play, 0))
    assert await play.join("compute-0", host(play, 0)) == Done()
    (seen,) = (await play.driver.observe(play.key)).nodes
    assert (seen.slot, seen.ready) == ("compute-0", True)


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"annotations": {hub_names.HOST_UUID: "{host}"}}, id="by its annotation"),
        pytest.param({"hostname": "{host}"}, id="by its host name"),
    ],
)
async def test_an_agent_of_another_name_says_which_host_it_is(
    hosting: KubeClient, about: dict[str, Any]
) -> None:
    play = Play(hosting, "Agent")
    await play.up()
    name, uuid = host(play, 0), f"uuid-of-{play.id}"
    if "hostname" in about:
        await play.agent(name)
        await hosting.merge_patch(AGENTS, name, {"spec": {"hostname": uuid}}, play.agents)
    else:
        await play.agent(name, annotations={hub_names.HOST_UUID: uuid})
    assert (await play.join("compute-0", uuid)).reason == "WorkersJoining"
    assert JOINS in await labels(play, 0)


async def test_many_join_at_once_and_each_is_counted(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    await asyncio.gather(*(play.join(f"compute-{n}", f"host-{n}") for n in range(8)))
    assert len(await play.slots()) == await replicas(play) == 8


async def test_many_processes_write_one_book(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    await play.join("compute-0", "host-0")
    drivers = [play.another_driver() for _ in range(3)]

    async def join(number: int) -> None:
        play_of_another = Play(hosting, "KubeVirt")
        play_of_another.__dict__.update(play.__dict__, driver=drivers[number - 1])
        await play_of_another.join(f"compute-{number}", f"host-{number}")

    await asyncio.gather(*(join(number) for number in (1, 2, 3)))
    assert len(await play.slots()) == await replicas(play) == 4


async def test_a_node_set_is_as_large_as_its_host_type(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    await play.join("compute-0", "host-0", host_type="large")
    compute = (await play.pool())["spec"]["platform"]["kubevirt"]["compute"]
    assert (compute["cores"], compute["memory"]) == (8, "64Gi")


@pytest.mark.parametrize("bound", [False, True])
async def test_an_agent_of_somebody_else_is_left_alone(hosting: KubeClient, bound: bool) -> None:
    play, other = Play(hosting, "Agent"), Play(hosting, "Agent")
    await play.up()
    if bound:
        await other.agent(host(play, 0))
        await other.bind(host(play, 0))
    else:
        await other.up()
        await other.agent(host(play, 0))
        await other.join("compute-0", host(play, 0))
    before = await play.look_at_agent(host(play, 0))
    with pytest.raises(Refused) as caught:
        await play.join("compute-0", host(play, 0))
    assert caught.value.reason == "HeldByAnother"
    assert await play.look_at_agent(host(play, 0)) == before
    assert (await play.client.list(NODE_POOLS, play.namespace)).items == []


async def test_without_a_cluster_nobody_joins(hosting: KubeClient) -> None:
    play = Play(hosting, "Agent")
    with pytest.raises(Unavailable) as caught:
        await play.join("compute-0", "host-0")
    assert caught.value.reason == "NoCluster"


async def test_a_pool_that_hypershift_refuses_is_told(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    await play.join("compute-0", "host-0")
    broken = condition("ValidPlatformConfig", "False", "NoSuchClass", message="no such class")
    await play.say_of_pool({"conditions": [broken]})
    with pytest.raises(Refused, match="no such class"):
        await play.join("compute-0", "host-0")


async def test_a_pool_that_has_gone_is_not_made_anew_by_its_book(hosting: KubeClient) -> None:
    """Applied to nothing, the part that says how many nodes there are would make half a pool."""
    play = await with_agents(hosting, 1)
    stale = await play.pool()
    await hosting.delete(NODE_POOLS, stale["metadata"]["name"], play.namespace)
    hub = Hub(hosting, play.settings, play.hub)
    with pytest.raises(Unavailable) as caught:
        await nodes.strike(hub, stale, "compute-0")
    assert caught.value.reason == "NoPool"
    assert (await hosting.list(NODE_POOLS, play.namespace)).items == []


async def test_a_book_that_was_scribbled_on_stops_everything(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 1)
    scribbled = {"metadata": {"annotations": {"node.boatyard.io/compute-9": "scribble"}}}
    name = (await play.pool())["metadata"]["name"]
    await hosting.merge_patch(NODE_POOLS, name, scribbled, play.namespace)
    for ask in (play.join("compute-1", "host-1"), play.leave("compute-0")):
        with pytest.raises(Unavailable) as caught:
            await ask
        assert caught.value.reason == "BadRecord"
    assert await replicas(play) == 1


# --- leaving -----------------------------------------------------------------------------------


async def test_the_machine_is_named_before_the_number_falls(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 2)
    spy = play.client = Spy(hosting)
    play.driver = play.another_driver()
    assert isinstance(await play.leave("compute-0"), Waiting)
    assert [kind for _, kind, _ in spy.written] == ["agents", "machines", "nodepools"]
    play.client = hosting
    assert DELETE_FIRST in await marks(play, "m-0")
    assert DELETE_FIRST not in await marks(play, "m-1")
    assert WITHOUT_DRAINING not in await marks(play, "m-0")
    assert await replicas(play) == 1


async def test_a_host_is_let_go_only_when_it_is_seen_unbound(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 2)
    await play.leave("compute-0")
    assert JOINS not in await labels(play, 0), "no pool takes it again"
    await hosting.delete(MACHINES, "m-0", play.home)
    assert (await play.leave("compute-0")).reason == "Leaving"
    await play.machine_gone("m-0")
    assert (await play.leave("compute-0")).reason == "Unbinding"
    assert (await labels(play, 0))[hub_names.ORDER] == play.order, "it is still this order's"
    await play.bind(host(play, 0), bound=False)
    assert await play.leave("compute-0") == Done()
    agent = await play.look_at_agent(host(play, 0))
    assert not agent["metadata"].get("labels")
    assert hub_names.KEY not in (agent["metadata"].get("annotations") or {})
    assert await play.slots() == {"compute-1": False}
    assert await replicas(play) == 1
    assert await play.leave("compute-0") == Done()


async def test_where_hypershift_names_another_the_right_one_leaves_all_the_same(
    hosting: KubeClient,
) -> None:
    play = await with_agents(hosting, 2)
    await play.leave("compute-0")
    await hosting.delete(MACHINES, "m-1", play.home)
    await play.leave("compute-0")
    assert await play.machines() == {"m-0": True, "m-1": True}, "compute-0 has to go"
    await play.machine_gone("m-0")
    await play.machine_gone("m-1")
    await play.bind(host(play, 0), bound=False)
    await play.bind(host(play, 1), bound=False)
    assert await play.leave("compute-0") == Done()
    assert await replicas(play) == 1
    assert JOINS in await labels(play, 1), "the one that was let go may join again"
    assert await play.slots() == {"compute-1": False}


async def test_while_hypershift_has_not_chosen_nothing_is_deleted(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 2)
    for _ in range(3):
        await play.leave("compute-0")
    assert await play.machines() == {"m-0": False, "m-1": False}


async def test_a_host_that_never_joined_takes_an_idle_machine_with_it(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 1)
    await play.agent(host(play, 1))
    await play.join("compute-1", host(play, 1))
    await play.machine("m-idle", ready=False)
    await play.leave("compute-1")
    assert DELETE_FIRST in await marks(play, "m-idle")
    assert DELETE_FIRST not in await marks(play, "m-0")
    assert await play.leave("compute-1") == Done()
    assert await labels(play, 1) == {}


async def test_a_cluster_that_goes_does_not_drain(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 1)
    await play.leave("compute-0", drain=False)
    assert WITHOUT_DRAINING in await marks(play, "m-0")


async def test_a_host_whose_labels_were_taken_away_is_let_go_all_the_same(
    hosting: KubeClient,
) -> None:
    play = await with_agents(hosting, 1)
    bare = {"metadata": {"labels": {hub_names.KEY: None, hub_names.ORDER: None}}}
    await hosting.merge_patch(AGENTS, host(play, 0), bare, play.agents)
    await play.leave("compute-0")
    await hosting.delete(MACHINES, "m-0", play.home)
    await play.machine_gone("m-0")
    await play.bind(host(play, 0), bound=False)
    assert await play.leave("compute-0") == Done()
    assert await labels(play, 0) == {}


async def test_a_host_that_is_anothers_by_now_is_not_touched(hosting: KubeClient) -> None:
    """Stopped between letting the host go and striking the slot, one must not touch it again."""
    play = await with_agents(hosting, 1)
    await play.leave("compute-0")
    await hosting.delete(MACHINES, "m-0", play.home)
    await play.machine_gone("m-0")
    await play.bind(host(play, 0), bound=False)
    taken = {
        "labels": {hub_names.KEY: "another", hub_names.ORDER: "another"},
        "annotations": {hub_names.KEY: "another/node/compute-0"},
    }
    await hosting.merge_patch(AGENTS, host(play, 0), {"metadata": taken}, play.agents)
    assert await play.leave("compute-0") == Done()
    assert (await labels(play, 0))[hub_names.ORDER] == "another"


async def test_virtual_machines_change_places_where_another_was_named(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    for number in range(2):
        await play.join(f"compute-{number}", f"host-{number}")
        await play.machine(f"m-{number}")
        assert isinstance(await play.join(f"compute-{number}", f"host-{number}"), Done)
    assert (await marks(play, "m-0"))[hub_names.SLOT] == "compute-0"
    await play.leave("compute-0")
    await hosting.delete(MACHINES, "m-1", play.home)
    assert await play.leave("compute-0") == Done()
    kept = await marks(play, "m-0")
    assert (kept[hub_names.SLOT], DELETE_FIRST in kept) == ("compute-1", False)
    assert (await play.machines())["m-0"] is False
    assert await play.slots() == {"compute-1": False}


async def test_a_virtual_machine_leaves_with_its_slot(hosting: KubeClient) -> None:
    play = Play(hosting, "KubeVirt")
    await play.up()
    for number in range(2):
        await play.join(f"compute-{number}", f"host-{number}")
        await play.machine(f"m-{number}")
        await play.join(f"compute-{number}", f"host-{number}")
    await play.leave("compute-1")
    assert (await play.leave("compute-1")).reason == "Leaving"
    await hosting.delete(MACHINES, "m-1", play.home)
    assert (await play.leave("compute-1")).reason == "Leaving"
    await play.machine_gone("m-1")
    assert await play.leave("compute-1") == Done()
    assert await play.slots() == {"compute-0": False}


async def test_who_leaves_is_asked_of_the_machines(hosting: KubeClient) -> None:
    play = await with_agents(hosting, 2)
    await hosting.delete(MACHINES, "m-0", play.home)
    ask = play.driver.choose_leaving
    names = ["compute-0", "compute-1"]
    assert list(await ask(play.key, "compute", names, 1)) == ["compute-0"]
    assert list(await ask(play.key, "another", names, 1)) == ["compute-1"]
