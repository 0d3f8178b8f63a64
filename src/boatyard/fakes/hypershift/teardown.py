"""A HostedCluster that is to go: node pools, machines, control plane, then itself. Pure; called by `decide`."""

from __future__ import annotations

from boatyard.fakes.hypershift.kinds import CLUSTERS, MACHINES, NAMESPACES, POOLS, SECRETS
from boatyard.fakes.hypershift.machines import play_machine
from boatyard.fakes.hypershift.names import FINALIZER, NODE_POOL, Object
from boatyard.fakes.hypershift.objects import (
    Condition,
    annotations_of,
    conditions_of,
    deleted_at,
    generation_of,
    status_of,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.observation import Manner, Seen, pool_key
from boatyard.fakes.hypershift.writes import (
    Decision,
    Remove,
    Report,
    Write,
    drop_finalizer,
    earliest,
)


def play_teardown(seen: Seen, manner: Manner, now: float) -> Decision:
    """The next part of the way out; each waits until the one before is seen to be gone."""
    cluster = seen.cluster
    assert cluster is not None
    leaving = [Remove(POOLS, pool) for pool in seen.pools if deleted_at(pool) is None]
    strays, look_at = _strays(seen, manner, now)
    if seen.pools or seen.machines:
        return Decision((*leaving, *strays), look_at)
    gone = _control_plane_gone(cluster, now)
    if gone is not None:
        return Decision((gone,))
    if "stuck-deletion" in manner.faults("HostedCluster", cluster):
        return Decision()
    if seen.namespace is not None:
        if deleted_at(seen.namespace) is not None:
            return Decision()  # its deletion is another controller's work
        asked = deleted_at(cluster) or now
        due = asked + manner.pace.of("control-plane-delete", uid_of(cluster))
        if now < due:
            return Decision((), due)
        return Decision((Remove(NAMESPACES, seen.namespace),))
    last: list[Write] = [Remove(SECRETS, one) for one in seen.secrets.values()]
    change = drop_finalizer(CLUSTERS, cluster, FINALIZER)
    return Decision((*last, change) if change else tuple(last))


def _strays(seen: Seen, manner: Manner, now: float) -> tuple[list[Write], float | None]:
    """Machines whose pool is not there any more go as well."""
    pools = {pool_key(pool) for pool in seen.pools}
    writes: list[Write] = []
    moments: list[float | None] = []
    for machine in seen.machines:
        if annotations_of(machine).get(NODE_POOL) in pools:
            continue
        if deleted_at(machine) is None:
            writes.append(Remove(MACHINES, machine))
            continue
        played = play_machine(machine, None, seen, manner, now, may_join=False)
        writes += played.writes
        moments.append(played.look_at)
    return writes, earliest(*moments)


def _control_plane_gone(cluster: Object, now: float) -> Report | None:
    """Says that nothing answers any more; None when it is said."""
    told = "The hosted control plane is not found"
    over = {
        kind: Condition(kind, "False", "NotFound", told)
        for kind in ("Available", "KubeAPIServerAvailable", "EtcdAvailable")
    }
    kept = []
    for one in conditions_of(cluster):
        said = Condition(one["type"], one["status"], one["reason"], one.get("message") or "")
        kept.append(over.get(said.type, said))
    conditions = write_conditions(conditions_of(cluster), kept, now, generation_of(cluster))
    if conditions == conditions_of(cluster):
        return None
    return Report(CLUSTERS, cluster, {**status_of(cluster), "conditions": conditions})
