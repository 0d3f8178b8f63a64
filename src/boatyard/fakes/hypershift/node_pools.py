"""Decides about a NodePool: how many machines it has, of which version, and its status. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boatyard.fakes.hypershift.acceptance import completed_release, reconciliation_active
from boatyard.fakes.hypershift.kinds import MACHINES, POOLS
from boatyard.fakes.hypershift.machines import has_joined, is_healthy, play_machine
from boatyard.fakes.hypershift.names import (
    FINALIZER,
    LAST_NUMBER,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    Condition,
    annotations_of,
    conditions_of,
    deleted_at,
    find_condition,
    generation_of,
    inside,
    is_true,
    name_of,
    spec_of,
    status_of,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.observation import Manner, Seen, number_of
from boatyard.fakes.hypershift.published import owner_reference
from boatyard.fakes.hypershift.releases import Release, why_not_this_pool
from boatyard.fakes.hypershift.scaling import (
    give_agents,
    repair,
    scale,
    wanted_machines,
)
from boatyard.fakes.hypershift.validation import problems_of_pool
from boatyard.fakes.hypershift.writes import (
    Change,
    Decision,
    Remove,
    Report,
    Write,
    add_finalizer,
    drop_finalizer,
    earliest,
)

# Platforms whose machines are created here; with platform None people bring the machines.
AUTOMATED = ("Agent", "KubeVirt")


@dataclass(frozen=True)
class PoolVerdict:
    """The conditions about a pool's input. While it is not `ready`, no machine is created, changed or deleted."""

    conditions: tuple[Condition, ...]
    release: Release | None
    ready: bool
    look_at: float | None = None


def play_pool(
    snapshot: Seen, pool: Object, used_agents: set[str], settings: Manner, now: float
) -> Decision:
    """Decides about one pool. `used_agents` are the uids of agents that earlier pools of this decision have taken."""
    if deleted_at(pool) is not None:
        return _leave(snapshot, pool, settings, now)
    if snapshot.cluster is None:
        return Decision()  # its cluster does not exist: nothing is done, and no status is written
    identity = _identity(pool, snapshot.cluster)
    if identity is not None:
        return Decision((identity,))
    verdict = _judge(snapshot, pool, settings, now)
    machines = snapshot.machines_of(pool)
    writes: list[Write] = []
    moments = [verdict.look_at]
    wants_agents = False
    busy: set[str] = set()
    if verdict.ready and verdict.release is not None and snapshot.platform in AUTOMATED:
        scaled, scale_at = scale(snapshot, pool, verdict.release.version, settings, now)
        repaired, repair_at = repair(pool, machines, settings, now)
        writes += [*scaled, *repaired]
        moments += [scale_at, repair_at]
        busy = {uid_of(write.seen) for write in writes if isinstance(write, Change | Remove)}
    if snapshot.platform == "Agent":
        bindings, bound_machines, wants_agents = give_agents(snapshot, pool, used_agents)
        writes += bindings
        busy |= bound_machines
    for machine, may_join in _joining(pool, machines, settings):
        if uid_of(machine) in busy:
            continue  # written already; the next decision handles its next stage
        decision = play_machine(machine, pool, snapshot, settings, now, may_join=may_join)
        writes += _numbers_kept(pool, machine, decision)
        writes += decision.writes
        moments.append(decision.look_at)
    status = _status(snapshot, pool, verdict, machines, now)
    if status != status_of(pool) and not _changes(pool, writes):
        writes.append(Report(POOLS, pool, status))
    return Decision(tuple(writes), earliest(*moments), wants_agents)


def _identity(pool: Object, cluster: Object) -> Change | None:
    patch: Object = {}
    owners = pool["metadata"].get("ownerReferences") or []
    if not any(owner.get("uid") == uid_of(cluster) for owner in owners):
        patch["metadata"] = {"ownerReferences": [*owners, owner_reference(cluster)]}
    return add_finalizer(POOLS, pool, FINALIZER, **patch)


def _leave(snapshot: Seen, pool: Object, settings: Manner, now: float) -> Decision:
    """Deletes a pool: first its machines, then the pool itself."""
    machines = snapshot.machines_of(pool)
    if not machines:
        change = drop_finalizer(POOLS, pool, FINALIZER)
        return Decision((change,) if change else ())
    writes: list[Write] = []
    moments: list[float | None] = []
    for machine in machines:
        if deleted_at(machine) is None:
            writes.append(Remove(MACHINES, machine))
            continue
        decision = play_machine(machine, pool, snapshot, settings, now, may_join=False)
        writes += decision.writes
        moments.append(decision.look_at)
    return Decision(tuple(writes), earliest(*moments))


