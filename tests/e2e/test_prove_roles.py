"""The crash proof of orders whose template has a role: it holds, and it finds what only runs can show."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.proof.kill_points import Point
from boatyard.proof.platform_profiles import ground_of
from boatyard.proof.runner import Options, prove
from tests.support import role_plants
from tests.support.automation import processes_with
from tests.support.soak import soak, soak_cases

# `make soak` proves every point.
EVERY = soak(short=60, long=1)

Only = Callable[[str, Point], bool]


@pytest.mark.timeout(3600)
async def test_a_worker_may_die_anywhere_around_a_role_and_nothing_differs(
    postgres: EmbeddedPostgres,
) -> None:
    verdict = await prove(Options(roles=True, every=EVERY), postgres=postgres)

    assert verdict.differences == []
    points = {(name, point) for name, found in verdict.points.items() for point in found}
    # How often an order is looked at on its way depends on time.
    assert len(points - set(verdict.killed)) <= 1 + len(points) * 0.1
    assert {name for name, _ in verdict.killed} == set(ground_of("sim", roles=True).journeys)


@pytest.mark.timeout(3600)
async def test_every_beginning_and_end_of_a_run_is_a_place_to_die(
    postgres: EmbeddedPostgres,
) -> None:
    """In a creation, of the part before and the part after the platform's work."""

    def run_of(journey: str, point: Point) -> bool:
        return "automation" in point.label and "_install" in point.label

    options = Options(roles=True, journeys=("create",), only=run_of, undisturbed=1)
    verdict = await prove(options, postgres=postgres)
    assert verdict.differences == []
    assert {point.label for _, point in verdict.killed} >= {
        f"{moment}:effect:automation.begin {part}"
        for moment in ("before", "after")
        for part in ("pre_install", "post_install")
    }


def at(*labels: str) -> Only:
    return lambda _, point: point.label in labels and point.time == 1


@pytest.mark.timeout(3600)
async def test_a_worker_may_die_while_a_role_decides(postgres: EmbeddedPostgres) -> None:
    """Its run goes on asking, and is found again by whoever comes."""

    def run_of(journey: str, point: Point) -> bool:
        return point.label in (
            "after:effect:automation.begin role",
            "after:effect:automation.end role",
        )

    options = Options(roles=True, journeys=("decide", "take-back"), only=run_of, undisturbed=1)
    verdict = await prove(options, postgres=postgres)
    assert verdict.differences == []
    assert {point.label for _, point in verdict.killed} == {
        f"after:effect:automation.{moment} role" for moment in ("begin", "end")
    }


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
    options = Options(
        roles=True,
        journeys=(journey,),
        only=only,
        plant=f"tests.support.role_plants:{plant}",
        undisturbed=1,
    )
    try:
        verdict = await prove(options, postgres=postgres)
    finally:
        for pid in processes_with("sleep", role_plants.LEFT):
            os.kill(pid, signal.SIGKILL)
    assert any(tell_tale in words for words in verdict.differences), verdict.differences
