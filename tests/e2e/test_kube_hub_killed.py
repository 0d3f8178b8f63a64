"""The leader of a hub that HyperShift works on is killed again and again: all is as if nobody had died.

The operators are the command, but for a Lease of three seconds: there are many deaths to sit out.
BOATYARD_STORM_SEED is another course of things. One leader dies in each stage, under `make soak` one after another.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.control_plane import free_port
from tests.support.kube_hub.fake_hypershift import eventually
from tests.support.kube_hub.processes import KubeHubProcesses, kube_hub_processes
from tests.support.soak import soak

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

SEED = int(os.environ.get("BOATYARD_STORM_SEED", "20"))
NAMES = ("web-1", "web-2")
DEATHS = soak(short=1, long=1000)  # of leaders in one stage, at most


@pytest.fixture
def hub_processes(home: Path) -> Iterator[KubeHubProcesses]:
    words = ("--pace", "0.01", "--answer", f"127.0.0.1:{free_port()}")
    with kube_hub_processes(home, *words) as hub_processes:
        hub_processes.plant = "tests.support.kube_hub.killed_operator:brief_lease"
        yield hub_processes


def test_the_leader_is_killed_again_and_again(hub_processes: KubeHubProcesses) -> None:
    hub_processes.register("Agent")
    hub_processes.add_agents()
    hub_processes.start_operator()
    chance = random.Random(SEED)
    wish = ("--tenant", "acme", "--template", "ocp_4_17_small", "--node-set", "compute=1")
    secret = ("--pull-secret-file", str(hub_processes.pull_secret))
    began = time.monotonic()

    kills = {"create": while_killed(hub_processes, chance, "create", *wish, *secret)}
    made = hosted(hub_processes)
    assert len(made) == len(NAMES)
    kills["scale up"] = while_killed(hub_processes, chance, "scale", "compute=3")
    assert len(hub_processes.left()["agents in use"]) == 3 * len(NAMES)
    kills["scale down"] = while_killed(hub_processes, chance, "scale", "compute=1")
    assert len(hub_processes.left()["agents in use"]) == len(NAMES)
    assert hosted(hub_processes) == made, "nothing was made anew"
    kills["delete"] = while_killed(hub_processes, chance, "delete")
    eventually(
        lambda: not hub_processes.left(),
        why=lambda: f"{hub_processes.left()} {hub_processes.logs()}",
    )
    print(f"leaders killed: {kills}, {time.monotonic() - began:.0f} s")
    assert min(kills.values()) > 0, "in every stage somebody died"


def while_killed(
    hub_processes: KubeHubProcesses, chance: random.Random, verb: str, *words: str
) -> int:
    """Types it for each cluster, and kills whoever leads until all that is done or enough have died; how often.

    HyperShift stands still until the first death, so that nothing is over before it.
    """
    before, kills = wishes(hub_processes), 0
    hub_processes.player.pause()
    with ThreadPoolExecutor(len(NAMES)) as typing:
        typed = [typing.submit(hub_processes.type, verb, "cluster", name, *words) for name in NAMES]
        try:
            eventually(lambda: changed(before, wishes(hub_processes)), why=hub_processes.logs)
            while kills < DEATHS and kill(
                hub_processes, chance.uniform(0.2, 2.0), over=lambda: all_done(typed)
            ):
                kills += 1
                hub_processes.player.resume()
                assert shared(hub_processes) == {}
                hub_processes.start_operator()
        finally:
            hub_processes.player.resume()
    for one in typed:
        one.result()
    return kills


def kill(hub_processes: KubeHubProcesses, after: float, over: Callable[[], bool]) -> bool:
    """As if the leader's machine had lost its power, so long after it leads; False when it is over before that.

    An order that three leaders died of is set aside, and rightly. Nobody dies of these: each leader finishes
    one turn of theirs before it is killed, then the next one begins to count anew. What is known of that is what
    the leader announced last; where it only waits for HyperShift, that is some seconds old.
    """
    leader, at = hub_processes.lead()
    while leader is None or max(at.values(), default=0) > 1:
        if over():
            return False
        time.sleep(0.2)
        leader, at = hub_processes.lead()
    time.sleep(after)
    if over():
        return False
    leader.end(signal.SIGKILL)
    return True


def shared(hub_processes: KubeHubProcesses) -> dict[str, list[str]]:
    """Hosts in two clusters, seen while nobody leads: what is listed one after the other is one moment then."""
    found = hub_processes.shared_agents()
    return found if hub_processes.lead()[0] is None else {}


def wishes(hub_processes: KubeHubProcesses) -> dict[str, tuple[int, bool]]:
    """What is asked of each order: its generation, and whether it is to go."""
    orders = hub_processes.kubectl.list("clusterorders.osac.openshift.io")
    found = [one["metadata"] for one in orders]
    return {one["name"]: (one["generation"], "deletionTimestamp" in one) for one in found}


def changed(before: dict[str, tuple[int, bool]], now: dict[str, tuple[int, bool]]) -> bool:
    """Whether something else is asked of every cluster."""
    return len(now) == len(NAMES) and all(now[name] != before.get(name) for name in now)


def hosted(hub_processes: KubeHubProcesses) -> set[str]:
    return {one["metadata"]["uid"] for one in hub_processes.kubectl.list("hostedclusters")}


def all_done(typed: Sequence[Future[str]]) -> bool:
    return all(one.done() for one in typed)