def _joining(
    pool: Object, machines: Sequence[Object], settings: Manner
) -> Iterator[tuple[Object, bool]]:
    """Each machine, and whether it may become a node."""
    faults = settings.faults("NodePool", pool)
    alive = [machine for machine in machines if deleted_at(machine) is None]
    joined = sum(has_joined(machine) for machine in alive)
    room = wanted_machines(pool, alive) - int(faults.number("never-joins", 1))
    for machine in machines:
        may_join = "never-joins" not in settings.faults("Machine", machine)
        if may_join and "never-joins" in faults and machine in alive and not has_joined(machine):
            # The oldest join first, so that it is always the same ones that never join.
            may_join = joined < room
            joined += 1
        yield machine, may_join


def _numbers_kept(pool: Object, machine: Object, decision: Decision) -> list[Write]:
    """Records the highest machine number before that machine is deleted, so that no name is used twice."""
    goes = deleted_at(machine) is not None and any(
        isinstance(write, Change) and write.seen is machine for write in decision.writes
    )
    number, last_number = number_of(machine), annotations_of(pool).get(LAST_NUMBER, "")
    if not goes or number <= (int(last_number) if last_number.isdecimal() else 0):
        return []
    return [Change(POOLS, pool, {"metadata": {"annotations": {LAST_NUMBER: str(number)}}})]


def _changes(pool: Object, writes: Sequence[Write]) -> bool:
    return any(isinstance(write, Change) and write.seen is pool for write in writes)


# --- conditions and status --------------------------------------------------------------------


def _judge(snapshot: Seen, pool: Object, settings: Manner, now: float) -> PoolVerdict:
    cluster = snapshot.cluster
    assert cluster is not None
    active, resume_time = reconciliation_active(pool, now)
    cluster_active, cluster_resume_time = reconciliation_active(cluster, now)
    release = settings.release(pool)
    valid = list(_valid_release(snapshot, pool, release, settings))
    problems = problems_of_pool(pool, cluster)
    valid.append(
        Condition(
            "ValidMachineTemplate",
            "False" if problems else "True",
            "ValidationFailed" if problems else "AsExpected",
            "; ".join(problems),
        )
    )
    ignition = status_of(cluster).get("ignitionEndpoint") and status_of(cluster).get("kubeconfig")
    if not ignition:
        message = "waiting for the ignition server of the control plane"
        missing = Condition(
            "IgnitionEndpointAvailable", "False", "IgnitionEndpointMissing", message
        )
        valid.append(missing)
    ready = active.true and cluster_active.true and all(condition.true for condition in valid)
    return PoolVerdict(
        conditions=(active, *valid),
        release=release,
        ready=ready and deleted_at(cluster) is None,
        look_at=earliest(resume_time, cluster_resume_time),
    )


def _valid_release(
    snapshot: Seen, pool: Object, release: Release | None, settings: Manner
) -> Iterator[Condition]:
    """The condition of older versions of HyperShift, and that of newer ones (SupportedVersionSkew)."""
    assert snapshot.cluster is not None
    image = inside(pool, "spec", "release", "image")
    if release is None:
        message = f"{image} tells no version: use a tag such as :4.18.2-multi"
        yield Condition("ValidReleaseImage", "False", "ValidationFailed", message)
        return
    control_plane = completed_release(snapshot.cluster, settings) or settings.release(
        snapshot.cluster
    )
    problem = why_not_this_pool(release, control_plane) if control_plane is not None else ""
    if problem:
        yield Condition("ValidReleaseImage", "False", "ValidationFailed", problem)
        yield Condition("SupportedVersionSkew", "False", "UnsupportedSkew", problem)
        return
    yield Condition("ValidReleaseImage", "True", "AsExpected", f"Using release image: {image}")
    yield Condition("SupportedVersionSkew", "True", "AsExpected")


