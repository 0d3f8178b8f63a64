"""Deletes a HostedCluster: node pools, machines, control plane, then itself. Pure; called by `decide`."""

from __future__ import annotations

from boatyard.fakes.hypershift.kinds import CLUSTERS, MACHINES, NAMESPACES, POOLS, SECRETS
from boatyard.fakes.hypershift.machines import decide_machine
from boatyard.fakes.hypershift.names import FINALIZER, NODE_POOL, Object
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    annotations_of,
    conditions_of,
    deleted_at,
    generation_of,
    status_of,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot, pool_key
from boatyard.fakes.hypershift.writes import (
    Decision,
    DeleteObject,
    UpdateStatus,
    Write,
    earliest,
    remove_finalizer,
)


def decide_teardown(
    snapshot: HostedClusterSnapshot, settings: FakeSettings, now: float
) -> Decision:
    """The next part of the deletion; each part waits until the objects of the one before are deleted."""
    cluster = snapshot.cluster
    assert cluster is not None
    pool_removals = [
        DeleteObject(POOLS, pool) for pool in snapshot.pools if deleted_at(pool) is None
    ]
    machine_writes, next_check = _delete_orphans(snapshot, settings, now)
    if snapshot.pools or snapshot.machines:
        return Decision((*pool_removals, *machine_writes), next_check)
    report = _report_control_plane_gone(cluster, now)
    if report is not None:
        return Decision((report,))
    if "stuck-deletion" in settings.find_faults("HostedCluster", cluster):
        return Decision()
    if snapshot.namespace is not None:
        if deleted_at(snapshot.namespace) is not None:
            return Decision()  # its deletion is another controller's work
        deletion_time = deleted_at(cluster) or now
        due = deletion_time + settings.delays.seconds_for("control-plane-delete", uid_of(cluster))
        if now < due:
            return Decision((), due)
        return Decision((DeleteObject(NAMESPACES, snapshot.namespace),))
    final_writes: list[Write] = [
        DeleteObject(SECRETS, secret) for secret in snapshot.secrets.values()
    ]
    change = remove_finalizer(CLUSTERS, cluster, FINALIZER)
    return Decision((*final_writes, change) if change else tuple(final_writes))


def _delete_orphans(
    snapshot: HostedClusterSnapshot, settings: FakeSettings, now: float
) -> tuple[list[Write], float | None]:
    """Deletes machines whose pool does not exist any more."""
    pools = {pool_key(pool) for pool in snapshot.pools}
    writes: list[Write] = []
    moments: list[float | None] = []
    for machine in snapshot.machines:
        if annotations_of(machine).get(NODE_POOL) in pools:
            continue
        if deleted_at(machine) is None:
            writes.append(DeleteObject(MACHINES, machine))
            continue
        decision = decide_machine(machine, None, snapshot, settings, now, may_join=False)
        writes += decision.writes
        moments.append(decision.next_check)
    return writes, earliest(*moments)


def _report_control_plane_gone(cluster: Object, now: float) -> UpdateStatus | None:
    """Reports that the control plane does not answer any more; None when that was reported."""
    message = "The hosted control plane is not found"
    overrides = {
        kind: StatusCondition(kind, "False", "NotFound", message)
        for kind in ("Available", "KubeAPIServerAvailable", "EtcdAvailable")
    }
    new_conditions = []
    for entry in conditions_of(cluster):
        condition = StatusCondition(
            entry["type"], entry["status"], entry["reason"], entry.get("message") or ""
        )
        new_conditions.append(overrides.get(condition.type, condition))
    conditions = write_conditions(
        conditions_of(cluster), new_conditions, now, generation_of(cluster)
    )
    if conditions == conditions_of(cluster):
        return None
    return UpdateStatus(CLUSTERS, cluster, {**status_of(cluster), "conditions": conditions})
