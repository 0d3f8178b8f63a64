"""The journeys of the proof: a cluster's whole life, and a change of mind, with a worker killed on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from boatyard.proof.compare import EndState, differences
from boatyard.proof.environment import Done, Lane, is_gone, is_ready
from boatyard.proof.kill_points import Point


@dataclass(frozen=True)
class Stage:
    """Something a tenant asks for, and what it looks like when it is so."""

    name: str
    ask: Callable[[Lane, str], Awaitable[None]]
    done: Done = is_ready


@dataclass(frozen=True)
class Life:
    """What one cluster goes through, from its order to its end."""

    name: str
    stages: Sequence[Stage]


CREATE = Stage("create", lambda lane, id: lane.tenant.order(id))
SCALE_UP = Stage("scale-up", lambda lane, id: lane.tenant.grow(id, 1))
SCALE_DOWN = Stage("scale-down", lambda lane, id: lane.tenant.grow(id, 0))
DELETE = Stage("delete", lambda lane, id: lane.tenant.delete(id), is_gone)
Targets = Sequence[tuple[str, Point]]  # stage, and where a worker dies in it
CHANGE_OF_MIND = "change-of-mind"  # killed while creating, deleted before anybody is back at work


@dataclass
class Baseline:
    """The undisturbed runs: which points there are, and what is left after each stage of each life."""

    points: dict[str, list[Point]] = field(default_factory=dict)  # by stage
    ends: dict[tuple[str, str], EndState] = field(default_factory=dict)  # by life and stage
    breaches: list[str] = field(default_factory=list)

    def end(self, stage: Stage, life: Life | None = None) -> EndState:
        """Where no life is named, any that has the stage."""
        for (life_name, stage_name), found in self.ends.items():
            if stage_name == stage.name and (life is None or life_name == life.name):
                return found
        raise KeyError(stage.name)


@dataclass
class Found:
    """What came of one run."""

    killed: list[tuple[str, Point]] = field(default_factory=list)
    unmet: list[tuple[str, Point]] = field(default_factory=list)  # the run took another way
    differences: list[str] = field(default_factory=list)

    def differ(self, where: str, words: Sequence[str]) -> None:
        self.differences += [f"{where}: {word}" for word in words]


async def undisturbed(lane: Lane, cluster_id: str, life: Life) -> Baseline:
    baseline = Baseline()
    for stage in life.stages:
        member = await lane.worker()
        await member.begin(None)
        await stage.ask(lane, cluster_id)
        await lane.reach(cluster_id, stage.done)
        baseline.points[stage.name] = await member.passed()
        end = baseline.ends[life.name, stage.name] = await lane.settled_end(cluster_id)
        # What is left each time is not seen by comparing.
        left = [f"{stray} are still there" for stray in end.strays]
        if stage.done is is_gone:
            left = nothing_left(await lane.bare_end(cluster_id))
        baseline.breaches += [f"{stage.name}: {words}" for words in left]
        baseline.breaches += [f"{stage.name}: {breach}" for breach in await lane.breaches()]
    return baseline


async def disturbed(
    lane: Lane, cluster_id: str, life: Life, targets: Targets, baseline: Baseline
) -> Found:
    """The same life. In a stage with targets a worker is killed at the first, its successor at the next."""
    found = Found()
    for stage in life.stages:
        deaths = [point for name, point in targets if name == stage.name]
        await lane.doom(await lane.worker(), deaths)
        await stage.ask(lane, cluster_id)
        await lane.reach(cluster_id, stage.done)
        killed, unmet = await lane.reckon()
        found.killed += [(stage.name, point) for point in killed]
        found.unmet += [(stage.name, point) for point in unmet]
        if killed:
            await lane.reach(cluster_id, stage.done)
        expected = baseline.end(stage, life)
        end = await lane.settled_end(cluster_id, expected)
        found.differ(told([(stage.name, point) for point in deaths]), differences(expected, end))
    found.differ(told(targets), await lane.breaches())
    return found


async def change_of_mind(lane: Lane, cluster_id: str, target: Point) -> Found:
    """Killed on the way to READY and deleted before a new worker comes: nothing may be left."""
    found = Found()
    member = await lane.worker()
    await member.begin(target)
    await CREATE.ask(lane, cluster_id)
    await lane.see_death_or(member, cluster_id, is_ready)
    if await member.disarm():
        found.unmet.append((CHANGE_OF_MIND, target))
    else:
        found.killed.append((CHANGE_OF_MIND, target))
    await lane.tenant.delete(cluster_id)
    if member.gone.is_set():
        await lane.hand_over_deletion(member, cluster_id)
    await lane.reach(cluster_id, is_gone)
    where = f"{CHANGE_OF_MIND}, killed {target}"
    found.differ(where, nothing_left(await lane.bare_end(cluster_id)))
    found.differ(where, await lane.breaches())
    return found


def nothing_left(end: EndState) -> list[str]:
    """What is still there of a cluster that has been deleted."""
    words = [f"{place} is still there" for place in (*end.held, *end.kept, *end.strays)]
    for place, (made, gone) in end.effects.items():
        if made != gone:
            words.append(f"{place} was made {made} times and taken away {gone} times")
    receipt = end.documents.get("Order", {}).get("status", {}).get("receipt", {})
    if receipt.get("left"):
        words.append(f"the receipt lists {', '.join(receipt['left'])} as left")
    if end.story.get("Cluster", [])[-1:] != ["Deleted"]:
        words.append("the log does not end with the deletion")
    return words


def told(targets: Targets) -> str:
    return "; ".join(f"{stage}, killed {point}" for stage, point in targets) or "undisturbed"
