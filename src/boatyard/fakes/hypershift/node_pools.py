"""Decides about a NodePool: how many machines it has, of which version, and its status. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boatyard.fakes.hypershift.acceptance import find_completed_release, reconciliation_condition
from boatyard.fakes.hypershift.credentials import owner_reference
from boatyard.fakes.hypershift.kinds import MACHINES, POOLS
from boatyard.fakes.hypershift.machines import decide_machine, has_joined, is_healthy
from boatyard.fakes.hypershift.names import (
    FINALIZER,
    LAST_MACHINE_NUMBER,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    annotations_of,
    conditions_of,
    deleted_at,
    find_condition,
    generation_of,
    get_nested,
    is_true,
    name_of,
    spec_of,
    status_of,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.releases import ReleaseImage, find_skew_problem
from boatyard.fakes.hypershift.scaling import (
    bind_free_agents,
    desired_machine_count,
    repair_machines,
    scale_pool,
)
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot, machine_number
from boatyard.fakes.hypershift.validation import find_pool_problems
from boatyard.fakes.hypershift.writes import (
    Decision,
    DeleteObject,
    PatchObject,
    UpdateStatus,
    Write,
    add_finalizer,
    earliest,
    remove_finalizer,
)

# Platforms whose machines are created here; with platform None people bring the machines.
AUTOMATED_PLATFORMS = ("Agent", "KubeVirt")


@dataclass(frozen=True)
class PoolVerdict:
    """The conditions about a pool's input. While it is not `ready`, no machine is created, changed or deleted."""

    conditions: tuple[StatusCondition, ...]
    release: ReleaseImage | None
    is_ready: bool
    next_check: float | None = None


def decide_pool(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    used_agents: set[str],
    settings: FakeSettings,
    now: float,
) -> Decision:
    """Decides about one pool. `used_agents` are the uids of agents that earlier pools of this decision have taken."""
    if deleted_at(pool) is not None:
        return _decide_deletion(snapshot, pool, settings, now)
    if snapshot.cluster is None:
        return Decision()  # its cluster does not exist: nothing is done, and no status is written
    identity = _add_identity(pool, snapshot.cluster)
    if identity is not None:
        return Decision((identity,))
    verdict = _judge_pool(snapshot, pool, settings, now)
    machines = snapshot.machines_of(pool)
    writes: list[Write] = []
    moments = [verdict.next_check]
    wants_agents = False
    busy: set[str] = set()
    if (
        verdict.is_ready
        and verdict.release is not None
        and snapshot.platform in AUTOMATED_PLATFORMS
    ):
        scaled, scale_at = scale_pool(snapshot, pool, verdict.release.version, settings, now)
        repaired, repair_at = repair_machines(pool, machines, settings, now)
        writes += [*scaled, *repaired]
        moments += [scale_at, repair_at]
        busy = {
            uid_of(write.current)
            for write in writes
            if isinstance(write, PatchObject | DeleteObject)
        }
    if snapshot.platform == "Agent":
        bindings, bound_machines, wants_agents = bind_free_agents(snapshot, pool, used_agents)
        writes += bindings
        busy |= bound_machines
    for machine, may_join in _iter_may_join(pool, machines, settings):
        if uid_of(machine) in busy:
            continue  # written already; the next decision handles its next stage
        decision = decide_machine(machine, pool, snapshot, settings, now, may_join=may_join)
        writes += _record_last_number(pool, machine, decision)
        writes += decision.writes
        moments.append(decision.next_check)
    status = _make_status(snapshot, pool, verdict, machines, now)
    if status != status_of(pool) and not _has_change(pool, writes):
        writes.append(UpdateStatus(POOLS, pool, status))
    return Decision(tuple(writes), earliest(*moments), wants_agents)


def _add_identity(pool: Object, cluster: Object) -> PatchObject | None:
    patch: Object = {}
    owners = pool["metadata"].get("ownerReferences") or []
    if not any(owner.get("uid") == uid_of(cluster) for owner in owners):
        patch["metadata"] = {"ownerReferences": [*owners, owner_reference(cluster)]}
    return add_finalizer(POOLS, pool, FINALIZER, **patch)


