"""The journeys of the proof: a cluster's whole life, and a change of mind, with a worker killed on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from boatyard.app.proving.compare import EndState, differences
from boatyard.app.proving.lane import Done, Lane, is_gone, is_ready
from boatyard.app.proving.points import Point

NODES = 2


@dataclass(frozen=True)
class Stage:
    """Something a tenant asks for, and what it looks like when it is so."""

    name: str
    ask: Callable[[Lane, str], Awaitable[None]]
    done: Done


STAGES: Sequence[Stage] = (
    Stage("create", lambda lane, id: lane.tenant.order(id, name=id, nodes=NODES), is_ready),
    Stage("scale-up", lambda lane, id: lane.tenant.scale(id, NODES + 1), is_ready),
    Stage("scale-down", lambda lane, id: lane.tenant.scale(id, NODES), is_ready),
    Stage("delete", lambda lane, id: lane.tenant.delete(id), is_gone),
)
CHANGE_OF_MIND = "change-of-mind"  # killed while creating, deleted before anybody is back at work


@dataclass
class Baseline:
    """The undisturbed run: which points there are, and what is left after each stage."""

    points: dict[str, list[Point]] = field(default_factory=dict)
    ends: dict[str, EndState] = field(default_factory=dict)


@dataclass
class Found:
    """What came of one run."""

    killed: list[tuple[str, Point]] = field(default_factory=list)
    unmet: list[tuple[str, Point]] = field(default_factory=list)  # the run took another way
    differences: list[str] = field(default_factory=list)

    def differ(self, where: str, words: Sequence[str]) -> None:
        self.differences += [f"{where}: {word}" for word in words]


async def undisturbed(lane: Lane, cluster_id: str) -> Baseline:
    baseline = Baseline()
    for stage in STAGES:
        member = await lane.worker()
        await member.begin(None)
        await stage.ask(lane, cluster_id)
        await lane.reach(cluster_id, stage.done)
        baseline.points[stage.name] = await member.passed()
        baseline.ends[stage.name] = await lane.end_state(cluster_id)
    return baseline


async def disturbed(
    lane: Lane, cluster_id: str, targets: Mapping[str, Point], baseline: Baseline
) -> Found:
    """The same life, with a worker killed once in every stage that has a target."""
    found = Found()
    for stage in STAGES:
        target = targets.get(stage.name)
        member = await lane.worker()
        await member.begin(target)
        await stage.ask(lane, cluster_id)
        await lane.reach(cluster_id, stage.done)
        if target is not None:
            if await member.disarm():
                found.unmet.append((stage.name, target))
            else:
                found.killed.append((stage.name, target))
                await lane.reach(cluster_id, stage.done)
        end = await lane.end_state(cluster_id)
        where = f"{stage.name}, killed {target}" if target else stage.name
        found.differ(where, differences(baseline.ends[stage.name], end))
    found.differ(_told(targets), await lane.breaches())
    return found


async def change_of_mind(lane: Lane, cluster_id: str, target: Point) -> Found:
    """Killed on the way to READY and deleted before a new worker comes: nothing may be left."""
    found = Found()
    member = await lane.worker()
    await member.begin(target)
    await STAGES[0].ask(lane, cluster_id)
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
    found.differ(where, nothing_left(await lane.end_state(cluster_id)))
    found.differ(where, await lane.breaches())
    return found


def nothing_left(end: EndState) -> list[str]:
    """What is still there of a cluster that has been deleted."""
    words = [f"{place} is still there" for place in end.held]
    for place, (made, gone) in end.effects.items():
        if made != gone:
            words.append(f"{place} was made {made} times and taken away {gone} times")
    receipt = end.documents.get("Order", {}).get("status", {}).get("receipt", {})
    if receipt.get("left"):
        words.append(f"the receipt lists {', '.join(receipt['left'])} as left")
    if end.story.get("Cluster", [])[-1:] != ["Deleted"]:
        words.append("the log does not end with the deletion")
    return words


def _told(targets: Mapping[str, Point]) -> str:
    return (
        "; ".join(f"{stage}, killed {point}" for stage, point in targets.items()) or "undisturbed"
    )
