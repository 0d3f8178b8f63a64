"""The crash proof: it holds, and it is seen to fail on each of six planted bugs."""

from __future__ import annotations

import json
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
from tests.support.soak import soak

STANDING_STILL = ("stopped-worker", "late-effect")
KILLING = tuple(name for name in find_profile("sim").journeys if name not in STANDING_STILL)

# `make soak` proves every point. Places before and after something take turns: an odd number meets both.
EVERY = soak(short=5, long=1)

Only = Callable[[str, KillPoint], bool]


@pytest.mark.timeout(900)
async def test_a_worker_may_die_anywhere_and_nothing_differs(postgres: EmbeddedPostgres) -> None:
    verdict = await prove(ProofOptions(journeys=KILLING, every=EVERY), postgres=postgres)

    assert verdict.differences == []
    points = {(name, point) for name, found in verdict.points.items() for point in found}
    missed = points - set(verdict.killed)
    assert len(points) > 150 // EVERY
    assert {point.category for _, point in verdict.killed} == {"write", "claim", "effect"}
    assert {point.moment for _, point in verdict.killed} == {"before", "after"}
    # Which passing states a cluster is seen in depends on time; every effect and claim must be met.
    assert {point.category for _, point in missed} <= {"write"}
    assert len(missed) <= 1 + len(points) * 0.05


@pytest.mark.timeout(300)
async def test_a_worker_that_stood_still_past_its_lease_changes_nothing_any_more(
    postgres: EmbeddedPostgres,
) -> None:
    verdict = await prove(ProofOptions(journeys=STANDING_STILL, environments=2), postgres=postgres)

    assert verdict.differences == []
    assert len(verdict.killed) == 7


def at(*labels: str) -> Only:
    return lambda _, point: point.label in labels


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "plant, journey, only, tell_tale",
    [
        pytest.param(
            "effect_without_its_key",
            "create",
            at("after:effect:inventory.ensure_held host/compute-0"),
            "held/hub-1 host host/compute-0: 2 instead of 1",
            id="an effect without its key",
        ),
        pytest.param(
            "release_of_finished_steps_only",
            "change-of-mind",
            at("after:effect:l2.ensure_network l2"),
            "network l2 is still there",
            id="release of finished steps only",
        ),
        pytest.param(
            "claim_forgotten", "delete", at(), "is still claimed by", id="a claim forgotten"
        ),
        pytest.param(
            "stale_write_accepted",
            "stopped-worker",
            at(),
            "after it woke",
            id="a stale write accepted",
        ),
        pytest.param(
            "refused_retried", "refused", at(), "was refused and asked for", id="a Refused retried"
        ),
        pytest.param(
            "hint_as_the_only_trigger",
            "lost-hint",
            at(),
            "did not get there",
            id="a hint as the only trigger",
        ),
    ],
)
async def test_a_planted_bug_is_found(
    plant: str, journey: str, only: Only, tell_tale: str, postgres: EmbeddedPostgres
) -> None:
    options = ProofOptions(
        journeys=(journey,),
        only=only,
        environments=1,
        planted_bug=f"tests.support.planted_bugs.proof:{plant}",
        timings=ProofTimings(timeout_seconds=10.0),
    )

    verdict = await prove(options, postgres=postgres)

    assert not verdict.is_proven
    assert any(tell_tale in words for words in verdict.differences), verdict.differences


@pytest.mark.timeout(300)
def test_the_command_shows_a_table_and_ends_with_zero(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "boatyard.app.main", "prove", "--journeys", "scale-up"]

    ended = subprocess.run(
        [*command, "--every", "40", "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "scale-up" in ended.stdout
    assert "0 differences" in ended.stdout
    assert json.loads(file.read_text())["proven"] is True


def test_a_journey_that_there_is_not_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "boatyard.app.main", "prove", "--journeys", "nowhere"]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert "nowhere" in ended.stderr


def test_real_clusters_without_their_programs_are_refused_with_the_remedy() -> None:
    command = [sys.executable, "-m", "boatyard.app.main", "prove", "--platform", "local"]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert "boatyard assets install" in ended.stderr