def _status(
    snapshot: Seen, pool: Object, verdict: PoolVerdict, machines: Sequence[Object], now: float
) -> Object:
    alive = [machine for machine in machines if deleted_at(machine) is None]
    desired_count = wanted_machines(pool, alive)
    healthy = [machine for machine in alive if is_healthy(machine)]
    version = _version(snapshot, pool, verdict, alive, healthy, desired_count)
    conditions = [
        *_input_conditions(pool),
        *verdict.conditions,
        *_update_conditions(version, verdict),
    ]
    if snapshot.platform in AUTOMATED:
        conditions += [
            *_machine_conditions(machines, desired_count),
            _reached_ignition(pool, machines),
            _ready(len(healthy), len(alive), desired_count),
        ]
    status: Object = {
        "replicas": len(healthy),
        "conditions": write_conditions(conditions_of(pool), conditions, now, generation_of(pool)),
    }
    if version:
        status["version"] = version
    return status


def _version(
    snapshot: Seen,
    pool: Object,
    verdict: PoolVerdict,
    alive: Sequence[Object],
    healthy: Sequence[Object],
    desired_count: int,
) -> str:
    """The version that all nodes have; the previous one until they all have the new one."""
    before = str(status_of(pool).get("version") or "")
    if not verdict.ready or verdict.release is None:
        return before
    target = verdict.release.version
    if snapshot.platform not in AUTOMATED:
        return target
    updated = [machine for machine in healthy if spec_of(machine).get("version") == target]
    return target if len(updated) == len(alive) == desired_count else before


def _input_conditions(pool: Object) -> Iterator[Condition]:
    scaling = spec_of(pool).get("autoScaling")
    if scaling:
        message = f"Maximum nodes: {scaling.get('max')}, Minimum nodes: {scaling.get('min')}"
        yield Condition("AutoscalingEnabled", "True", "AsExpected", message)
    else:
        yield Condition("AutoscalingEnabled", "False", "AsExpected")
    yield Condition("UpdateManagementEnabled", "True", "AsExpected")
    repairs = bool(inside(pool, "spec", "management", "autoRepair"))
    yield Condition("AutorepairEnabled", "True" if repairs else "False", "AsExpected")


def _update_conditions(version: str, verdict: PoolVerdict) -> Iterator[Condition]:
    target = verdict.release.version if verdict.release is not None and verdict.ready else ""
    if target and target != version:
        message = f"Updating to {target}"
        yield Condition("UpdatingVersion", "True", "AsExpected", message)
    else:
        yield Condition("UpdatingVersion", "False", "AsExpected")
    yield Condition("UpdatingConfig", "False", "AsExpected")
    if verdict.ready:
        yield Condition("ValidMachineConfig", "True", "AsExpected")
        yield Condition("ValidGeneratedPayload", "True", "AsExpected")


def _machine_conditions(machines: Sequence[Object], desired_count: int) -> Iterator[Condition]:
    for kind, machine_condition in (
        ("AllMachinesReady", "Ready"),
        ("AllNodesHealthy", "NodeHealthy"),
    ):
        if not machines:
            nothing = ("AsExpected", "NodePool set to no replicas")
            yield Condition(
                kind, "False", *(nothing if not desired_count else ("NotFound", "No Machines"))
            )
            continue
        failing = [
            (name_of(machine), condition)
            for machine in machines
            for condition in [find_condition(conditions_of(machine), machine_condition) or {}]
            if condition.get("status") != "True"
        ]
        if failing:
            message = "; ".join(
                f"Machine {name}: {condition.get('reason', 'Unknown')}"
                for name, condition in failing
            )
            reason = str(failing[0][1].get("reason") or "Unknown")
            yield Condition(kind, "False", reason, message)
        else:
            yield Condition(kind, "True", "AsExpected", "All is well")


def _reached_ignition(pool: Object, machines: Sequence[Object]) -> Condition:
    # Once reached it stays so: existing nodes do not fetch their payload again.
    reached = is_true(pool, "ReachedIgnitionEndpoint")
    if reached or any(is_true(machine, "InfrastructureReady") for machine in machines):
        return Condition("ReachedIgnitionEndpoint", "True", "AsExpected")
    return Condition("ReachedIgnitionEndpoint", "False", "ignitionNotReached")


def _ready(healthy: int, alive: int, desired_count: int) -> Condition:
    if healthy >= desired_count:
        message = (
            f"Scaling down to {desired_count}, there are {alive}" if alive > desired_count else ""
        )
        return Condition("Ready", "True", "AsExpected", message)
    message = f"Minimum availability requires {desired_count} replicas, current {healthy} available"
    return Condition("Ready", "False", "WaitingForAvailableMachines", message)
