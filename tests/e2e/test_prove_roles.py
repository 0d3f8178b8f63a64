"""The crash proof of orders whose template has a role: it holds, and it finds what only runs can show."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.platform_profiles import find_profile
from boatyard.proof.runner import ProofOptions, prove
from tests.support.planted_bugs import roles as role_bugs
from tests.support.role_runs import processes_with
from tests.support.soak import soak, soak_cases, soak_points

BEGIN, END = "effect:automation.begin", "effect:automation.end"
# `make soak` proves every point; otherwise some of each kind: writes, claims, and effects before and after.
SAMPLE = {
    "create": (f"after:{BEGIN} post_install",),
    "scale-up": ("before:claim:hub-1/hosts",),
    "scale-down": ("after:commit:Replace Order, Due Order",),
    "delete": (f"after:{END} farewell",),
    "change-of-mind": (f"before:{BEGIN} pre_install",),
    "decide": (f"after:{BEGIN} role",),
    "take-back": ("before:effect:automation.release role",),
}
# Beginnings and ends of runs at which somebody has died in the end.
RUNS = soak_cases(
    [
        f"after:{BEGIN} post_install",
        f"before:{BEGIN} pre_install",
        f"after:{BEGIN} role",
        f"after:{BEGIN} pre_install",
        f"before:{BEGIN} post_install",
        f"after:{END} role",
    ],
    short=3,
)

Only = Callable[[str, KillPoint], bool]


@pytest.mark.timeout(3600)
async def test_a_worker_may_die_anywhere_around_a_role_and_nothing_differs(
    postgres: EmbeddedPostgres,
) -> None:
    """Whoever comes finds the run again that nobody knows of yet; one that decides goes on asking meanwhile."""
    options = ProofOptions(roles=True, only=soak_points(SAMPLE), undisturbed=soak(short=1, long=2))
    verdict = await prove(options, postgres=postgres)

    assert verdict.differences == []
    points = {(name, point) for name, found in verdict.points.items() for point in found}
    # How often an order is looked at on its way depends on time.
    assert len(points - set(verdict.killed)) <= 1 + len(points) * 0.1
    assert {name for name, _ in verdict.killed} == set(find_profile("sim", roles=True).journeys)
    assert {point.label for _, point in verdict.killed} >= set(RUNS)


def at(*labels: str) -> Only:
    return lambda _, point: point.label in labels and point.occurrence == 1


PLANTS = [
    pytest.param(
        "runs_forgotten", "change-of-mind",
        at("after:effect:automation.begin post_install"),
        "run post_install is still there", id="a run forgotten",
    ),
    pytest.param(
        "begun_by_everybody", "create",
        at("after:effect:automation.begin post_install"),
        "kept/run post_install/attempt", id="a run begun anew by whoever comes",
    ),
    pytest.param(
        "decisions_forgotten", "take-back", at(),
        "take-back: run role is still there", id="a run that decides forgotten",
    ),
    pytest.param(
        "processes_left", "scale-up", at(),
        "scale-up: processes of run acceptance/1 are still there", id="processes without a run",
    ),
]  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant, journey, only, tell_tale", soak_cases(PLANTS, short=1))
async def test_a_planted_bug_is_found(
    plant: str, journey: str, only: Only, tell_tale: str, postgres: EmbeddedPostgres
) -> None:
    options = ProofOptions(
        roles=True,
        journeys=(journey,),
        only=only,
        planted_bug=f"tests.support.planted_bugs.roles:{plant}",
        undisturbed=1,
    )
    try:
        verdict = await prove(options, postgres=postgres)
    finally:
        for pid in processes_with("sleep", role_bugs.LEFT):
            os.kill(pid, signal.SIGKILL)
    assert any(tell_tale in words for words in verdict.differences), verdict.differences
