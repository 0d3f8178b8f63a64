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
from boatyard.platforms.drivers.hosted.cluster_manifests import JOIN_LABEL
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    DELETE_FIRST_ANNOTATION,
    NO_DRAIN_ANNOTATION,
    NODE_POOLS,
)
from tests.support.kube_hub.hosted_values import condition
from tests.support.kube_hub.manual_hypershift import MACHINES, ManualHyperShift, RecordingWriter


def host(hypershift: ManualHyperShift, number: int) -> str:
    return f"host-{hypershift.id[:8]}-{number}"


async def with_agents(client: KubeClient, count: int) -> ManualHyperShift:
    """A cluster on the Agent platform with so many nodes."""
    hypershift = ManualHyperShift(client, "Agent")
    await hypershift.up()
    for number in range(count):
        await hypershift.agent(host(hypershift, number))
        await hypershift.join(f"compute-{number}", host(hypershift, number))
        await hypershift.bind(host(hypershift, number))
        await hypershift.machine(f"m-{number}", agent=host(hypershift, number))
        assert isinstance(
            await hypershift.join(f"compute-{number}", host(hypershift, number)), Done
        )
    return hypershift


async def replicas(hypershift: ManualHyperShift) -> int:
    count: int = (await hypershift.pool())["spec"]["replicas"]
    return count


async def marks(hypershift: ManualHyperShift, machine: str) -> dict[str, str]:
    found = await hypershift.client.get(MACHINES, machine, hypershift.home)
    return found["metadata"].get("annotations") or {}


async def labels(hypershift: ManualHyperShift, number: int) -> dict[str, str]:
    return (await hypershift.look_at_agent(host(hypershift, number)))["metadata"].get(
        "labels"
    ) or {}


# --- joining -----------------------------------------------------------------------------------


async def test_a_host_joins_by_its_agent(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "Agent")
    await hypershift.up()
    assert (await hypershift.join("compute-0", host(hypershift, 0))).reason == "NoAgent"
    await hypershift.agent(host(hypershift, 0))
    assert (await hypershift.join("compute-0", host(hypershift, 0))).reason == "WorkersJoining"
    agent = await hypershift.look_at_agent(host(hypershift, 0))
    assert agent["spec"]["approved"] is True
    assert agent["metadata"]["labels"][hub_names.ORDER] == hypershift.order
    assert agent["metadata"]["annotations"][hub_names.KEY] == hypershift.node_key("compute-0")
    pool = await hypershift.pool()
    selector = pool["spec"]["platform"]["agent"]["agentLabelSelector"]["matchLabels"]
    assert selector.items() <= agent["metadata"]["labels"].items()
    assert pool["spec"]["replicas"] == 1
    await hypershift.bind(host(hypershift, 0))
    await hypershift.machine("m-0", agent=host(hypershift, 0), ready=False)
    assert (await hypershift.join("compute-0", host(hypershift, 0))).reason == "WorkersJoining"
    await hypershift.machine("m-0", agent=host(hypershift, 0))
    assert await hypershift.join("compute-0", host(hypershift, 0)) == Done()
    (seen,) = (await hypershift.driver.observe(hypershift.key)).nodes
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
    hypershift = ManualHyperShift(hosting, "Agent")
    await hypershift.up()
    name, uuid = host(hypershift, 0), f"uuid-of-{hypershift.id}"
    if "hostname" in about:
        await hypershift.agent(name)
        await hosting.merge_patch(AGENTS, name, {"spec": {"hostname": uuid}}, hypershift.agents)
    else:
        await hypershift.agent(name, annotations={hub_names.HOST_UUID: uuid})
    assert (await hypershift.join("compute-0", uuid)).reason == "WorkersJoining"
    assert JOIN_LABEL in await labels(hypershift, 0)


