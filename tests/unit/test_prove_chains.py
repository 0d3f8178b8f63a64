"""How the proof deals its points out: every one once, and a successor dies only where it can know the place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from boatyard.proof.journeys import CREATE, DELETE, SCALE_UP, ClusterLife
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.kill_schedule import (
    assign_chains,
    merge_points,
    pair_points,
    select_steady_points,
)


def passed(*labels: str) -> list[KillPoint]:
    """The points of a run that passes these labels in this order."""
    return [KillPoint(label, labels[: n + 1].count(label)) for n, label in enumerate(labels)]


WRITES = ("before:commit:Order", "after:commit:Order")
EFFECTS = tuple(
    f"{moment}:effect:{name}" for name in ("a", "b", "c", "d") for moment in ("before", "after")
)


@pytest.mark.parametrize("deaths", [1, 2])
@pytest.mark.parametrize(
    "points",
    [
        pytest.param([], id="nothing"),
        pytest.param(passed("x"), id="one"),
        pytest.param(passed(*WRITES, *EFFECTS, *WRITES), id="a stage"),
        pytest.param(passed(*WRITES * 6), id="always the same"),
    ],
)
def test_every_point_is_dealt_once(points: list[KillPoint], deaths: int) -> None:
    chains = pair_points(points, deaths)

    assert sorted(point for chain in chains for point in chain) == sorted(points)
    assert all(len(chain) <= deaths for chain in chains)


def test_one_death_in_a_stage_is_one_point_in_a_chain() -> None:
    points = passed(*WRITES, *EFFECTS)

    assert pair_points(points, 1) == [(point,) for point in points]


def test_a_successor_has_not_missed_a_place_of_the_same_name() -> None:
    points = passed(*WRITES, *EFFECTS, *WRITES, *EFFECTS[:2])
    places = {point: number for number, point in enumerate(points)}
    begins = {point.label: places[point] for point in points if point.occurrence == 1}

    pairs = [chain for chain in pair_points(points, 2) if len(chain) == 2]

    assert pairs
    for first, second in pairs:
        assert places[first] <= begins[second.label]
        assert places[first] < places[second]


@pytest.mark.parametrize(
    "runs, expected",
    [
        pytest.param([EFFECTS, EFFECTS], EFFECTS, id="the same in both"),
        pytest.param([EFFECTS, EFFECTS[:3]], EFFECTS[:3], id="only in one"),
        pytest.param(
            [WRITES * 3, WRITES * 4], WRITES * 3, id="of writes as many as come in every run"
        ),
        pytest.param(
            [EFFECTS[:2] * 3, EFFECTS[:2] * 4],
            EFFECTS[:2] * 2,
            id="of an effect that is waited for the first two",
        ),
        pytest.param(
            [EFFECTS[:2] * 3, EFFECTS[:2] * 3],
            EFFECTS[:2] * 3,
            id="of an effect that always comes three times all three",
        ),
    ],
)
def test_points_that_depend_on_the_machine_are_left_out(
    runs: Sequence[Sequence[str]], expected: Sequence[str]
) -> None:
    assert select_steady_points([passed(*run) for run in runs]) == passed(*expected)


def test_where_nothing_depends_on_the_machine_every_point_counts() -> None:
    assert merge_points([passed("a", "b"), passed("a", "c")]) == [
        KillPoint("a"),
        KillPoint("b"),
        KillPoint("c"),
    ]


def test_the_plainest_life_takes_what_the_others_do_not_need() -> None:
    long, plain = (
        ClusterLife("long", (CREATE, SCALE_UP, DELETE)),
        ClusterLife("plain", (CREATE, DELETE)),
    )
    chains = {
        "create": [(KillPoint("c1"),), (KillPoint("c2"),), (KillPoint("c3"),)],
        "scale-up": [(KillPoint("s1"), KillPoint("s2"))],
        "delete": [(KillPoint("d1"),), (KillPoint("d2"),)],
    }

    assert assign_chains([long, plain], chains) == [
        (
            long,
            [
                ("create", KillPoint("c1")),
                ("scale-up", KillPoint("s1")),
                ("scale-up", KillPoint("s2")),
                ("delete", KillPoint("d1")),
            ],
        ),
        (plain, [("create", KillPoint("c2")), ("delete", KillPoint("d2"))]),
        (plain, [("create", KillPoint("c3"))]),
    ]