def _decide_deletion(
    snapshot: HostedClusterSnapshot, pool: Object, settings: FakeSettings, now: float
) -> Decision:
    """Deletes a pool: first its machines, then the pool itself."""
    machines = snapshot.machines_of(pool)
    if not machines:
        change = remove_finalizer(POOLS, pool, FINALIZER)
        return Decision((change,) if change else ())
    writes: list[Write] = []
    moments: list[float | None] = []
    for machine in machines:
        if deleted_at(machine) is None:
            writes.append(DeleteObject(MACHINES, machine))
            continue
        decision = decide_machine(machine, pool, snapshot, settings, now, may_join=False)
        writes += decision.writes
        moments.append(decision.next_check)
    return Decision(tuple(writes), earliest(*moments))


def _iter_may_join(
    pool: Object, machines: Sequence[Object], settings: FakeSettings
) -> Iterator[tuple[Object, bool]]:
    """Each machine, and whether it may become a node."""
    faults = settings.find_faults("NodePool", pool)
    alive = [machine for machine in machines if deleted_at(machine) is None]
    joined = sum(has_joined(machine) for machine in alive)
    room = desired_machine_count(pool, alive) - int(faults.get_number("never-joins", 1))
    for machine in machines:
        may_join = "never-joins" not in settings.find_faults("Machine", machine)
        if may_join and "never-joins" in faults and machine in alive and not has_joined(machine):
            # The oldest join first, so that it is always the same ones that never join.
            may_join = joined < room
            joined += 1
        yield machine, may_join


def _record_last_number(pool: Object, machine: Object, decision: Decision) -> list[Write]:
    """Records the highest machine number before that machine is deleted, so that no name is used twice."""
    goes = deleted_at(machine) is not None and any(
        isinstance(write, PatchObject) and write.current is machine for write in decision.writes
    )
    number, last_number = machine_number(machine), annotations_of(pool).get(LAST_MACHINE_NUMBER, "")
    if not goes or number <= (int(last_number) if last_number.isdecimal() else 0):
        return []
    return [
        PatchObject(POOLS, pool, {"metadata": {"annotations": {LAST_MACHINE_NUMBER: str(number)}}})
    ]


def _has_change(pool: Object, writes: Sequence[Write]) -> bool:
    return any(isinstance(write, PatchObject) and write.current is pool for write in writes)


# --- conditions and status --------------------------------------------------------------------


def _judge_pool(
    snapshot: HostedClusterSnapshot, pool: Object, settings: FakeSettings, now: float
) -> PoolVerdict:
    cluster = snapshot.cluster
    assert cluster is not None
    active, resume_time = reconciliation_condition(pool, now)
    cluster_active, cluster_resume_time = reconciliation_condition(cluster, now)
    release = settings.find_release(pool)
    valid = list(_iter_release_conditions(snapshot, pool, release, settings))
    problems = find_pool_problems(pool, cluster)
    valid.append(
        StatusCondition(
            "ValidMachineTemplate",
            "False" if problems else "True",
            "ValidationFailed" if problems else "AsExpected",
            "; ".join(problems),
        )
    )
    ignition = status_of(cluster).get("ignitionEndpoint") and status_of(cluster).get("kubeconfig")
    if not ignition:
        message = "waiting for the ignition server of the control plane"
        missing = StatusCondition(
            "IgnitionEndpointAvailable", "False", "IgnitionEndpointMissing", message
        )
        valid.append(missing)
    ready = (
        active.is_true and cluster_active.is_true and all(condition.is_true for condition in valid)
    )
    return PoolVerdict(
        conditions=(active, *valid),
        release=release,
        is_ready=ready and deleted_at(cluster) is None,
        next_check=earliest(resume_time, cluster_resume_time),
    )


def _iter_release_conditions(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    release: ReleaseImage | None,
    settings: FakeSettings,
) -> Iterator[StatusCondition]:
    """The condition of older versions of HyperShift, and that of newer ones (SupportedVersionSkew)."""
    assert snapshot.cluster is not None
    image = get_nested(pool, "spec", "release", "image")
    if release is None:
        message = f"{image} tells no version: use a tag such as :4.18.2-multi"
        yield StatusCondition("ValidReleaseImage", "False", "ValidationFailed", message)
        return
    control_plane = find_completed_release(snapshot.cluster, settings) or settings.find_release(
        snapshot.cluster
    )
    problem = find_skew_problem(release, control_plane) if control_plane is not None else ""
    if problem:
        yield StatusCondition("ValidReleaseImage", "False", "ValidationFailed", problem)
        yield StatusCondition("SupportedVersionSkew", "False", "UnsupportedSkew", problem)
        return
    yield StatusCondition(
        "ValidReleaseImage", "True", "AsExpected", f"Using release image: {image}"
    )
    yield StatusCondition("SupportedVersionSkew", "True", "AsExpected")


