"""The crash proof on real clusters: it holds, it leaves nothing, and it finds bugs that only it can find."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.proof.environment import ProofTimings
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.platform_profiles import find_profile
from boatyard.proof.runner import ProofOptions, prove
from tests.support.assets import needs_assets
from tests.support.soak import soak, soak_cases, soak_points

pytestmark = pytest.mark.real

# `make soak` proves every point and every part of a scenario; otherwise one point of each stage, of all kinds together:
# writes, claims, and effects in the data centre's services, in the keeper and of checks.
EVERY = soak(short=60, long=1)
SAMPLE = {
    "create": ("after:effect:keeper.ensure_cluster cluster",),
    "scale-up": ("after:claim:local/hosts",),
    "scale-down": ("before:effect:keeper.release_node node/compute-1",),
    "delete": ("after:effect:l2.release_port port/compute-0",),
    "upgrade": ("after:commit:Replace Order, Due Order",),
    "hibernate": ("before:effect:keeper.ensure_cluster cluster",),
    "resume": ("before:effect:check.create boatyard-check-workload",),
    "change-of-mind": ("after:effect:keeper.ensure_node node/compute-0",),
}

Only = Callable[[str, KillPoint], bool]


@pytest.fixture(autouse=True)
def _assets() -> None:
    needs_assets()


@pytest.mark.timeout(3600)
async def test_workers_and_the_keeper_may_die_anywhere_and_nothing_differs(
    postgres: EmbeddedPostgres,
) -> None:
    options = ProofOptions(
        platform="local",
        every=EVERY,
        only=soak_points(SAMPLE),
        undisturbed=soak(short=1, long=2),
    )
    verdict = await prove(options, postgres=postgres)

    assert verdict.differences == []
    points = {(name, point) for name, found in verdict.points.items() for point in found}
    missed = points - set(verdict.killed)
    # How often a cluster is seen on its way depends on time; every effect and claim must be met.
    assert {point.category for _, point in missed} <= {"write"}
    assert len(missed) <= 1 + len(points) * 0.05
    assert {name for name, _ in verdict.killed} == set(find_profile("local").journeys)


def at(*labels: str) -> Only:
    return lambda _, point: point.label in labels and point.occurrence == 1


# Long enough for a cluster to come up on a busy machine; one that never does is waited for as long.
IMPATIENT = ProofTimings(look_seconds=0.1, timeout_seconds=40.0, settle_seconds=2.0)


PLANTS = [
    pytest.param(
        "node_record_forgotten",
        "scale-down",
        at(),
        # By whom it is seen first is a matter of moments.
        "it is (DEGRADED|PROGRESSING)|not recorded|claimed by nobody|compute-1",
        id="a node's record is not released",
    ),
    pytest.param(
        "cluster_release_forgotten",
        "delete",
        at(),
        "cluster plain-0 is still there under plain-0/cluster",
        id="a release is answered and not done",
    ),
    pytest.param(
        "fresh_key_each_time",
        "create",
        at("after:effect:keeper.ensure_cluster cluster"),
        "etcd-0 runs 2 times",
        id="a cluster is asked for with a fresh key",
    ),
    pytest.param(
        "trial_of_its_own",
        "create",
        at("after:effect:check.create boatyard-check-workload"),
        "left by checks",
        id="a check forgets what it tried",
    ),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant, journey, only, tell_tale", soak_cases(PLANTS, short=1))
async def test_a_bug_planted_in_workers_is_found(
    plant: str, journey: str, only: Only, tell_tale: str, postgres: EmbeddedPostgres
) -> None:
    options = ProofOptions(
        platform="local",
        journeys=(journey,),
        only=only,
        planted_bug=f"tests.support.planted_bugs.local:{plant}",
        timings=IMPATIENT,
        undisturbed=1,
    )

    verdict = await prove(options, postgres=postgres)

    assert any(re.search(tell_tale, words) for words in verdict.differences), verdict.differences


@pytest.mark.timeout(600)
async def test_a_keeper_that_forgets_its_processes_is_found(postgres: EmbeddedPostgres) -> None:
    options = ProofOptions(
        platform="local",
        journeys=("killed-keeper",),
        every=1000,
        keeper_planted_bug="tests.support.planted_bugs.local:keeper_without_memory",
        timings=IMPATIENT,
        undisturbed=1,
    )

    verdict = await prove(options, postgres=postgres)

    assert any("runs 2 times" in words for words in verdict.differences), verdict.differences


@pytest.mark.timeout(300)
def test_an_interrupted_proof_leaves_no_process_and_no_file(home: Path) -> None:
    command = [sys.executable, "-m", "boatyard.app.main", "prove", "--platform", "local"]
    environ = {**os.environ, "TMPDIR": str(home)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as proof:
        while not _running_in(home, "kube-apiserver"):
            with pytest.raises(subprocess.TimeoutExpired):
                proof.wait(timeout=0.2)
        proof.send_signal(signal.SIGTERM)
        assert proof.wait(timeout=200) == 130

    assert _running_in(home, "") == []
    assert list(home.iterdir()) == []


def _running_in(place: Path, program: str) -> list[str]:
    """The processes that work in a directory or below, and are called so."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            inside = Path(os.readlink(entry / "cwd")).is_relative_to(place)
        except OSError:
            continue
        if inside and words.endswith(program):
            found.append(words)
    return found
