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
from boatyard.platforms.port import HAS_NODES, ClusterWanted, NodeWanted, Rest, RestoreWanted
from tests.contracts.bench import Bench
from tests.contracts.rules import Rule, keys, not_confirmed, refuses, rules_of, unavailable

PORT = "platform"
VERSION, NEWER = "4.17.1", "4.17.2"  # a site with other versions sets them
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def a_cluster_made_again_is_one_cluster(bench: Bench) -> None:
    wanted = _wanted()
    await bench.until_done(lambda: bench.platform.ensure_cluster("order-1/cluster", wanted))
    assert isinstance(await bench.platform.ensure_cluster("order-1/cluster", wanted), Done)
    assert keys(await bench.platform.list_owned("order-1/")) == ["order-1/cluster"]
    seen = await bench.platform.observe("order-1/cluster")
    assert (seen.exists, seen.available, seen.degraded) == (True, True, False)
    assert seen.version == wanted.version


async def clusters_of_strangers_may_share_a_name(bench: Bench) -> None:
    for order in ("order-1", "order-2"):
        ask = partial(bench.platform.ensure_cluster, f"{order}/cluster", _wanted())
        await bench.until_done(ask)
    assert keys(await bench.platform.list_owned()) == ["order-1/cluster", "order-2/cluster"]


