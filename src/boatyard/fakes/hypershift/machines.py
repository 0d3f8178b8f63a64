"""One Machine of a node pool: provisioned, joined, drained, deleted. Pure; called for each by `node_pools`."""

from __future__ import annotations

from collections.abc import Iterator

from boatyard.fakes.hypershift.agents import LOST, UNBOUND, agent_state, host_name, unbind_agent
from boatyard.fakes.hypershift.control_plane import infra_id
from boatyard.fakes.hypershift.kinds import MACHINES
from boatyard.fakes.hypershift.names import (
    AGENT_HOOK,
    AGENT_MACHINE,
    CLUSTER_NAME,
    MACHINE_FINALIZER,
    MACHINE_NUMBER,
    NODE_POOL,
    UPDATING_SINCE,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    conditions_of,
    created_at,
    deleted_at,
    find_condition,
    format_time,
    get_nested,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    short_hash,
    spec_of,
    status_of,
    true_since,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot, pool_key
from boatyard.fakes.hypershift.writes import (
    CreateObject,
    Decision,
    PatchObject,
    UpdateStatus,
    Write,
    add_finalizer,
    earliest,
    remove_finalizer,
)

MAX_NAME_STEM = 57
_INFRASTRUCTURE_KINDS = {
    "Agent": ("capi-provider.agent-install.openshift.io/v1beta1", "AgentMachine"),
    "KubeVirt": ("infrastructure.cluster.x-k8s.io/v1alpha1", "KubevirtMachine"),
}


def is_healthy(machine: Object) -> bool:
    return is_true(machine, "NodeHealthy")


def has_joined(machine: Object) -> bool:
    return bool(get_nested(status_of(machine), "nodeRef", "name"))


def create_machine(
    snapshot: HostedClusterSnapshot, pool: Object, number: int, version: str
) -> CreateObject:
    """Creates the machine of that number. Its name depends on the number, so doing it twice makes one machine."""
    assert snapshot.cluster is not None
    name = f"{name_of(pool)[:MAX_NAME_STEM]}-{short_hash(uid_of(pool), number)}"
    api_version, kind = _INFRASTRUCTURE_KINDS[snapshot.platform]
    annotations = {NODE_POOL: pool_key(pool), MACHINE_NUMBER: str(number)}
    if snapshot.platform == "Agent":
        annotations[AGENT_HOOK] = ""
    return CreateObject(
        MACHINES,
        {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.name,
            "metadata": {
                "name": name,
                "namespace": snapshot.home_namespace,
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
                    "namespace": snapshot.home_namespace,
                },
            },
        },
    )


def find_agents(machine: Object, snapshot: HostedClusterSnapshot) -> list[Object]:
    """The agents bound to a machine: one, or more after a crash; the one in its providerID comes first."""
    uid, provider_id = uid_of(machine), spec_of(machine).get("providerID")

    def is_named(agent: Object) -> bool:
        return f"agent://{name_of(agent)}" == provider_id

    def is_assigned(agent: Object) -> bool:
        owner = labels_of(agent).get(AGENT_MACHINE)
        if owner is not None or not is_named(agent):
            return owner == uid
        # Somebody removed the label; the agent is installed for this machine all the same.
        bound_to = get_nested(spec_of(agent), "clusterDeploymentName", "namespace")
        return bool(bound_to == namespace_of(machine))

    agents = [agent for agent in snapshot.agents if is_assigned(agent)]
    return sorted(agents, key=lambda agent: (not is_named(agent), name_of(agent)))


