"""The journeys of the proof: a cluster's whole life, or a deletion during creation, with workers killed on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from boatyard.proof.compare import EndState, differences
from boatyard.proof.environment import Done, Lane, is_gone, is_ready
from boatyard.proof.kill_points import Point


@dataclass(frozen=True)
class Stage:
    """A request of a tenant, and the condition under which it is fulfilled."""

    name: str
    ask: Callable[[Lane, str], Awaitable[None]]
    done: Done = is_ready


@dataclass(frozen=True)
class Life:
    """The stages that one cluster goes through, from its creation to its deletion."""

    name: str
    stages: Sequence[Stage]


CREATE = Stage("create", lambda environment, id: environment.tenant.order(id))
SCALE_UP = Stage("scale-up", lambda environment, id: environment.tenant.grow(id, 1))
SCALE_DOWN = Stage("scale-down", lambda environment, id: environment.tenant.grow(id, 0))
DELETE = Stage("delete", lambda environment, id: environment.tenant.delete(id), is_gone)
Targets = Sequence[tuple[str, Point]]  # stage, and the point in it at which a worker is killed
CHANGE_OF_MIND = "change-of-mind"  # killed during creation, deleted before a new worker starts


@dataclass
class Baseline:
    """The undisturbed runs: the points they pass, and the end state after each stage of each life."""

    points: dict[str, list[Point]] = field(default_factory=dict)  # by stage
    ends: dict[tuple[str, str], EndState] = field(default_factory=dict)  # by life and stage
    breaches: list[str] = field(default_factory=list)

    def end(self, stage: Stage, life: Life | None = None) -> EndState:
        """The end state after a stage of `life`; without a life, of any life that has the stage."""
        for (life_name, stage_name), end_state in self.ends.items():
            if stage_name == stage.name and (life is None or life_name == life.name):
                return end_state
        raise KeyError(stage.name)


@dataclass
class Found:
    """The result of one run."""

    killed: list[tuple[str, Point]] = field(default_factory=list)
    unmet: list[tuple[str, Point]] = field(default_factory=list)  # targets never reached
    differences: list[str] = field(default_factory=list)

    def differ(self, where: str, texts: Sequence[str]) -> None:
        """Adds differences, each with the place where it was seen."""
        self.differences += [f"{where}: {text}" for text in texts]


async def undisturbed(environment: Lane, cluster_id: str, life: Life) -> Baseline:
    """Runs a life without killing anybody; records the points passed and the end state of each stage."""
    baseline = Baseline()
    for stage in life.stages:
        worker = await environment.worker()
        await worker.begin(None)
        await stage.ask(environment, cluster_id)
        await environment.reach(cluster_id, stage.done)
        baseline.points[stage.name] = await worker.passed()
        end = baseline.ends[life.name, stage.name] = await environment.settled_end(cluster_id)
        # Something that is left behind in every run does not show in a comparison.
        problems = [f"{stray} are still there" for stray in end.strays]
        if stage.done is is_gone:
            problems = nothing_left(await environment.bare_end(cluster_id))
        baseline.breaches += [f"{stage.name}: {problem}" for problem in problems]
        baseline.breaches += [f"{stage.name}: {breach}" for breach in await environment.breaches()]
    return baseline


async def disturbed(
    environment: Lane, cluster_id: str, life: Life, targets: Targets, baseline: Baseline
) -> Found:
    """Runs the same life. In a stage with targets, a worker is killed at the first, its successor at the next."""
    result = Found()
    for stage in life.stages:
        stage_targets = [point for name, point in targets if name == stage.name]
        await environment.doom(await environment.worker(), stage_targets)
        await stage.ask(environment, cluster_id)
        await environment.reach(cluster_id, stage.done)
        killed, unmet = await environment.reckon()
        result.killed += [(stage.name, point) for point in killed]
        result.unmet += [(stage.name, point) for point in unmet]
        if killed:
            await environment.reach(cluster_id, stage.done)
        expected = baseline.end(stage, life)
        end = await environment.settled_end(cluster_id, expected)
        result.differ(
            told([(stage.name, point) for point in stage_targets]), differences(expected, end)
        )
    result.differ(told(targets), await environment.breaches())
    return result


async def change_of_mind(environment: Lane, cluster_id: str, target: Point) -> Found:
    """Kills a worker during creation and deletes the cluster before a new worker starts. Nothing may be left."""
    result = Found()
    worker = await environment.worker()
    await worker.begin(target)
    await CREATE.ask(environment, cluster_id)
    await environment.see_death_or(worker, cluster_id, is_ready)
    if await worker.disarm():
        result.unmet.append((CHANGE_OF_MIND, target))
    else:
        result.killed.append((CHANGE_OF_MIND, target))
    await environment.tenant.delete(cluster_id)
    if worker.gone.is_set():
        await environment.hand_over_deletion(worker, cluster_id)
    await environment.reach(cluster_id, is_gone)
    where = f"{CHANGE_OF_MIND}, killed {target}"
    result.differ(where, nothing_left(await environment.bare_end(cluster_id)))
    result.differ(where, await environment.breaches())
    return result


def nothing_left(end: EndState) -> list[str]:
    """Everything that still exists of a deleted cluster, one sentence each. Empty when nothing does."""
    problems = [f"{item} is still there" for item in (*end.held, *end.kept, *end.strays)]
    for item, (applied, removed) in end.effects.items():
        if applied != removed:
            problems.append(f"{item} was made {applied} times and taken away {removed} times")
    receipt = end.documents.get("Order", {}).get("status", {}).get("receipt", {})
    if receipt.get("left"):
        problems.append(f"the receipt lists {', '.join(receipt['left'])} as left")
    if end.story.get("Cluster", [])[-1:] != ["Deleted"]:
        problems.append("the log does not end with the deletion")
    return problems


def told(targets: Targets) -> str:
    """The targets of a run in words, for messages."""
    return "; ".join(f"{stage}, killed {point}" for stage, point in targets) or "undisturbed"