async def a_new_version_is_a_correction(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await bench.until_done(lambda: bench.platform.ensure_cluster("order-1/cluster", _wanted(NEWER)))
    seen = await bench.platform.observe("order-1/cluster")
    assert (seen.available, seen.version) == (True, NEWER)
    assert keys(await bench.platform.list_owned()) == ["order-1/cluster"]


async def an_unknown_cluster_does_not_exist(bench: Bench) -> None:
    assert not (await bench.platform.observe("order-1/cluster")).exists
    await _fails_with_not_found(bench.platform.access("order-1/cluster"))


async def access_is_what_kubectl_can_read(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    access = await bench.platform.access("order-1/cluster")
    config = yaml.safe_load(access.kubeconfig)
    assert config["kind"] == "Config"
    assert config["clusters"][0]["cluster"]["server"] == access.api_url
    assert access.api_url.startswith("https://")
    assert not access.console_url or access.console_url.startswith("https://")
    assert bool(access.username) == bool(access.password)
    assert await bench.platform.access("order-1/cluster") == access


async def a_host_that_joins_again_is_one_ready_node(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    node = await _join(bench, "order-1", "compute-0")
    again = await bench.platform.ensure_node("order-1/node/compute-0", "order-1/cluster", node)
    assert isinstance(again, Done)
    (seen,) = (await bench.platform.observe("order-1/cluster")).nodes
    assert (seen.slot, seen.node_set, seen.ready) == ("compute-0", "compute", True)
    assert keys(await bench.platform.list_owned("order-1/node/")) == ["order-1/node/compute-0"]


async def a_host_cannot_be_a_node_twice(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    node = await _join(bench, "order-1", "compute-0")
    twice = replace(node, slot="compute-1")
    await refuses(bench.platform.ensure_node("order-1/node/compute-1", "order-1/cluster", twice))
    assert len((await bench.platform.observe("order-1/cluster")).nodes) == 1


async def a_node_of_another_key_is_left_alone(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    stranger = ("order-2/node/compute-0", "order-1/cluster", "compute-0")
    await refuses(bench.platform.release_node(*stranger))
    assert len((await bench.platform.observe("order-1/cluster")).nodes) == 1


async def a_node_cannot_join_no_cluster(bench: Bench) -> None:
    host, address = await bench.joined_host(bench.order(), "compute-0")
    node = NodeWanted("compute-0", "compute", host, address)
    await unavailable(bench.platform.ensure_node("order-1/node/0", "order-1/cluster", node))
    assert await bench.platform.list_owned() == []


async def a_released_node_is_gone(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    await bench.until_done(lambda: bench.platform.release_node(*release))
    assert await bench.platform.release_node(*release) == Done()
    assert (await bench.platform.observe("order-1/cluster")).nodes == ()


async def releasing_nothing_is_done(bench: Bench) -> None:
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    assert await bench.platform.release_node(*release) == Done()
    assert await bench.platform.release_cluster("order-1/cluster") == Done()


async def a_released_cluster_is_gone_with_all_it_holds(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    await _release_node(bench, "order-1", "compute-0")
    await bench.until_done(lambda: bench.platform.release_cluster("order-1/cluster"))
    assert await bench.platform.release_cluster("order-1/cluster") == Done()
    assert await bench.platform.list_owned() == []
    assert not (await bench.platform.observe("order-1/cluster")).exists
    await _fails_with_not_found(bench.platform.access("order-1/cluster"))


async def no_node_outlives_its_cluster(bench: Bench) -> None:
    """Released with a node on it, a cluster takes the node along, or stays as it is until that is gone."""
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    waits = False

    async def ends_or_waits() -> bool:
        nonlocal waits
        outcome = await bench.platform.release_cluster("order-1/cluster")
        waits = isinstance(outcome, Waiting) and outcome.reason == HAS_NODES
        return waits or isinstance(outcome, Done)

    await bench.until(ends_or_waits)
    if waits:
        cluster = await bench.platform.observe("order-1/cluster")
        assert (cluster.exists, cluster.available) == (True, True)
        assert [node.ready for node in cluster.nodes] == [True]
        await _release_node(bench, "order-1", "compute-0")
        await bench.until_done(lambda: bench.platform.release_cluster("order-1/cluster"))
    assert await bench.platform.list_owned() == []


async def a_changed_wish_is_a_correction(bench: Bench) -> None:
    """Whatever else is wanted of a cluster may change while it runs, and it stays one cluster."""
    await _cluster(bench, "order-1")
    await _ensure(
        bench, "order-1", ssh_public_key="ssh-ed25519 another", pull_secret='{"auths": {}}'
    )
    assert (await bench.platform.observe("order-1/cluster")).available
    assert keys(await bench.platform.list_owned()) == ["order-1/cluster"]


async def a_lost_host_degrades_the_cluster(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    node = await _join(bench, "order-1", "compute-0")
    await _join(bench, "order-1", "compute-1")
    await bench.break_host(node.host)
    seen = await bench.platform.observe("order-1/cluster")
    assert (seen.available, seen.degraded) == (True, True)
    assert {node.slot: node.ready for node in seen.nodes} == {"compute-0": False, "compute-1": True}
    assert seen.message


async def who_leaves_is_first_who_never_joined_then_not_ready_then_youngest(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    slots = [f"compute-{number}" for number in range(5)]
    nodes = []
    for slot in slots[:4]:
        nodes.append(await _join(bench, "order-1", slot))
        await bench.wait(1.0)
    await bench.break_host(nodes[1].host)
    ask = partial(bench.platform.choose_leaving, "order-1/cluster", "compute", slots)
    assert list(await ask(4)) == ["compute-4", "compute-1", "compute-3", "compute-2"]
    assert list(await ask(0)) == []
    assert len((await bench.platform.observe("order-1/cluster")).nodes) == 4


async def who_leaves_is_answered_also_without_a_cluster(bench: Bench) -> None:
    slots = ["compute-0", "compute-1", "compute-2"]
    chosen = await bench.platform.choose_leaving("order-1/cluster", "compute", slots, 2)
    assert len(set(chosen)) == 2
    assert set(chosen) <= set(slots)


async def a_cluster_rests_and_wakes_up_as_it_was(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    before = await bench.platform.access("order-1/cluster")
    for rest in (Rest.FROZEN, Rest.STOPPED):
        await _ensure(bench, "order-1", rest=rest)
        await _ensure(bench, "order-1", rest=rest)
        seen = await bench.platform.observe("order-1/cluster")
        assert (seen.exists, seen.rest) == (True, rest)
        assert (seen.available, seen.degraded) == (False, False)
        assert len(await bench.platform.list_owned("order-1/")) == 2, "nothing of it is gone"
        await _ensure(bench, "order-1")
        await bench.until(lambda: _is_well(bench, "order-1"))
        assert (await bench.platform.observe("order-1/cluster")).rest == Rest.AWAKE
        assert await bench.platform.access("order-1/cluster") == before


async def a_frozen_cluster_can_be_stopped(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    for rest in (Rest.FROZEN, Rest.STOPPED):
        await _ensure(bench, "order-1", rest=rest)
    assert (await bench.platform.observe("order-1/cluster")).rest == Rest.STOPPED


async def a_resting_cluster_can_be_taken_back(bench: Bench) -> None:
    for order, rest in (("order-1", Rest.FROZEN), ("order-2", Rest.STOPPED)):
        await _cluster(bench, order)
        await _join(bench, order, "compute-0")
        await _ensure(bench, order, rest=rest)
        await _release_node(bench, order, "compute-0")
        await bench.until_done(partial(bench.platform.release_cluster, f"{order}/cluster"))
    assert await bench.platform.list_owned() == []


async def a_backup_made_again_is_the_same_backup(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    facts = await _backup(bench, "backup-1", "order-1")
    assert int(facts["bytes"]) > 0
    assert len(facts["sha256"]) == 64
    assert facts["version"] == _wanted().version
    assert facts["place"]
    assert await _backup(bench, "backup-1", "order-1") == facts


async def backups_are_nobodys_leftovers(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _backup(bench, "backup-1", "order-1")
    assert keys(await bench.platform.list_owned()) == ["order-1/cluster"]


async def a_backup_outlives_its_cluster_and_becomes_another(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    facts = await _backup(bench, "backup-1", "order-1")
    await bench.until_done(lambda: bench.platform.release_cluster("order-1/cluster"))
    assert await _backup(bench, "backup-1", "order-1") == facts
    await _ensure(bench, "order-2", restore=RestoreWanted("first", "backup-1/backup"))
    assert (await bench.platform.observe("order-2/cluster")).available


async def a_restore_happens_once_per_request(bench: Bench) -> None:
    """Asked again after the backup is gone, it has nothing to do."""
    await _cluster(bench, "order-1")
    await _backup(bench, "backup-1", "order-1")
    restore = RestoreWanted("first", "backup-1/backup")
    await _ensure(bench, "order-1", restore=restore)
    await bench.until_done(lambda: bench.platform.release_backup("backup-1/backup"))
    await _ensure(bench, "order-1", restore=restore)
    assert (await bench.platform.observe("order-1/cluster")).available


async def of_no_cluster_there_is_no_backup(bench: Bench) -> None:
    await unavailable(bench.platform.ensure_backup("backup-1/backup", "order-1/cluster"))


async def a_released_backup_is_gone(bench: Bench) -> None:
    assert await bench.platform.release_backup("backup-1/backup") == Done()
    await _cluster(bench, "order-1")
    await _backup(bench, "backup-1", "order-1")
    await bench.until_done(lambda: bench.platform.release_backup("backup-1/backup"))
    assert await bench.platform.release_backup("backup-1/backup") == Done()
    await bench.until_done(lambda: bench.platform.release_cluster("order-1/cluster"))
    await unavailable(bench.platform.ensure_backup("backup-1/backup", "order-1/cluster"))


async def a_service_that_does_not_answer_is_unavailable(bench: Bench) -> None:
    await bench.platform.check_ready()
    await bench.misbehave("platform", "dead")
    await unavailable(bench.platform.check_ready())
    await unavailable(bench.platform.ensure_cluster("order-1/cluster", _wanted()))
    await unavailable(bench.platform.observe("order-1/cluster"))
    await unavailable(bench.platform.release_cluster("order-1/cluster"))
    await bench.misbehave("platform", "none")
    assert await bench.platform.list_owned() == []


async def a_service_that_does_not_answer_makes_no_backups(bench: Bench) -> None:
    await bench.misbehave("platform", "dead")
    await unavailable(bench.platform.ensure_backup("backup-1/backup", "order-1/cluster"))
    await unavailable(bench.platform.release_backup("backup-1/backup"))
    await bench.misbehave("platform", "none")


async def done_means_it_is_so(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _join(bench, "order-1", "compute-0")
    host, address = await bench.joined_host(bench.order(), "compute-1")
    node = NodeWanted("compute-1", "compute", host, address)
    release = ("order-1/node/compute-0", "order-1/cluster", "compute-0")
    await bench.misbehave("platform", "lies")
    await not_confirmed(bench.platform.ensure_cluster("order-2/cluster", _wanted()))
    await not_confirmed(bench.platform.ensure_cluster("order-1/cluster", _wanted(NEWER)))
    await not_confirmed(
        bench.platform.ensure_node("order-1/node/compute-1", "order-1/cluster", node)
    )
    await not_confirmed(bench.platform.release_node(*release))
    await not_confirmed(bench.platform.release_cluster("order-1/cluster"))


async def done_means_that_it_rests_and_that_it_is_kept(bench: Bench) -> None:
    await _cluster(bench, "order-1")
    await _backup(bench, "backup-1", "order-1")
    asleep = replace(_wanted(), rest=Rest.STOPPED)
    restored = replace(_wanted(), restore=RestoreWanted("first", "backup-1/backup"))
    await bench.misbehave("platform", "lies")
    other_secret = replace(_wanted(), pull_secret="another")
    for corrected in (asleep, restored, other_secret):
        await not_confirmed(bench.platform.ensure_cluster("order-1/cluster", corrected))
    await not_confirmed(bench.platform.ensure_backup("backup-2/backup", "order-1/cluster"))
    await not_confirmed(bench.platform.release_backup("backup-1/backup"))


async def closing_twice_is_fine(bench: Bench) -> None:
    await bench.platform.close()
    await bench.platform.close()


def _wanted(version: str = "") -> ClusterWanted:
    version = version or VERSION
    return ClusterWanted(
        name="one",
        version=version,
        release_image=f"registry.invalid/release:{version}",
        api_name="api.one.boston.example",
        api_address="198.51.100.1",
        ingress_name="*.apps.one.boston.example",
        ingress_address="198.51.100.2",
        pod_cidr="10.128.0.0/14",
        service_cidr="172.30.0.0/16",
        machine_cidr="10.4.0.0/24",
        gateway="10.4.0.1",
        ssh_public_key="",
        pull_secret="{}",
    )


async def _cluster(bench: Bench, order: str) -> None:
    await _ensure(bench, order)


async def _ensure(bench: Bench, order: str, **wanted: Any) -> None:
    ask = partial(bench.platform.ensure_cluster, f"{order}/cluster", replace(_wanted(), **wanted))
    await bench.until_done(ask)


async def _backup(bench: Bench, backup: str, order: str) -> Mapping[str, str]:
    ask = partial(bench.platform.ensure_backup, f"{backup}/backup", f"{order}/cluster")
    return (await bench.until_done(ask)).facts


async def _is_well(bench: Bench, order: str) -> bool:
    seen = await bench.platform.observe(f"{order}/cluster")
    return seen.available and not seen.degraded and all(node.ready for node in seen.nodes)


async def _join(bench: Bench, order: str, slot: str) -> NodeWanted:
    host, address = await bench.joined_host(order, slot)
    node = NodeWanted(slot, "compute", host, address)
    ask = partial(bench.platform.ensure_node, f"{order}/node/{slot}", f"{order}/cluster", node)
    await bench.until_done(ask)
    return node


async def _release_node(bench: Bench, order: str, slot: str) -> None:
    release = (f"{order}/node/{slot}", f"{order}/cluster", slot)
    await bench.until_done(partial(bench.platform.release_node, *release))


async def _fails_with_not_found(asked: Awaitable[object]) -> None:
    try:
        answer = await asked
    except NotFound:
        return
    raise AssertionError(f"NotFound expected, not {answer}")


@pytest.mark.parametrize("rule", rules_of(globals()), ids=lambda rule: rule.__name__)
async def test_platform(rule: Rule, bench: Bench) -> None:
    await rule(bench)