def decide_machine(
    machine: Object,
    pool: Object | None,
    snapshot: HostedClusterSnapshot,
    settings: FakeSettings,
    now: float,
    *,
    may_join: bool,
) -> Decision:
    """Moves a machine through its stages, as far as they are due."""
    if deleted_at(machine) is not None:
        return _decide_deletion(machine, pool, snapshot, settings, now)
    agents = find_agents(machine, snapshot)
    # If a process was killed and its successor bound another agent, the machine has two: it keeps one.
    writes: list[Write] = [unbind_agent(surplus_agent) for surplus_agent in agents[1:]]
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
    slow = settings.find_faults("NodePool", pool).extra_seconds if pool else 0.0
    infrastructure, next_check = _infrastructure_condition(
        machine, snapshot.platform, agent, settings, slow, now
    )
    joins = has_joined(machine)
    if infrastructure.is_true and not joins and may_join:
        since = true_since(machine, "InfrastructureReady")
        due = (
            (now if since is None else since)
            + settings.delays.seconds_for("join", uid_of(machine))
            + slow
        )
        joins = now >= due
        next_check = earliest(next_check, None if joins else due)
    status = _make_status(machine, infrastructure, joins, agent, now)
    if status != status_of(machine):
        writes.append(UpdateStatus(MACHINES, machine, status))
    return Decision(tuple(writes), next_check)


def begin_update(machine: Object, now: float) -> PatchObject:
    """Begins an update in place: the node is drained and boots the new version."""
    return PatchObject(
        MACHINES, machine, {"metadata": {"annotations": {UPDATING_SINCE: format_time(now)}}}
    )


def end_update(machine: Object, version: str) -> PatchObject:
    metadata = {"annotations": {UPDATING_SINCE: None}}
    return PatchObject(MACHINES, machine, {"metadata": metadata, "spec": {"version": version}})


def _provider_id(machine: Object, platform: str, agent: Object | None) -> str | None:
    if platform == "KubeVirt":
        return f"kubevirt://{name_of(machine)}"
    if agent is not None:
        return f"agent://{name_of(agent)}"
    provider_id = spec_of(machine).get("providerID")
    return str(provider_id) if provider_id else None


def _infrastructure_condition(
    machine: Object,
    platform: str,
    agent: Object | None,
    settings: FakeSettings,
    slow: float,
    now: float,
) -> tuple[StatusCondition, float | None]:
    ready = StatusCondition("InfrastructureReady", "True", "InfrastructureReady")
    if is_true(machine, "InfrastructureReady"):
        return ready, None
    if platform == "Agent":
        if agent is None:
            message = "no free Agent fits the pool's selector"
            return _false_condition(
                "InfrastructureReady", "NoSuitableAgents", message, "Warning"
            ), None
        if is_true(agent, "Installed"):
            return ready, None
        condition = find_condition(conditions_of(agent), "Installed") or {}
        reason = str(condition.get("reason") or "AgentNotYetFound")
        return _false_condition("InfrastructureReady", reason, f"Agent {name_of(agent)}"), None
    due = created_at(machine) + settings.delays.seconds_for("vm", uid_of(machine)) + slow
    if now >= due:
        return ready, None
    return _false_condition("InfrastructureReady", "VMNotReady", "the VM is not running yet"), due


def _make_status(
    machine: Object, infrastructure: StatusCondition, joins: bool, agent: Object | None, now: float
) -> Object:
    conditions = [
        _ready_condition(infrastructure),
        StatusCondition("BootstrapReady", "True", "BootstrapReady"),
        infrastructure,
        _node_health_condition(machine, joins, agent),
    ]
    phase = "Running" if joins else "Provisioned" if infrastructure.is_true else "Provisioning"
    status: Object = {
        "phase": phase,
        "bootstrapReady": True,
        "infrastructureReady": infrastructure.is_true,
        "conditions": write_conditions(conditions_of(machine), conditions, now),
    }
    if joins:
        before = status_of(machine).get("nodeRef")
        host = host_name(agent) if agent is not None else name_of(machine)
        node = {"apiVersion": "v1", "kind": "Node", "name": host}
        status["nodeRef"] = before or node
        status["addresses"] = status_of(machine).get("addresses") or list(
            _iter_addresses(host, agent)
        )
    return status


