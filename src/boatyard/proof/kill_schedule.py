"""Deals the points of a stage out over lives, several deaths in one life where a life is dear. Pure."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from boatyard.proof.journeys import Life, Targets
from boatyard.proof.kill_points import Point

Chain = tuple[Point, ...]  # where a worker dies, then its successor
_AGAIN = 2
_APART = 4  # things done side by side come now in this order, now in that


def known(runs: Sequence[Sequence[Point]]) -> list[Point]:
    """Every point that came in one of several undisturbed runs, in the order of the first."""
    return list(dict.fromkeys(itertools.chain(*runs)))


def steady(runs: Sequence[Sequence[Point]]) -> list[Point]:
    """The points that come in every run. Of effects that come now more often, now less, the first two:

    they are asked for again until it is so, and how often that is depends on the machine.
    """
    counts = [Counter(point.label for point in run) for run in runs]

    def comes(point: Point) -> bool:
        times = [count[point.label] for count in counts]
        varies = point.sort == "effect" and len(set(times)) > 1
        return point.time <= min(*times, _AGAIN if varies else len(runs[0]))

    return [point for point in known(runs) if comes(point)]


def chained(points: Sequence[Point], deaths: int) -> list[Chain]:
    """Every point once, alone or in pairs: the first worker dies at one, its successor at the other.

    A successor counts the places it passes from its own beginning. So the second is a place whose
    like has not come before the first.
    """
    if deaths == 1:
        return [(point,) for point in points]
    first_index: dict[str, int] = {}
    for index, point in enumerate(points):
        first_index.setdefault(point.label, index)
    partner: dict[int, int] = {}
    used: set[int] = set()
    for second in reversed(range(len(points))):
        latest = min(first_index[points[second].label], second - _APART)
        first = next(
            (candidate for candidate in range(latest, -1, -1) if candidate not in used), None
        )
        if second not in used and first is not None:
            used |= {first, second}
            partner[first] = second
    alone = [index for index in range(len(points)) if index not in used]
    return [
        (points[index], points[partner[index]]) if index in partner else (points[index],)
        for index in sorted([*partner, *alone])
    ]


def dealt(
    lives: Sequence[Life], chains: Mapping[str, Sequence[Chain]]
) -> list[tuple[Life, Targets]]:
    """Which life dies where: one chain in each of its stages. The last life takes what no other needs.

    A life ends when the stages that only it and those before it have are used up.
    """
    remaining = {stage: deque(stage_chains) for stage, stage_chains in chains.items()}
    assignments: list[tuple[Life, Targets]] = []
    for number, life in enumerate(lives):
        common = {stage.name for other in lives[number + 1 :] for stage in other.stages}
        names = [stage.name for stage in life.stages if stage.name in remaining]
        own_names = [name for name in names if name not in common]
        while any(remaining[name] for name in own_names):
            chosen = [(name, remaining[name].popleft()) for name in names if remaining[name]]
            assignments.append((life, [(name, point) for name, chain in chosen for point in chain]))
    return assignments
