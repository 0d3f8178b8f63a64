"""Distributes kill points over lives, several in one life where a life takes long. Pure."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from boatyard.proof.journeys import ClusterLife, KillTargets
from boatyard.proof.kill_points import KillPoint

KillChain = tuple[KillPoint, ...]  # where a worker is killed, then its successor
_MAX_OCCURRENCES = 2
_MIN_DISTANCE = 4  # points closer than this may come in either order, since effects run in parallel


def merge_points(runs: Sequence[Sequence[KillPoint]]) -> list[KillPoint]:
    """Every point of any of the undisturbed runs, in the order of first appearance."""
    return list(dict.fromkeys(itertools.chain(*runs)))


def select_steady_points(runs: Sequence[Sequence[KillPoint]]) -> list[KillPoint]:
    """The points that every run passes. Of effects whose number varies, the first two occurrences only.

    Such effects are repeated until they are done, and how often that is depends on the machine.
    """
    counts = [Counter(point.label for point in run) for run in runs]

    def comes(point: KillPoint) -> bool:
        times = [count[point.label] for count in counts]
        varies = point.category == "effect" and len(set(times)) > 1
        return point.occurrence <= min(*times, _MAX_OCCURRENCES if varies else len(runs[0]))

    return [point for point in merge_points(runs) if comes(point)]


def pair_points(points: Sequence[KillPoint], deaths: int) -> list[KillChain]:
    """Every point once, alone or in pairs: the first worker dies at one, its successor at the other.

    A successor counts the points it passes from its own start. So the label of the second point must not
    occur before the first.
    """
    if deaths == 1:
        return [(point,) for point in points]
    first_index: dict[str, int] = {}
    for index, point in enumerate(points):
        first_index.setdefault(point.label, index)
    partner: dict[int, int] = {}
    used: set[int] = set()
    for second in reversed(range(len(points))):
        latest = min(first_index[points[second].label], second - _MIN_DISTANCE)
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


def assign_chains(
    lives: Sequence[ClusterLife], chains: Mapping[str, Sequence[KillChain]]
) -> list[tuple[ClusterLife, KillTargets]]:
    """Lives with their targets: one chain in each stage of a life. The last life takes what the others do not need.

    A life is repeated until the chains of the stages that no later life has are used up.
    """
    remaining = {stage: deque(stage_chains) for stage, stage_chains in chains.items()}
    assignments: list[tuple[ClusterLife, KillTargets]] = []
    for number, life in enumerate(lives):
        common = {stage.name for other in lives[number + 1 :] for stage in other.stages}
        names = [stage.name for stage in life.stages if stage.name in remaining]
        own_names = [name for name in names if name not in common]
        while any(remaining[name] for name in own_names):
            chosen = [(name, remaining[name].popleft()) for name in names if remaining[name]]
            assignments.append((life, [(name, point) for name, chain in chosen for point in chain]))
    return assignments
