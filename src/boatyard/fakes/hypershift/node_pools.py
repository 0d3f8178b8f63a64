"""A NodePool: how many machines there should be, of which version, and what is said of them. Pure."""

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

# Platforms whose machines are made here; those of None are brought by people.
AUTOMATED = ("Agent", "KubeVirt")


@dataclass(frozen=True)
class PoolVerdict:
    """The conditions about a pool's input. While it is not `ready`, no machine is made, changed or taken."""

    conditions: tuple[Condition, ...]
    release: Release | None
    ready: bool
    look_at: float | None = None


def play_pool(seen: Seen, pool: Object, taken: set[str], manner: Manner, now: float) -> Decision:
    """One pool. `taken` are the uids of agents that earlier pools of this decision have taken."""
    if deleted_at(pool) is not None:
        return _leave(seen, pool, manner, now)
    if seen.cluster is None:
        return Decision()  # a pool of nobody: nothing is done, and nothing is said
    identity = _identity(pool, seen.cluster)
    if identity is not None:
        return Decision((identity,))
    verdict = _judge(seen, pool, manner, now)
    machines = seen.machines_of(pool)
    writes: list[Write] = []
    moments = [verdict.look_at]
    wants_agents = False
    busy: set[str] = set()
    if verdict.ready and verdict.release is not None and seen.platform in AUTOMATED:
        scaled, scale_at = scale(seen, pool, verdict.release.version, manner, now)
        repaired, repair_at = repair(pool, machines, manner, now)
        writes += [*scaled, *repaired]
        moments += [scale_at, repair_at]
        busy = {uid_of(one.seen) for one in writes if isinstance(one, Change | Remove)}
    if seen.platform == "Agent":
        given, served, wants_agents = give_agents(seen, pool, taken)
        writes += given
        busy |= served
    for machine, may_join in _joining(pool, machines, manner):
        if uid_of(machine) in busy:
            continue  # written already; its next stage is seen in the next pass
        played = play_machine(machine, pool, seen, manner, now, may_join=may_join)
        writes += _numbers_kept(pool, machine, played)
        writes += played.writes
        moments.append(played.look_at)
    status = _status(seen, pool, verdict, machines, now)
    if status != status_of(pool) and not _changes(pool, writes):
        writes.append(Report(POOLS, pool, status))
    return Decision(tuple(writes), earliest(*moments), wants_agents)


def _identity(pool: Object, cluster: Object) -> Change | None:
    more: Object = {}
    owners = pool["metadata"].get("ownerReferences") or []
    if not any(one.get("uid") == uid_of(cluster) for one in owners):
        more["metadata"] = {"ownerReferences": [*owners, owner_reference(cluster)]}
    return add_finalizer(POOLS, pool, FINALIZER, **more)


def _leave(seen: Seen, pool: Object, manner: Manner, now: float) -> Decision:
    """Machines first; the pool when none is left."""
    machines = seen.machines_of(pool)
    if not machines:
        change = drop_finalizer(POOLS, pool, FINALIZER)
        return Decision((change,) if change else ())
    writes: list[Write] = []
    moments: list[float | None] = []
    for machine in machines:
        if deleted_at(machine) is None:
            writes.append(Remove(MACHINES, machine))
            continue
        played = play_machine(machine, pool, seen, manner, now, may_join=False)
        writes += played.writes
        moments.append(played.look_at)
    return Decision(tuple(writes), earliest(*moments))


def _joining(
    pool: Object, machines: Sequence[Object], manner: Manner
) -> Iterator[tuple[Object, bool]]:
    """Each machine, and whether it may become a node."""
    planted = manner.faults("NodePool", pool)
    alive = [one for one in machines if deleted_at(one) is None]
    joined = sum(has_joined(one) for one in alive)
    room = wanted_machines(pool, alive) - int(planted.number("never-joins", 1))
    for machine in machines:
        may = "never-joins" not in manner.faults("Machine", machine)
        if may and "never-joins" in planted and machine in alive and not has_joined(machine):
            # The oldest have the places, so that it is always the same ones that never join.
            may = joined < room
            joined += 1
        yield machine, may


def _numbers_kept(pool: Object, machine: Object, played: Decision) -> list[Write]:
    """Remembers the highest number before the machine that bears it goes: no name is given twice."""
    goes = deleted_at(machine) is not None and any(
        isinstance(one, Change) and one.seen is machine for one in played.writes
    )
    number, known = number_of(machine), annotations_of(pool).get(LAST_NUMBER, "")
    if not goes or number <= (int(known) if known.isdecimal() else 0):
        return []
    return [Change(POOLS, pool, {"metadata": {"annotations": {LAST_NUMBER: str(number)}}})]


def _changes(pool: Object, writes: Sequence[Write]) -> bool:
    return any(isinstance(one, Change) and one.seen is pool for one in writes)


# --- what is said -----------------------------------------------------------------------------


def _judge(seen: Seen, pool: Object, manner: Manner, now: float) -> PoolVerdict:
    cluster = seen.cluster
    assert cluster is not None
    active, resumes = reconciliation_active(pool, now)
    cluster_active, cluster_resumes = reconciliation_active(cluster, now)
    release = manner.release(pool)
    valid = list(_valid_release(seen, pool, release, manner))
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
        told = "waiting for the ignition server of the control plane"
        missing = Condition("IgnitionEndpointAvailable", "False", "IgnitionEndpointMissing", told)
        valid.append(missing)
    ready = active.true and cluster_active.true and all(one.true for one in valid)
    return PoolVerdict(
        conditions=(active, *valid),
        release=release,
        ready=ready and deleted_at(cluster) is None,
        look_at=earliest(resumes, cluster_resumes),
    )


