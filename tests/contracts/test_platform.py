"""The platform port's promises, for every driver."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from boatyard.model.errors import NotFound
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.port import HAS_NODES, DesiredCluster, DesiredNode, DesiredRestore, RestMode
from tests.contracts.harness import PlatformHarness, cluster_wanted
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "platform"
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def a_cluster_made_again_is_one_cluster(harness: PlatformHarness) -> None:
    wanted = _wanted(harness)
    await harness.until_done(lambda: harness.platform.ensure_cluster("order-1/cluster", wanted))
    assert isinstance(await harness.platform.ensure_cluster("order-1/cluster", wanted), Done)
    assert keys(await harness.platform.list_owned("order-1/")) == ["order-1/cluster"]
    seen = await harness.platform.observe("order-1/cluster")
    assert (seen.exists, seen.available, seen.degraded) == (True, True, False)
    assert seen.version == wanted.version


async def clusters_of_strangers_may_share_a_name(harness: PlatformHarness) -> None:
    for order in ("order-1", "order-2"):
        ask = partial(harness.platform.ensure_cluster, f"{order}/cluster", _wanted(harness))
        await harness.until_done(ask)
    assert keys(await harness.platform.list_owned()) == ["order-1/cluster", "order-2/cluster"]


async def a_new_version_is_a_correction(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await harness.until_done(
        lambda: harness.platform.ensure_cluster(
            "order-1/cluster", cluster_wanted(harness.newer_version)
        )
    )
    seen = await harness.platform.observe("order-1/cluster")
    assert (seen.available, seen.version) == (True, harness.newer_version)
    assert keys(await harness.platform.list_owned()) == ["order-1/cluster"]


async def an_unknown_cluster_does_not_exist(harness: PlatformHarness) -> None:
    assert not (await harness.platform.observe("order-1/cluster")).exists
    await _fails_with_not_found(harness.platform.access("order-1/cluster"))


async def access_is_what_kubectl_can_read(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    access = await harness.platform.access("order-1/cluster")
    config = yaml.safe_load(access.kubeconfig)
    assert config["kind"] == "Config"
    assert config["clusters"][0]["cluster"]["server"] == access.api_url
    assert access.api_url.startswith("https://")
    assert not access.console_url or access.console_url.startswith("https://")
    assert bool(access.username) == bool(access.password)
    assert await harness.platform.access("order-1/cluster") == access


async def a_host_that_joins_again_is_one_ready_node(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    node = await _join(harness, "order-1", "compute-0")
    again = await harness.platform.ensure_node("order-1/node/compute-0", "order-1/cluster", node)
    assert isinstance(again, Done)
    (seen,) = (await harness.platform.observe("order-1/cluster")).nodes
    assert (seen.slot, seen.node_set, seen.ready) == ("compute-0", "compute", True)
    assert keys(await harness.platform.list_owned("order-1/node/")) == ["order-1/node/compute-0"]


async def a_host_cannot_be_a_node_twice(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    node = await _join(harness, "order-1", "compute-0")
    twice = replace(node, slot="compute-1")
    await refuses(harness.platform.ensure_node("order-1/node/compute-1", "order-1/cluster", twice))
    assert len((await harness.platform.observe("order-1/cluster")).nodes) == 1


async def a_node_of_another_key_is_left_alone(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    stranger = ("order-2/node/compute-0", "order-1/cluster", "compute-0")
    await refuses(harness.platform.release_node(*stranger))
    assert len((await harness.platform.observe("order-1/cluster")).nodes) == 1


async def a_node_cannot_join_no_cluster(harness: PlatformHarness) -> None:
    host, address = await harness.host_with_agent(harness.order(), "compute-0")
    node = DesiredNode("compute-0", "compute", host, address)
    await unavailable(harness.platform.ensure_node("order-1/node/0", "order-1/cluster", node))
    assert await harness.platform.list_owned() == []


async def a_released_node_is_gone(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    await harness.until_done(lambda: harness.platform.release_node(*release))
    assert await harness.platform.release_node(*release) == Done()
    assert (await harness.platform.observe("order-1/cluster")).nodes == ()


async def releasing_nothing_is_done(harness: PlatformHarness) -> None:
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    assert await harness.platform.release_node(*release) == Done()
    assert await harness.platform.release_cluster("order-1/cluster") == Done()


async def a_released_cluster_is_gone_with_all_it_holds(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    await _release_node(harness, "order-1", "compute-0")
    await harness.until_done(lambda: harness.platform.release_cluster("order-1/cluster"))
    assert await harness.platform.release_cluster("order-1/cluster") == Done()
    assert await harness.platform.list_owned() == []
    assert not (await harness.platform.observe("order-1/cluster")).exists
    await _fails_with_not_found(harness.platform.access("order-1/cluster"))


async def no_node_outlives_its_cluster(harness: PlatformHarness) -> None:
    """Released with a node on it, a cluster takes the node along, or stays as it is until that is gone."""
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    waits = False

    async def ends_or_waits() -> bool:
        nonlocal waits
        outcome = await harness.platform.release_cluster("order-1/cluster")
        waits = isinstance(outcome, Waiting) and outcome.reason == HAS_NODES
        return waits or isinstance(outcome, Done)

    await harness.until(ends_or_waits)
    if waits:
        cluster = await harness.platform.observe("order-1/cluster")
        assert (cluster.exists, cluster.available) == (True, True)
        assert [node.ready for node in cluster.nodes] == [True]
        await _release_node(harness, "order-1", "compute-0")
        await harness.until_done(lambda: harness.platform.release_cluster("order-1/cluster"))
    assert await harness.platform.list_owned() == []


async def a_changed_wish_is_a_correction(harness: PlatformHarness) -> None:
    """Whatever else is wanted of a cluster may change while it runs, and it stays one cluster."""
    await _cluster(harness, "order-1")
    await _ensure(
        harness, "order-1", ssh_public_key="ssh-ed25519 another", pull_secret='{"auths": {}}'
    )
    assert (await harness.platform.observe("order-1/cluster")).available
    assert keys(await harness.platform.list_owned()) == ["order-1/cluster"]


async def a_lost_host_degrades_the_cluster(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    node = await _join(harness, "order-1", "compute-0")
    await _join(harness, "order-1", "compute-1")
    await harness.break_host(node.host)
    seen = await harness.platform.observe("order-1/cluster")
    assert (seen.available, seen.degraded) == (True, True)
    assert {node.slot: node.ready for node in seen.nodes} == {"compute-0": False, "compute-1": True}
    assert seen.message


async def who_leaves_is_first_who_never_joined_then_not_ready_then_youngest(
    harness: PlatformHarness,
) -> None:
    await _cluster(harness, "order-1")
    slots = [f"compute-{number}" for number in range(5)]
    nodes = []
    for slot in slots[:4]:
        nodes.append(await _join(harness, "order-1", slot))
        await harness.wait(1.0)
    await harness.break_host(nodes[1].host)
    ask = partial(harness.platform.choose_leaving, "order-1/cluster", "compute", slots)
    assert list(await ask(4)) == ["compute-4", "compute-1", "compute-3", "compute-2"]
    assert list(await ask(0)) == []
    assert len((await harness.platform.observe("order-1/cluster")).nodes) == 4


async def who_leaves_is_answered_also_without_a_cluster(harness: PlatformHarness) -> None:
    slots = ["compute-0", "compute-1", "compute-2"]
    chosen = await harness.platform.choose_leaving("order-1/cluster", "compute", slots, 2)
    assert len(set(chosen)) == 2
    assert set(chosen) <= set(slots)


async def a_cluster_rests_and_wakes_up_as_it_was(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    before = await harness.platform.access("order-1/cluster")
    for rest in (RestMode.FROZEN, RestMode.STOPPED):
        await _ensure(harness, "order-1", rest=rest)
        await _ensure(harness, "order-1", rest=rest)
        seen = await harness.platform.observe("order-1/cluster")
        assert (seen.exists, seen.rest) == (True, rest)
        assert (seen.available, seen.degraded) == (False, False)
        assert len(await harness.platform.list_owned("order-1/")) == 2, "nothing of it is gone"
        await _ensure(harness, "order-1")
        await harness.until(lambda: _is_well(harness, "order-1"))
        assert (await harness.platform.observe("order-1/cluster")).rest == RestMode.AWAKE
        assert await harness.platform.access("order-1/cluster") == before


async def a_frozen_cluster_can_be_stopped(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    for rest in (RestMode.FROZEN, RestMode.STOPPED):
        await _ensure(harness, "order-1", rest=rest)
    assert (await harness.platform.observe("order-1/cluster")).rest == RestMode.STOPPED


async def a_resting_cluster_can_be_taken_back(harness: PlatformHarness) -> None:
    for order, rest in (("order-1", RestMode.FROZEN), ("order-2", RestMode.STOPPED)):
        await _cluster(harness, order)
        await _join(harness, order, "compute-0")
        await _ensure(harness, order, rest=rest)
        await _release_node(harness, order, "compute-0")
        await harness.until_done(partial(harness.platform.release_cluster, f"{order}/cluster"))
    assert await harness.platform.list_owned() == []


async def a_backup_made_again_is_the_same_backup(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    facts = await _backup(harness, "backup-1", "order-1")
    assert int(facts["bytes"]) > 0
    assert len(facts["sha256"]) == 64
    assert facts["version"] == harness.version
    assert facts["place"]
    assert await _backup(harness, "backup-1", "order-1") == facts


async def backups_are_nobodys_leftovers(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _backup(harness, "backup-1", "order-1")
    assert keys(await harness.platform.list_owned()) == ["order-1/cluster"]


async def a_backup_outlives_its_cluster_and_becomes_another(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    facts = await _backup(harness, "backup-1", "order-1")
    await harness.until_done(lambda: harness.platform.release_cluster("order-1/cluster"))
    assert await _backup(harness, "backup-1", "order-1") == facts
    await _ensure(harness, "order-2", restore=DesiredRestore("first", "backup-1/backup"))
    assert (await harness.platform.observe("order-2/cluster")).available


async def a_restore_happens_once_per_request(harness: PlatformHarness) -> None:
    """Asked again after the backup is gone, it has nothing to do."""
    await _cluster(harness, "order-1")
    await _backup(harness, "backup-1", "order-1")
    restore = DesiredRestore("first", "backup-1/backup")
    await _ensure(harness, "order-1", restore=restore)
    await harness.until_done(lambda: harness.platform.release_backup("backup-1/backup"))
    await _ensure(harness, "order-1", restore=restore)
    assert (await harness.platform.observe("order-1/cluster")).available


async def of_no_cluster_there_is_no_backup(harness: PlatformHarness) -> None:
    await unavailable(harness.platform.ensure_backup("backup-1/backup", "order-1/cluster"))


async def a_released_backup_is_gone(harness: PlatformHarness) -> None:
    assert await harness.platform.release_backup("backup-1/backup") == Done()
    await _cluster(harness, "order-1")
    await _backup(harness, "backup-1", "order-1")
    await harness.until_done(lambda: harness.platform.release_backup("backup-1/backup"))
    assert await harness.platform.release_backup("backup-1/backup") == Done()
    await harness.until_done(lambda: harness.platform.release_cluster("order-1/cluster"))
    await unavailable(harness.platform.ensure_backup("backup-1/backup", "order-1/cluster"))


async def a_service_that_does_not_answer_is_unavailable(harness: PlatformHarness) -> None:
    await harness.platform.check_ready()
    await harness.misbehave("dead")
    await unavailable(harness.platform.check_ready())
    await unavailable(harness.platform.ensure_cluster("order-1/cluster", _wanted(harness)))
    await unavailable(harness.platform.observe("order-1/cluster"))
    await unavailable(harness.platform.release_cluster("order-1/cluster"))
    await harness.misbehave("none")
    assert await harness.platform.list_owned() == []


async def a_service_that_does_not_answer_makes_no_backups(harness: PlatformHarness) -> None:
    await harness.misbehave("dead")
    await unavailable(harness.platform.ensure_backup("backup-1/backup", "order-1/cluster"))
    await unavailable(harness.platform.release_backup("backup-1/backup"))
    await harness.misbehave("none")


async def done_means_it_is_so(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _join(harness, "order-1", "compute-0")
    host, address = await harness.host_with_agent(harness.order(), "compute-1")
    node = DesiredNode("compute-1", "compute", host, address)
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    await harness.misbehave("lies")
    await not_confirmed(harness.platform.ensure_cluster("order-2/cluster", _wanted(harness)))
    await not_confirmed(
        harness.platform.ensure_cluster("order-1/cluster", cluster_wanted(harness.newer_version))
    )
    await not_confirmed(
        harness.platform.ensure_node("order-1/node/compute-1", "order-1/cluster", node)
    )
    await not_confirmed(harness.platform.release_node(*release))
    await not_confirmed(harness.platform.release_cluster("order-1/cluster"))


async def done_means_that_it_rests_and_that_it_is_kept(harness: PlatformHarness) -> None:
    await _cluster(harness, "order-1")
    await _backup(harness, "backup-1", "order-1")
    asleep = replace(_wanted(harness), rest=RestMode.STOPPED)
    restored = replace(_wanted(harness), restore=DesiredRestore("first", "backup-1/backup"))
    await harness.misbehave("lies")
    other_secret = replace(_wanted(harness), pull_secret="another")
    for corrected in (asleep, restored, other_secret):
        await not_confirmed(harness.platform.ensure_cluster("order-1/cluster", corrected))
    await not_confirmed(harness.platform.ensure_backup("backup-2/backup", "order-1/cluster"))
    await not_confirmed(harness.platform.release_backup("backup-1/backup"))


async def closing_twice_is_fine(harness: PlatformHarness) -> None:
    await harness.platform.close()
    await harness.platform.close()


def _wanted(harness: PlatformHarness) -> DesiredCluster:
    return cluster_wanted(harness.version)


async def _cluster(harness: PlatformHarness, order: str) -> None:
    await _ensure(harness, order)


async def _ensure(harness: PlatformHarness, order: str, **wanted: Any) -> None:
    ask = partial(
        harness.platform.ensure_cluster, f"{order}/cluster", replace(_wanted(harness), **wanted)
    )
    await harness.until_done(ask)


async def _backup(harness: PlatformHarness, backup: str, order: str) -> Mapping[str, str]:
    ask = partial(harness.platform.ensure_backup, f"{backup}/backup", f"{order}/cluster")
    return (await harness.until_done(ask)).facts


async def _is_well(harness: PlatformHarness, order: str) -> bool:
    seen = await harness.platform.observe(f"{order}/cluster")
    return seen.available and not seen.degraded and all(node.ready for node in seen.nodes)


async def _join(harness: PlatformHarness, order: str, slot: str) -> DesiredNode:
    host, address = await harness.host_with_agent(order, slot)
    node = DesiredNode(slot, "compute", host, address)
    ask = partial(harness.platform.ensure_node, f"{order}/node/{slot}", f"{order}/cluster", node)
    await harness.until_done(ask)
    return node


async def _release_node(harness: PlatformHarness, order: str, slot: str) -> None:
    release = (f"{order}/node/{slot}", f"{order}/cluster", slot)
    await harness.until_done(partial(harness.platform.release_node, *release))


async def _fails_with_not_found(asked: Awaitable[object]) -> None:
    try:
        answer = await asked
    except NotFound:
        return
    raise AssertionError(f"NotFound expected, not {answer}")


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_platform(rule: Rule, harness: PlatformHarness) -> None:
    await rule(harness)