def _ready_condition(infrastructure: StatusCondition) -> StatusCondition:
    if infrastructure.is_true:
        return StatusCondition("Ready", "True", "Ready")
    return _false_condition(
        "Ready", infrastructure.reason, infrastructure.message, infrastructure.severity
    )


def _node_health_condition(machine: Object, joins: bool, agent: Object | None) -> StatusCondition:
    if not joins:
        return _false_condition("NodeHealthy", "WaitingForNodeRef", "", "Info")
    provider = str(spec_of(machine).get("providerID") or "")
    if provider.startswith("agent://") and agent is None:
        return _false_condition("NodeHealthy", "NodeNotFound", "its Agent is gone", "Error")
    if agent is not None and agent_state(agent) == LOST:
        return _false_condition(
            "NodeHealthy", "NodeConditionsFailed", "its Agent is lost", "Warning"
        )
    return StatusCondition("NodeHealthy", "True", "NodeHealthy")


def _iter_addresses(host: str, agent: Object | None) -> Iterator[Object]:
    for card in get_nested(status_of(agent or {}), "inventory", "interfaces") or []:
        for address in card.get("ipV4Addresses") or []:
            yield {"type": "ExternalIP", "address": address.partition("/")[0]}
    yield {"type": "InternalDNS", "address": host}


def _false_condition(
    kind: str, reason: str, message: str = "", severity: str = "Info"
) -> StatusCondition:
    return StatusCondition(kind, "False", reason, message, severity)


# --- leaving ----------------------------------------------------------------------------------


def _decide_deletion(
    machine: Object,
    pool: Object | None,
    snapshot: HostedClusterSnapshot,
    settings: FakeSettings,
    now: float,
) -> Decision:
    """Deletes a machine: drains its node, unbinds its agent, removes its finalizer."""
    stuck = "stuck-deletion" in settings.find_faults("Machine", machine) or (
        pool is not None and "stuck-deletion" in settings.find_faults("NodePool", pool)
    )
    since = deleted_at(machine) or now
    drain_end = since + settings.delays.seconds_for("drain", uid_of(machine))
    status = _make_deleting_status(machine, now >= drain_end, now)
    if status != status_of(machine):
        return Decision((UpdateStatus(MACHINES, machine, status),), earliest(drain_end))
    if now < drain_end or stuck:
        return Decision((), drain_end if now < drain_end else None)
    agents = find_agents(machine, snapshot)
    if agents:
        return Decision(tuple(unbind_agent(agent) for agent in agents))
    removal_time = drain_end
    if snapshot.platform == "KubeVirt":
        removal_time += settings.delays.seconds_for("vm-delete", uid_of(machine))
    if now < removal_time or not _is_agent_released(machine, snapshot):
        return Decision((), removal_time if now < removal_time else None)
    change = remove_finalizer(MACHINES, machine, MACHINE_FINALIZER)
    return Decision((change,) if change else ())


def _is_agent_released(machine: Object, snapshot: HostedClusterSnapshot) -> bool:
    """Whether the machine's agent is bound to another machine, free, lost, or deleted."""
    agent_name = str(spec_of(machine).get("providerID") or "").removeprefix("agent://")
    agent = next(
        (candidate for candidate in snapshot.agents if name_of(candidate) == agent_name), None
    )
    return agent is None or AGENT_MACHINE in labels_of(agent) or agent_state(agent) in UNBOUND


def _make_deleting_status(machine: Object, drained: bool, now: float) -> Object:
    other_conditions = [
        StatusCondition(
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
        _false_condition("Ready", "Deleting"),
        *other_conditions,
        _false_condition("NodeHealthy", "Deleting"),
        StatusCondition("DrainingSucceeded", *draining_state),
    ]
    return {
        **status_of(machine),
        "phase": "Deleting",
        "conditions": write_conditions(conditions_of(machine), conditions, now),
    }
