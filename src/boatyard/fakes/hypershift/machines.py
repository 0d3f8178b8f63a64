"""One Machine of a node pool: provisioned, joined, drained, deleted. Pure; called for each by `node_pools`."""

from __future__ import annotations

from collections.abc import Iterator

from boatyard.fakes.hypershift.agents import LOST, UNBOUND, host_name, state_of, unbind
from boatyard.fakes.hypershift.control_plane import infra_id
from boatyard.fakes.hypershift.kinds import MACHINES
from boatyard.fakes.hypershift.names import (
    AGENT_HOOK,
    AGENT_MACHINE,
    CLUSTER_NAME,
    MACHINE_FINALIZER,
    NODE_POOL,
    NUMBER,
    UPDATING_SINCE,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    Condition,
    conditions_of,
    created_at,
    deleted_at,
    find_condition,
    inside,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    short_hash,
    spec_of,
    stamp,
    status_of,
    true_since,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.observation import Manner, Seen, pool_key
from boatyard.fakes.hypershift.writes import (
    Change,
    Create,
    Decision,
    Report,
    Write,
    add_finalizer,
    drop_finalizer,
    earliest,
)

LONGEST_STEM = 57
_INFRASTRUCTURE = {
    "Agent": ("capi-provider.agent-install.openshift.io/v1beta1", "AgentMachine"),
    "KubeVirt": ("infrastructure.cluster.x-k8s.io/v1alpha1", "KubevirtMachine"),
}


def is_healthy(machine: Object) -> bool:
    return is_true(machine, "NodeHealthy")


def has_joined(machine: Object) -> bool:
    return bool(inside(status_of(machine), "nodeRef", "name"))


def new_machine(snapshot: Seen, pool: Object, number: int, version: str) -> Create:
    """Creates the machine of that number. Its name depends on the number, so doing it twice makes one machine."""
    assert snapshot.cluster is not None
    name = f"{name_of(pool)[:LONGEST_STEM]}-{short_hash(uid_of(pool), number)}"
    api_version, kind = _INFRASTRUCTURE[snapshot.platform]
    annotations = {NODE_POOL: pool_key(pool), NUMBER: str(number)}
    if snapshot.platform == "Agent":
        annotations[AGENT_HOOK] = ""
    return Create(
        MACHINES,
        {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.name,
            "metadata": {
                "name": name,
                "namespace": snapshot.home,
                "labels": {CLUSTER_NAME: infra_id(snapshot.cluster)},
                "annotations": annotations,
                "finalizers": [MACHINE_FINALIZER],
            },
            "spec": {
                "clusterName": infra_id(snapshot.cluster),
                "version": version,
                "bootstrap": {"dataSecretName": f"user-data-{name_of(pool)}"},
                "infrastructureRef": {
                    "apiVersion": api_version,
                    "kind": kind,
                    "name": name,
                    "namespace": snapshot.home,
                },
            },
        },
    )


def agents_of(machine: Object, snapshot: Seen) -> list[Object]:
    """The agents bound to a machine: one, or more after a crash; the one in its providerID comes first."""
    uid, provider_id = uid_of(machine), spec_of(machine).get("providerID")

    def is_named(agent: Object) -> bool:
        return f"agent://{name_of(agent)}" == provider_id

    def is_assigned(agent: Object) -> bool:
        owner = labels_of(agent).get(AGENT_MACHINE)
        if owner is not None or not is_named(agent):
            return owner == uid
        # Somebody removed the label; the agent is installed for this machine all the same.
        bound_to = inside(spec_of(agent), "clusterDeploymentName", "namespace")
        return bool(bound_to == namespace_of(machine))

    agents = [agent for agent in snapshot.agents if is_assigned(agent)]
    return sorted(agents, key=lambda agent: (not is_named(agent), name_of(agent)))


def play_machine(
    machine: Object,
    pool: Object | None,
    snapshot: Seen,
    settings: Manner,
    now: float,
    *,
    may_join: bool,
) -> Decision:
    """Moves a machine through its stages, as far as they are due."""
    if deleted_at(machine) is not None:
        return _leave(machine, pool, snapshot, settings, now)
    agents = agents_of(machine, snapshot)
    # If a process was killed and its successor bound another agent, the machine has two: it keeps one.
    writes: list[Write] = [unbind(surplus_agent) for surplus_agent in agents[1:]]
    agent = agents[0] if agents else None
    provider_id = _provider_id(machine, snapshot.platform, agent)
    patch = (
        {"spec": {"providerID": provider_id}}
        if provider_id != spec_of(machine).get("providerID")
        else {}
    )
    change = add_finalizer(MACHINES, machine, MACHINE_FINALIZER, **(patch if provider_id else {}))
    if change is not None:
        return Decision((*writes, change))
    slow = settings.faults("NodePool", pool).slowness if pool else 0.0
    infrastructure, next_check = _infrastructure(
        machine, snapshot.platform, agent, settings, slow, now
    )
    joins = has_joined(machine)
    if infrastructure.true and not joins and may_join:
        since = true_since(machine, "InfrastructureReady")
        due = (now if since is None else since) + settings.pace.of("join", uid_of(machine)) + slow
        joins = now >= due
        next_check = earliest(next_check, None if joins else due)
    status = _status(machine, infrastructure, joins, agent, now)
    if status != status_of(machine):
        writes.append(Report(MACHINES, machine, status))
    return Decision(tuple(writes), next_check)


def begin_update(machine: Object, now: float) -> Change:
    """Begins an update in place: the node is drained and boots the new version."""
    return Change(MACHINES, machine, {"metadata": {"annotations": {UPDATING_SINCE: stamp(now)}}})


def end_update(machine: Object, version: str) -> Change:
    metadata = {"annotations": {UPDATING_SINCE: None}}
    return Change(MACHINES, machine, {"metadata": metadata, "spec": {"version": version}})


def _provider_id(machine: Object, platform: str, agent: Object | None) -> str | None:
    if platform == "KubeVirt":
        return f"kubevirt://{name_of(machine)}"
    if agent is not None:
        return f"agent://{name_of(agent)}"
    provider_id = spec_of(machine).get("providerID")
    return str(provider_id) if provider_id else None


def _infrastructure(
    machine: Object, platform: str, agent: Object | None, settings: Manner, slow: float, now: float
) -> tuple[Condition, float | None]:
    ready = Condition("InfrastructureReady", "True", "InfrastructureReady")
    if is_true(machine, "InfrastructureReady"):
        return ready, None
    if platform == "Agent":
        if agent is None:
            message = "no free Agent fits the pool's selector"
            return _false("InfrastructureReady", "NoSuitableAgents", message, "Warning"), None
        if is_true(agent, "Installed"):
            return ready, None
        condition = find_condition(conditions_of(agent), "Installed") or {}
        reason = str(condition.get("reason") or "AgentNotYetFound")
        return _false("InfrastructureReady", reason, f"Agent {name_of(agent)}"), None
    due = created_at(machine) + settings.pace.of("vm", uid_of(machine)) + slow
    if now >= due:
        return ready, None
    return _false("InfrastructureReady", "VMNotReady", "the VM is not running yet"), due


def _status(
    machine: Object, infrastructure: Condition, joins: bool, agent: Object | None, now: float
) -> Object:
    conditions = [
        _ready(infrastructure),
        Condition("BootstrapReady", "True", "BootstrapReady"),
        infrastructure,
        _node_health(machine, joins, agent),
    ]
    phase = "Running" if joins else "Provisioned" if infrastructure.true else "Provisioning"
    status: Object = {
        "phase": phase,
        "bootstrapReady": True,
        "infrastructureReady": infrastructure.true,
        "conditions": write_conditions(conditions_of(machine), conditions, now),
    }
    if joins:
        before = status_of(machine).get("nodeRef")
        host = host_name(agent) if agent is not None else name_of(machine)
        node = {"apiVersion": "v1", "kind": "Node", "name": host}
        status["nodeRef"] = before or node
        status["addresses"] = status_of(machine).get("addresses") or list(_addresses(host, agent))
    return status


def _ready(infrastructure: Condition) -> Condition:
    if infrastructure.true:
        return Condition("Ready", "True", "Ready")
    return _false("Ready", infrastructure.reason, infrastructure.message, infrastructure.severity)


def _node_health(machine: Object, joins: bool, agent: Object | None) -> Condition:
    if not joins:
        return _false("NodeHealthy", "WaitingForNodeRef", "", "Info")
    provider = str(spec_of(machine).get("providerID") or "")
    if provider.startswith("agent://") and agent is None:
        return _false("NodeHealthy", "NodeNotFound", "its Agent is gone", "Error")
    if agent is not None and state_of(agent) == LOST:
        return _false("NodeHealthy", "NodeConditionsFailed", "its Agent is lost", "Warning")
    return Condition("NodeHealthy", "True", "NodeHealthy")


def _addresses(host: str, agent: Object | None) -> Iterator[Object]:
    for card in inside(status_of(agent or {}), "inventory", "interfaces") or []:
        for address in card.get("ipV4Addresses") or []:
            yield {"type": "ExternalIP", "address": address.partition("/")[0]}
    yield {"type": "InternalDNS", "address": host}


def _false(kind: str, reason: str, message: str = "", severity: str = "Info") -> Condition:
    return Condition(kind, "False", reason, message, severity)


# --- leaving ----------------------------------------------------------------------------------


def _leave(
    machine: Object, pool: Object | None, snapshot: Seen, settings: Manner, now: float
) -> Decision:
    """Deletes a machine: drains its node, unbinds its agent, removes its finalizer."""
    stuck = "stuck-deletion" in settings.faults("Machine", machine) or (
        pool is not None and "stuck-deletion" in settings.faults("NodePool", pool)
    )
    since = deleted_at(machine) or now
    drain_end = since + settings.pace.of("drain", uid_of(machine))
    status = _leaving_status(machine, now >= drain_end, now)
    if status != status_of(machine):
        return Decision((Report(MACHINES, machine, status),), earliest(drain_end))
    if now < drain_end or stuck:
        return Decision((), drain_end if now < drain_end else None)
    agents = agents_of(machine, snapshot)
    if agents:
        return Decision(tuple(unbind(agent) for agent in agents))
    removal_time = drain_end
    if snapshot.platform == "KubeVirt":
        removal_time += settings.pace.of("vm-delete", uid_of(machine))
    if now < removal_time or not _released(machine, snapshot):
        return Decision((), removal_time if now < removal_time else None)
    change = drop_finalizer(MACHINES, machine, MACHINE_FINALIZER)
    return Decision((change,) if change else ())


def _released(machine: Object, snapshot: Seen) -> bool:
    """Whether the machine's agent is bound to another machine, free, lost, or deleted."""
    agent_name = str(spec_of(machine).get("providerID") or "").removeprefix("agent://")
    agent = next(
        (candidate for candidate in snapshot.agents if name_of(candidate) == agent_name), None
    )
    return agent is None or AGENT_MACHINE in labels_of(agent) or state_of(agent) in UNBOUND


def _leaving_status(machine: Object, drained: bool, now: float) -> Object:
    other_conditions = [
        Condition(
            str(condition.get("type")),
            str(condition.get("status")),
            str(condition.get("reason") or ""),
            str(condition.get("message") or ""),
            str(condition.get("severity") or ""),
        )
        for condition in conditions_of(machine)
        if condition.get("type") not in ("NodeHealthy", "DrainingSucceeded", "Ready")
    ]
    draining_state = ("True", "DrainingSucceeded") if drained else ("False", "Draining")
    conditions = [
        _false("Ready", "Deleting"),
        *other_conditions,
        _false("NodeHealthy", "Deleting"),
        Condition("DrainingSucceeded", *draining_state),
    ]
    return {
        **status_of(machine),
        "phase": "Deleting",
        "conditions": write_conditions(conditions_of(machine), conditions, now),
    }
