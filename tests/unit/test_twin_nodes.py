"""Nodes of simulated clusters: they hold up the release of their cluster, and a drain takes its time."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.outcome import Done, Waiting
from tests.unit.test_twin_world import WorldCaller, install, join


def release_node(caller: WorldCaller, slot: str, **how: bool) -> Any:
    key = f"o/node/{slot}"
    return caller.do("platform.release_node", key=key, cluster_key="o/cluster", slot=slot, **how)


def test_a_cluster_is_not_removed_while_it_has_nodes() -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")

    waiting = caller.do("platform.release_cluster", key="o/cluster")
    observed = caller.do("platform.observe", cluster_key="o/cluster")
    release_node(caller, "a")

    assert waiting.reason == "HasNodes"
    assert (observed["available"], len(observed["nodes"])) == (True, 1)
    assert caller.do("platform.release_cluster", key="o/cluster") == Done()


def test_a_cluster_waits_for_the_last_of_its_nodes_to_be_drained() -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")
    caller.do("twin.set_delays", profile="instant", overrides={"-node": 3.0})
    release_node(caller, "a")

    waiting = caller.do("platform.release_cluster", key="o/cluster")
    caller.now += waiting.look_again

    assert waiting == Waiting("The cluster still has nodes.", 3.0, reason="HasNodes")
    assert caller.do("platform.release_cluster", key="o/cluster") == Done()


@pytest.mark.parametrize("draining", [False, True], ids=["at work", "being drained"])
def test_only_a_drain_takes_time(draining: bool) -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")
    caller.do("twin.set_delays", profile="instant", overrides={"-node": 3.0})
    if draining:
        assert isinstance(release_node(caller, "a", drain=True), Waiting)

    assert release_node(caller, "a", drain=False) == Done()
    assert caller.counts("o/node/") == {("o/node/a", "node"): (1, 1)}


def test_a_node_that_is_kept_stays_also_without_a_drain() -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")
    caller.do("twin.set_mood", order_id="o", step="nodes", mood="kept")

    assert release_node(caller, "a", drain=False).reason == "Stuck"
