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
from tests.support.hypershift_player import eventually
from tests.support.kube_site import KubeSite, kube_site
from tests.support.soak import soak

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

SEED = int(os.environ.get("BOATYARD_STORM_SEED", "20"))
NAMES = ("web-1", "web-2")
DEATHS = soak(short=1, long=1000)  # of leaders in one stage, at most


@pytest.fixture
def site(home: Path) -> Iterator[KubeSite]:
    words = ("--pace", "0.01", "--answer", f"127.0.0.1:{free_port()}")
    with kube_site(home, *words) as site:
        site.plant = "tests.support.dying_operator:brief_lease"
        yield site


def test_the_leader_is_killed_again_and_again(site: KubeSite) -> None:
    site.register("Agent")
    site.add_agents()
    site.start_operator()
    chance = random.Random(SEED)
    wish = ("--tenant", "acme", "--template", "ocp_4_17_small", "--node-set", "compute=1")
    secret = ("--pull-secret-file", str(site.pull_secret))
    began = time.monotonic()

    kills = {"create": while_killed(site, chance, "create", *wish, *secret)}
    made = hosted(site)
    assert len(made) == len(NAMES)
    kills["scale up"] = while_killed(site, chance, "scale", "compute=3")
    assert len(site.left()["agents in use"]) == 3 * len(NAMES)
    kills["scale down"] = while_killed(site, chance, "scale", "compute=1")
    assert len(site.left()["agents in use"]) == len(NAMES)
    assert hosted(site) == made, "nothing was made anew"
    kills["delete"] = while_killed(site, chance, "delete")
    eventually(lambda: not site.left(), why=lambda: f"{site.left()} {site.logs()}")
    print(f"leaders killed: {kills}, {time.monotonic() - began:.0f} s")
    assert min(kills.values()) > 0, "in every stage somebody died"


def while_killed(site: KubeSite, chance: random.Random, verb: str, *words: str) -> int:
    """Types it for each cluster, and kills whoever leads until all that is done or enough have died; how often.

    HyperShift stands still until the first death, so that nothing is over before it.
    """
    before, kills = wishes(site), 0
    site.player.pause()
    with ThreadPoolExecutor(len(NAMES)) as typing:
        typed = [typing.submit(site.type, verb, "cluster", name, *words) for name in NAMES]
        try:
            eventually(lambda: changed(before, wishes(site)), why=site.logs)
            while kills < DEATHS and kill(
                site, chance.uniform(0.2, 2.0), over=lambda: all_done(typed)
            ):
                kills += 1
                site.player.resume()
                assert shared(site) == {}
                site.start_operator()
        finally:
            site.player.resume()
    for one in typed:
        one.result()
    return kills


def kill(site: KubeSite, after: float, over: Callable[[], bool]) -> bool:
    """As if the leader's machine had lost its power, so long after it leads; False when it is over before that.

    An order that three leaders died of is set aside, and rightly. Nobody dies of these: each leader finishes
    one turn of theirs before it is killed, then the next one begins to count anew. What is known of that is what
    the leader announced last; where it only waits for HyperShift, that is some seconds old.
    """
    leader, at = site.lead()
    while leader is None or max(at.values(), default=0) > 1:
        if over():
            return False
        time.sleep(0.2)
        leader, at = site.lead()
    time.sleep(after)
    if over():
        return False
    leader.end(signal.SIGKILL)
    return True


def shared(site: KubeSite) -> dict[str, list[str]]:
    """Hosts in two clusters, seen while nobody leads: what is listed one after the other is one moment then."""
    found = site.shared_agents()
    return found if site.lead()[0] is None else {}


def wishes(site: KubeSite) -> dict[str, tuple[int, bool]]:
    """What is asked of each order: its generation, and whether it is to go."""
    orders = site.kubectl.list("clusterorders.osac.openshift.io")
    found = [one["metadata"] for one in orders]
    return {one["name"]: (one["generation"], "deletionTimestamp" in one) for one in found}


def changed(before: dict[str, tuple[int, bool]], now: dict[str, tuple[int, bool]]) -> bool:
    """Whether something else is asked of every cluster."""
    return len(now) == len(NAMES) and all(now[name] != before.get(name) for name in now)


def hosted(site: KubeSite) -> set[str]:
    return {one["metadata"]["uid"] for one in site.kubectl.list("hostedclusters")}


def all_done(typed: Sequence[Future[str]]) -> bool:
    return all(one.done() for one in typed)