def _make_status(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    verdict: PoolVerdict,
    machines: Sequence[Object],
    now: float,
) -> Object:
    alive = [machine for machine in machines if deleted_at(machine) is None]
    desired_count = desired_machine_count(pool, alive)
    healthy = [machine for machine in alive if is_healthy(machine)]
    version = _common_version(snapshot, pool, verdict, alive, healthy, desired_count)
    conditions = [
        *_input_conditions(pool),
        *verdict.conditions,
        *_update_conditions(version, verdict),
    ]
    if snapshot.platform in AUTOMATED_PLATFORMS:
        conditions += [
            *_machine_conditions(machines, desired_count),
            _ignition_condition(pool, machines),
            _ready_condition(len(healthy), len(alive), desired_count),
        ]
    status: Object = {
        "replicas": len(healthy),
        "conditions": write_conditions(conditions_of(pool), conditions, now, generation_of(pool)),
    }
    if version:
        status["version"] = version
    return status


def _common_version(
    snapshot: HostedClusterSnapshot,
    pool: Object,
    verdict: PoolVerdict,
    alive: Sequence[Object],
    healthy: Sequence[Object],
    desired_count: int,
) -> str:
    """The version that all nodes have; the previous one until they all have the new one."""
    before = str(status_of(pool).get("version") or "")
    if not verdict.is_ready or verdict.release is None:
        return before
    target = verdict.release.version
    if snapshot.platform not in AUTOMATED_PLATFORMS:
        return target
    updated = [machine for machine in healthy if spec_of(machine).get("version") == target]
    return target if len(updated) == len(alive) == desired_count else before


def _input_conditions(pool: Object) -> Iterator[StatusCondition]:
    scaling = spec_of(pool).get("autoScaling")
    if scaling:
        message = f"Maximum nodes: {scaling.get('max')}, Minimum nodes: {scaling.get('min')}"
        yield StatusCondition("AutoscalingEnabled", "True", "AsExpected", message)
    else:
        yield StatusCondition("AutoscalingEnabled", "False", "AsExpected")
    yield StatusCondition("UpdateManagementEnabled", "True", "AsExpected")
    repairs = bool(get_nested(pool, "spec", "management", "autoRepair"))
    yield StatusCondition("AutorepairEnabled", "True" if repairs else "False", "AsExpected")


def _update_conditions(version: str, verdict: PoolVerdict) -> Iterator[StatusCondition]:
    target = verdict.release.version if verdict.release is not None and verdict.is_ready else ""
    if target and target != version:
        message = f"Updating to {target}"
        yield StatusCondition("UpdatingVersion", "True", "AsExpected", message)
    else:
        yield StatusCondition("UpdatingVersion", "False", "AsExpected")
    yield StatusCondition("UpdatingConfig", "False", "AsExpected")
    if verdict.is_ready:
        yield StatusCondition("ValidMachineConfig", "True", "AsExpected")
        yield StatusCondition("ValidGeneratedPayload", "True", "AsExpected")


def _machine_conditions(
    machines: Sequence[Object], desired_count: int
) -> Iterator[StatusCondition]:
    for kind, machine_condition in (
        ("AllMachinesReady", "Ready"),
        ("AllNodesHealthy", "NodeHealthy"),
    ):
        if not machines:
            nothing = ("AsExpected", "NodePool set to no replicas")
            yield StatusCondition(
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
            yield StatusCondition(kind, "False", reason, message)
        else:
            yield StatusCondition(kind, "True", "AsExpected", "All is well")


def _ignition_condition(pool: Object, machines: Sequence[Object]) -> StatusCondition:
    # Once reached it stays so: existing nodes do not fetch their payload again.
    reached = is_true(pool, "ReachedIgnitionEndpoint")
    if reached or any(is_true(machine, "InfrastructureReady") for machine in machines):
        return StatusCondition("ReachedIgnitionEndpoint", "True", "AsExpected")
    return StatusCondition("ReachedIgnitionEndpoint", "False", "ignitionNotReached")


def _ready_condition(healthy: int, alive: int, desired_count: int) -> StatusCondition:
    if healthy >= desired_count:
        message = (
            f"Scaling down to {desired_count}, there are {alive}" if alive > desired_count else ""
        )
        return StatusCondition("Ready", "True", "AsExpected", message)
    message = f"Minimum availability requires {desired_count} replicas, current {healthy} available"
    return StatusCondition("Ready", "False", "WaitingForAvailableMachines", message)
