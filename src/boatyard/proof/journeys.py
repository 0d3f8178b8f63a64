"""The journeys of the proof: a cluster's whole life, or a deletion during creation, with workers killed on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from boatyard.proof.end_state import EndState, find_differences
from boatyard.proof.environment import ClusterPredicate, ProofEnvironment, is_gone, is_ready
from boatyard.proof.kill_points import KillPoint


@dataclass(frozen=True)
class JourneyStage:
    """A request of a tenant, and the condition under which it is fulfilled."""

    name: str
    request: Callable[[ProofEnvironment, str], Awaitable[None]]
    is_done: ClusterPredicate = is_ready


@dataclass(frozen=True)
class ClusterLife:
    """The stages that one cluster goes through, from its creation to its deletion."""

    name: str
    stages: Sequence[JourneyStage]


CREATE = JourneyStage("create", lambda environment, id: environment.tenant.order(id))
SCALE_UP = JourneyStage("scale-up", lambda environment, id: environment.tenant.resize(id, 1))
SCALE_DOWN = JourneyStage("scale-down", lambda environment, id: environment.tenant.resize(id, 0))
DELETE = JourneyStage("delete", lambda environment, id: environment.tenant.delete(id), is_gone)
KillTargets = Sequence[
    tuple[str, KillPoint]
]  # stage, and the point in it at which a worker is killed
CHANGE_OF_MIND = "change-of-mind"  # killed during creation, deleted before a new worker starts


@dataclass
class Baseline:
    """The undisturbed runs: the points they pass, and the end state after each stage of each life."""

    points: dict[str, list[KillPoint]] = field(default_factory=dict)  # by stage
    ends: dict[tuple[str, str], EndState] = field(default_factory=dict)  # by life and stage
    breaches: list[str] = field(default_factory=list)

    def find_end(self, stage: JourneyStage, life: ClusterLife | None = None) -> EndState:
        """The end state after a stage of `life`; without a life, of any life that has the stage."""
        for (life_name, stage_name), end_state in self.ends.items():
            if stage_name == stage.name and (life is None or life_name == life.name):
                return end_state
        raise KeyError(stage.name)


@dataclass
class JourneyResult:
    """The result of one run."""

    killed: list[tuple[str, KillPoint]] = field(default_factory=list)
    unreached: list[tuple[str, KillPoint]] = field(default_factory=list)  # targets never reached
    differences: list[str] = field(default_factory=list)

    def add_differences(self, where: str, texts: Sequence[str]) -> None:
        """Adds differences, each with the place where it was seen."""
        self.differences += [f"{where}: {text}" for text in texts]


async def run_undisturbed(
    environment: ProofEnvironment, cluster_id: str, life: ClusterLife
) -> Baseline:
    """Runs a life without killing anybody; records the points passed and the end state of each stage."""
    baseline = Baseline()
    for stage in life.stages:
        worker = await environment.ensure_worker()
        await worker.set_target(None)
        await stage.request(environment, cluster_id)
        await environment.wait_until(cluster_id, stage.is_done)
        baseline.points[stage.name] = await worker.list_passed()
        end = baseline.ends[life.name, stage.name] = await environment.read_settled_end(cluster_id)
        # Something that is left behind in every run does not show in a comparison.
        problems = [f"{stray} are still there" for stray in end.strays]
        if stage.is_done is is_gone:
            problems = find_remains(await environment.read_end_after_delete(cluster_id))
        baseline.breaches += [f"{stage.name}: {problem}" for problem in problems]
        baseline.breaches += [
            f"{stage.name}: {breach}" for breach in await environment.find_breaches()
        ]
    return baseline


async def run_disturbed(
    environment: ProofEnvironment,
    cluster_id: str,
    life: ClusterLife,
    targets: KillTargets,
    baseline: Baseline,
) -> JourneyResult:
    """Runs the same life. In a stage with targets, a worker is killed at the first, its successor at the next."""
    result = JourneyResult()
    for stage in life.stages:
        stage_targets = [point for name, point in targets if name == stage.name]
        await environment.set_targets(await environment.ensure_worker(), stage_targets)
        await stage.request(environment, cluster_id)
        await environment.wait_until(cluster_id, stage.is_done)
        killed, unmet = await environment.collect_kills()
        result.killed += [(stage.name, point) for point in killed]
        result.unreached += [(stage.name, point) for point in unmet]
        if killed:
            await environment.wait_until(cluster_id, stage.is_done)
        expected = baseline.find_end(stage, life)
        end = await environment.read_settled_end(cluster_id, expected)
        result.add_differences(
            describe_targets([(stage.name, point) for point in stage_targets]),
            find_differences(expected, end),
        )
    result.add_differences(describe_targets(targets), await environment.find_breaches())
    return result


async def run_change_of_mind(
    environment: ProofEnvironment, cluster_id: str, target: KillPoint
) -> JourneyResult:
    """Kills a worker during creation and deletes the cluster before a new worker starts. Nothing may be left."""
    result = JourneyResult()
    worker = await environment.ensure_worker()
    await worker.set_target(target)
    await CREATE.request(environment, cluster_id)
    await environment.wait_for_death_or(worker, cluster_id, is_ready)
    if await worker.clear_target():
        result.unreached.append((CHANGE_OF_MIND, target))
    else:
        result.killed.append((CHANGE_OF_MIND, target))
    await environment.tenant.delete(cluster_id)
    if worker.ended.is_set():
        await environment.hand_over_deletion(worker, cluster_id)
    await environment.wait_until(cluster_id, is_gone)
    where = f"{CHANGE_OF_MIND}, killed {target}"
    result.add_differences(where, find_remains(await environment.read_end_after_delete(cluster_id)))
    result.add_differences(where, await environment.find_breaches())
    return result


def find_remains(end: EndState) -> list[str]:
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


def describe_targets(targets: KillTargets) -> str:
    """The targets of a run in words, for messages."""
    return "; ".join(f"{stage}, killed {point}" for stage, point in targets) or "undisturbed"