def _valid_release(
    seen: Seen, pool: Object, release: Release | None, manner: Manner
) -> Iterator[Condition]:
    """As HyperShift says it of old, and as it says it of late (SupportedVersionSkew)."""
    assert seen.cluster is not None
    image = inside(pool, "spec", "release", "image")
    if release is None:
        told = f"{image} tells no version: use a tag such as :4.18.2-multi"
        yield Condition("ValidReleaseImage", "False", "ValidationFailed", told)
        return
    control_plane = completed_release(seen.cluster, manner) or manner.release(seen.cluster)
    why = why_not_this_pool(release, control_plane) if control_plane is not None else ""
    if why:
        yield Condition("ValidReleaseImage", "False", "ValidationFailed", why)
        yield Condition("SupportedVersionSkew", "False", "UnsupportedSkew", why)
        return
    yield Condition("ValidReleaseImage", "True", "AsExpected", f"Using release image: {image}")
    yield Condition("SupportedVersionSkew", "True", "AsExpected")


def _status(
    seen: Seen, pool: Object, verdict: PoolVerdict, machines: Sequence[Object], now: float
) -> Object:
    alive = [one for one in machines if deleted_at(one) is None]
    want = wanted_machines(pool, alive)
    healthy = [one for one in alive if is_healthy(one)]
    version = _version(seen, pool, verdict, alive, healthy, want)
    conditions = [
        *_input_conditions(pool),
        *verdict.conditions,
        *_update_conditions(version, verdict),
    ]
    if seen.platform in AUTOMATED:
        conditions += [
            *_machine_conditions(machines, want),
            _reached_ignition(pool, machines),
            _ready(len(healthy), len(alive), want),
        ]
    status: Object = {
        "replicas": len(healthy),
        "conditions": write_conditions(conditions_of(pool), conditions, now, generation_of(pool)),
    }
    if version:
        status["version"] = version
    return status


def _version(
    seen: Seen,
    pool: Object,
    verdict: PoolVerdict,
    alive: Sequence[Object],
    healthy: Sequence[Object],
    want: int,
) -> str:
    """The version that all nodes have; the one before while they have not."""
    before = str(status_of(pool).get("version") or "")
    if not verdict.ready or verdict.release is None:
        return before
    target = verdict.release.version
    if seen.platform not in AUTOMATED:
        return target
    updated = [one for one in healthy if spec_of(one).get("version") == target]
    return target if len(updated) == len(alive) == want else before


def _input_conditions(pool: Object) -> Iterator[Condition]:
    scaling = spec_of(pool).get("autoScaling")
    if scaling:
        told = f"Maximum nodes: {scaling.get('max')}, Minimum nodes: {scaling.get('min')}"
        yield Condition("AutoscalingEnabled", "True", "AsExpected", told)
    else:
        yield Condition("AutoscalingEnabled", "False", "AsExpected")
    yield Condition("UpdateManagementEnabled", "True", "AsExpected")
    repairs = bool(inside(pool, "spec", "management", "autoRepair"))
    yield Condition("AutorepairEnabled", "True" if repairs else "False", "AsExpected")


def _update_conditions(version: str, verdict: PoolVerdict) -> Iterator[Condition]:
    target = verdict.release.version if verdict.release is not None and verdict.ready else ""
    if target and target != version:
        told = f"Updating to {target}"
        yield Condition("UpdatingVersion", "True", "AsExpected", told)
    else:
        yield Condition("UpdatingVersion", "False", "AsExpected")
    yield Condition("UpdatingConfig", "False", "AsExpected")
    if verdict.ready:
        yield Condition("ValidMachineConfig", "True", "AsExpected")
        yield Condition("ValidGeneratedPayload", "True", "AsExpected")


def _machine_conditions(machines: Sequence[Object], want: int) -> Iterator[Condition]:
    for kind, told_by in (("AllMachinesReady", "Ready"), ("AllNodesHealthy", "NodeHealthy")):
        if not machines:
            nothing = ("AsExpected", "NodePool set to no replicas")
            yield Condition(kind, "False", *(nothing if not want else ("NotFound", "No Machines")))
            continue
        bad = [
            (name_of(one), found)
            for one in machines
            for found in [find_condition(conditions_of(one), told_by) or {}]
            if found.get("status") != "True"
        ]
        if bad:
            message = "; ".join(
                f"Machine {name}: {found.get('reason', 'Unknown')}" for name, found in bad
            )
            reason = str(bad[0][1].get("reason") or "Unknown")
            yield Condition(kind, "False", reason, message)
        else:
            yield Condition(kind, "True", "AsExpected", "All is well")


def _reached_ignition(pool: Object, machines: Sequence[Object]) -> Condition:
    # Once reached it stays so: nodes that are there do not ask for their payload again.
    reached = is_true(pool, "ReachedIgnitionEndpoint")
    if reached or any(is_true(one, "InfrastructureReady") for one in machines):
        return Condition("ReachedIgnitionEndpoint", "True", "AsExpected")
    return Condition("ReachedIgnitionEndpoint", "False", "ignitionNotReached")


def _ready(healthy: int, alive: int, want: int) -> Condition:
    if healthy >= want:
        told = f"Scaling down to {want}, there are {alive}" if alive > want else ""
        return Condition("Ready", "True", "AsExpected", told)
    told = f"Minimum availability requires {want} replicas, current {healthy} available"
    return Condition("Ready", "False", "WaitingForAvailableMachines", told)