async def test_many_join_at_once_and_each_is_counted(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    await asyncio.gather(*(hypershift.join(f"compute-{n}", f"host-{n}") for n in range(8)))
    assert len(await hypershift.slots()) == await replicas(hypershift) == 8


async def test_many_processes_write_one_book(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    await hypershift.join("compute-0", "host-0")
    drivers = [hypershift.another_driver() for _ in range(3)]

    async def join(number: int) -> None:
        hypershift_of_another = ManualHyperShift(hosting, "KubeVirt")
        hypershift_of_another.__dict__.update(hypershift.__dict__, driver=drivers[number - 1])
        await hypershift_of_another.join(f"compute-{number}", f"host-{number}")

    await asyncio.gather(*(join(number) for number in (1, 2, 3)))
    assert len(await hypershift.slots()) == await replicas(hypershift) == 4


async def test_a_node_set_is_as_large_as_its_host_type(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    await hypershift.join("compute-0", "host-0", host_type="large")
    compute = (await hypershift.pool())["spec"]["platform"]["kubevirt"]["compute"]
    assert (compute["cores"], compute["memory"]) == (8, "64Gi")


@pytest.mark.parametrize("bound", [False, True])
async def test_an_agent_of_somebody_else_is_left_alone(hosting: KubeClient, bound: bool) -> None:
    hypershift, other = ManualHyperShift(hosting, "Agent"), ManualHyperShift(hosting, "Agent")
    await hypershift.up()
    if bound:
        await other.agent(host(hypershift, 0))
        await other.bind(host(hypershift, 0))
    else:
        await other.up()
        await other.agent(host(hypershift, 0))
        await other.join("compute-0", host(hypershift, 0))
    before = await hypershift.look_at_agent(host(hypershift, 0))
    with pytest.raises(Refused) as caught:
        await hypershift.join("compute-0", host(hypershift, 0))
    assert caught.value.reason == "HeldByAnother"
    assert await hypershift.look_at_agent(host(hypershift, 0)) == before
    assert (await hypershift.client.list(NODE_POOLS, hypershift.namespace)).items == []


async def test_without_a_cluster_nobody_joins(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "Agent")
    with pytest.raises(Unavailable) as caught:
        await hypershift.join("compute-0", "host-0")
    assert caught.value.reason == "NoCluster"


async def test_a_pool_that_hypershift_refuses_is_told(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    await hypershift.join("compute-0", "host-0")
    broken = condition("ValidPlatformConfig", "False", "NoSuchClass", message="no such class")
    await hypershift.say_of_pool({"conditions": [broken]})
    with pytest.raises(Refused, match="no such class"):
        await hypershift.join("compute-0", "host-0")


async def test_a_pool_that_has_gone_is_not_made_anew_by_its_book(hosting: KubeClient) -> None:
    """Applied to nothing, the part that says how many nodes there are would make half a pool."""
    hypershift = await with_agents(hosting, 1)
    stale = await hypershift.pool()
    await hosting.delete(NODE_POOLS, stale["metadata"]["name"], hypershift.namespace)
    hub = HubApi(hosting, hypershift.settings, hypershift.hub)
    with pytest.raises(Unavailable) as caught:
        await nodes.remove_slot(hub, stale, "compute-0")
    assert caught.value.reason == "NoPool"
    assert (await hosting.list(NODE_POOLS, hypershift.namespace)).items == []


async def test_a_book_that_was_scribbled_on_stops_everything(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 1)
    scribbled = {"metadata": {"annotations": {"node.boatyard.io/compute-9": "scribble"}}}
    name = (await hypershift.pool())["metadata"]["name"]
    await hosting.merge_patch(NODE_POOLS, name, scribbled, hypershift.namespace)
    for ask in (hypershift.join("compute-1", "host-1"), hypershift.leave("compute-0")):
        with pytest.raises(Unavailable) as caught:
            await ask
        assert caught.value.reason == "BadRecord"
    assert await replicas(hypershift) == 1


# --- leaving -----------------------------------------------------------------------------------


async def test_the_machine_is_named_before_the_number_falls(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 2)
    spy = hypershift.client = RecordingWriter(hosting)
    hypershift.driver = hypershift.another_driver()
    assert isinstance(await hypershift.leave("compute-0"), Waiting)
    assert [kind for _, kind, _ in spy.written] == ["agents", "machines", "nodepools"]
    hypershift.client = hosting
    assert DELETE_FIRST_ANNOTATION in await marks(hypershift, "m-0")
    assert DELETE_FIRST_ANNOTATION not in await marks(hypershift, "m-1")
    assert NO_DRAIN_ANNOTATION not in await marks(hypershift, "m-0")
    assert await replicas(hypershift) == 1


async def test_a_host_is_let_go_only_when_it_is_seen_unbound(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 2)
    await hypershift.leave("compute-0")
    assert JOIN_LABEL not in await labels(hypershift, 0), "no pool takes it again"
    await hosting.delete(MACHINES, "m-0", hypershift.home)
    assert (await hypershift.leave("compute-0")).reason == "Leaving"
    await hypershift.machine_gone("m-0")
    assert (await hypershift.leave("compute-0")).reason == "Unbinding"
    assert (await labels(hypershift, 0))[hub_names.ORDER] == hypershift.order, (
        "it is still this order's"
    )
    await hypershift.bind(host(hypershift, 0), bound=False)
    assert await hypershift.leave("compute-0") == Done()
    agent = await hypershift.look_at_agent(host(hypershift, 0))
    assert not agent["metadata"].get("labels")
    assert hub_names.KEY not in (agent["metadata"].get("annotations") or {})
    assert await hypershift.slots() == {"compute-1": False}
    assert await replicas(hypershift) == 1
    assert await hypershift.leave("compute-0") == Done()


async def test_where_hypershift_names_another_the_right_one_leaves_all_the_same(
    hosting: KubeClient,
) -> None:
    hypershift = await with_agents(hosting, 2)
    await hypershift.leave("compute-0")
    await hosting.delete(MACHINES, "m-1", hypershift.home)
    await hypershift.leave("compute-0")
    assert await hypershift.machines() == {"m-0": True, "m-1": True}, "compute-0 has to go"
    await hypershift.machine_gone("m-0")
    await hypershift.machine_gone("m-1")
    await hypershift.bind(host(hypershift, 0), bound=False)
    await hypershift.bind(host(hypershift, 1), bound=False)
    assert await hypershift.leave("compute-0") == Done()
    assert await replicas(hypershift) == 1
    assert JOIN_LABEL in await labels(hypershift, 1), "the one that was let go may join again"
    assert await hypershift.slots() == {"compute-1": False}


async def test_while_hypershift_has_not_chosen_nothing_is_deleted(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 2)
    for _ in range(3):
        await hypershift.leave("compute-0")
    assert await hypershift.machines() == {"m-0": False, "m-1": False}


async def test_a_host_that_never_joined_takes_an_idle_machine_with_it(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 1)
    await hypershift.agent(host(hypershift, 1))
    await hypershift.join("compute-1", host(hypershift, 1))
    await hypershift.machine("m-idle", ready=False)
    await hypershift.leave("compute-1")
    assert DELETE_FIRST_ANNOTATION in await marks(hypershift, "m-idle")
    assert DELETE_FIRST_ANNOTATION not in await marks(hypershift, "m-0")
    assert await hypershift.leave("compute-1") == Done()
    assert await labels(hypershift, 1) == {}


async def test_a_cluster_that_goes_does_not_drain(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 1)
    await hypershift.leave("compute-0", drain=False)
    assert NO_DRAIN_ANNOTATION in await marks(hypershift, "m-0")


async def test_a_host_whose_labels_were_taken_away_is_let_go_all_the_same(
    hosting: KubeClient,
) -> None:
    hypershift = await with_agents(hosting, 1)
    bare = {"metadata": {"labels": {hub_names.KEY: None, hub_names.ORDER: None}}}
    await hosting.merge_patch(AGENTS, host(hypershift, 0), bare, hypershift.agents)
    await hypershift.leave("compute-0")
    await hosting.delete(MACHINES, "m-0", hypershift.home)
    await hypershift.machine_gone("m-0")
    await hypershift.bind(host(hypershift, 0), bound=False)
    assert await hypershift.leave("compute-0") == Done()
    assert await labels(hypershift, 0) == {}


async def test_a_host_that_is_anothers_by_now_is_not_touched(hosting: KubeClient) -> None:
    """Stopped between letting the host go and striking the slot, one must not touch it again."""
    hypershift = await with_agents(hosting, 1)
    await hypershift.leave("compute-0")
    await hosting.delete(MACHINES, "m-0", hypershift.home)
    await hypershift.machine_gone("m-0")
    await hypershift.bind(host(hypershift, 0), bound=False)
    taken = {
        "labels": {hub_names.KEY: "another", hub_names.ORDER: "another"},
        "annotations": {hub_names.KEY: "another/node/compute-0"},
    }
    await hosting.merge_patch(AGENTS, host(hypershift, 0), {"metadata": taken}, hypershift.agents)
    assert await hypershift.leave("compute-0") == Done()
    assert (await labels(hypershift, 0))[hub_names.ORDER] == "another"


async def test_virtual_machines_change_places_where_another_was_named(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    for number in range(2):
        await hypershift.join(f"compute-{number}", f"host-{number}")
        await hypershift.machine(f"m-{number}")
        assert isinstance(await hypershift.join(f"compute-{number}", f"host-{number}"), Done)
    assert (await marks(hypershift, "m-0"))[hub_names.SLOT] == "compute-0"
    await hypershift.leave("compute-0")
    await hosting.delete(MACHINES, "m-1", hypershift.home)
    assert await hypershift.leave("compute-0") == Done()
    kept = await marks(hypershift, "m-0")
    assert (kept[hub_names.SLOT], DELETE_FIRST_ANNOTATION in kept) == ("compute-1", False)
    assert (await hypershift.machines())["m-0"] is False
    assert await hypershift.slots() == {"compute-1": False}


async def test_a_virtual_machine_leaves_with_its_slot(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    for number in range(2):
        await hypershift.join(f"compute-{number}", f"host-{number}")
        await hypershift.machine(f"m-{number}")
        await hypershift.join(f"compute-{number}", f"host-{number}")
    await hypershift.leave("compute-1")
    assert (await hypershift.leave("compute-1")).reason == "Leaving"
    await hosting.delete(MACHINES, "m-1", hypershift.home)
    assert (await hypershift.leave("compute-1")).reason == "Leaving"
    await hypershift.machine_gone("m-1")
    assert await hypershift.leave("compute-1") == Done()
    assert await hypershift.slots() == {"compute-0": False}


async def test_who_leaves_is_asked_of_the_machines(hosting: KubeClient) -> None:
    hypershift = await with_agents(hosting, 2)
    await hosting.delete(MACHINES, "m-0", hypershift.home)
    ask = hypershift.driver.choose_leaving
    names = ["compute-0", "compute-1"]
    assert list(await ask(hypershift.key, "compute", names, 1)) == ["compute-0"]
    assert list(await ask(hypershift.key, "another", names, 1)) == ["compute-1"]
