"""Maps a cluster's spec to its order and the order's status back. Pure; called by the cluster reconciler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from boatyard.model.conditions import with_transition_time
from boatyard.model.generated.boatyard import (
    Order,
    OrderCondition,
    OrderNodeSet,
    OrderPhase,
    OrderRestore,
    OrderSpec,
)
from boatyard.model.generated.osac import (
    Cluster,
    ClusterCondition,
    ClusterConditionType,
    ClusterNodeSet,
    ClusterRest,
    ClusterState,
    ClusterStatus,
    ClusterVersion,
    ConditionStatus,
    Placement,
)
from boatyard.resources.orders.redaction import redact_for_tenants
from boatyard.roles.parameter_values import decode_secrets

_STATES: Mapping[OrderPhase, ClusterState] = {
    OrderPhase.UNSPECIFIED: ClusterState.PROGRESSING,
    OrderPhase.PROGRESSING: ClusterState.PROGRESSING,
    OrderPhase.READY: ClusterState.READY,
    OrderPhase.DEGRADED: ClusterState.DEGRADED,
    OrderPhase.RESTING: ClusterState.HIBERNATED,
    OrderPhase.FAILED: ClusterState.FAILED,
    OrderPhase.DELETING: ClusterState.DELETING,
    OrderPhase.DELETED: ClusterState.DELETING,
}

_CONDITIONS: Mapping[str, ClusterConditionType] = {
    "Progressing": ClusterConditionType.PROGRESSING,
    "Ready": ClusterConditionType.READY,
    "Failed": ClusterConditionType.FAILED,
    "Degraded": ClusterConditionType.DEGRADED,
    "ClusterAvailable": ClusterConditionType.CLUSTER_AVAILABLE,
    "NodesReady": ClusterConditionType.NODES_READY,
    "InfrastructureReady": ClusterConditionType.INFRASTRUCTURE_READY,
    "TemplateApplied": ClusterConditionType.TEMPLATE_APPLIED,
}


def to_order_spec(
    cluster: Cluster, version: ClusterVersion | None, settings: Mapping[str, str]
) -> OrderSpec:
    """The spec of the order, from the cluster's spec and the template's settings for the platform."""
    spec = cluster.spec
    secret = decode_secrets(spec.secret_parameters)
    return OrderSpec(
        cluster_name=cluster.metadata.name,
        hub=cluster.status.hub,
        template=spec.template.id,
        template_digest=spec.template_digest,
        template_phases=spec.template_phases,
        labels=cluster.metadata.labels,
        annotations=cluster.metadata.annotations,
        project=cluster.metadata.project,
        display_name=cluster.metadata.display_name,
        template_parameters=spec.template_parameters,
        secret_parameters=tuple(secret),
        secret_values=spec.secret_parameters,
        node_sets={
            name: OrderNodeSet(host_type=node_set.host_type.id, size=node_set.size)
            for name, node_set in spec.node_sets.items()
        },
        version=version.spec.version if version else "",
        release_image=version.spec.image if version else "",
        ssh_public_key=spec.ssh_public_key or "",
        pull_secret=spec.pull_secret or "",
        pod_cidr=(spec.network.pod_cidr if spec.network else None) or "",
        service_cidr=(spec.network.service_cidr if spec.network else None) or "",
        generation=cluster.metadata.generation,
        platform_settings=settings,
        rest=spec.rest,
        restore=OrderRestore(request=spec.restore.request, backup=spec.restore.backup),
    )


def status_from_order(cluster: Cluster, order: Order, now: datetime) -> ClusterStatus:
    """The cluster's status computed from its order. Equal to the old one when nothing changed."""
    old, order_status = cluster.status, order.status
    state = _STATES[order_status.phase]
    steady = (ClusterState.READY, ClusterState.DEGRADED, ClusterState.HIBERNATED)
    if order_status.observed_generation != cluster.metadata.generation and state in steady:
        state = ClusterState.PROGRESSING  # the order is of an older generation
    if cluster.metadata.deletion_timestamp is not None:
        state = ClusterState.DELETING
    return msgspec.structs.replace(
        old,
        state=state,
        state_transition_time=old.state_transition_time if state == old.state else now,
        conditions=tuple(
            _to_cluster_condition(condition, order)
            for condition in order_status.conditions
            if condition.type in _CONDITIONS
        ),
        node_sets={
            name: ClusterNodeSet(
                host_type=cluster.spec.node_sets[name].host_type
                if name in cluster.spec.node_sets
                else old.node_sets.get(name, ClusterNodeSet()).host_type,
                size=size,
            )
            for name, size in sorted(order_status.nodes.items())
        },
        ready_nodes=dict(sorted(order_status.ready_nodes.items())),
        api_url=order_status.facts.get("api_url", ""),
        console_url=order_status.facts.get("console_url", ""),
        api_endpoint=order_status.facts.get("api_endpoint", ""),
        ingress_endpoint=order_status.facts.get("ingress_endpoint", ""),
        observed_generation=order_status.observed_generation,
        version=order_status.version,
        rest=order_status.rest if order_status.phase == OrderPhase.RESTING else ClusterRest.AWAKE,
        restored=order_status.restored,
    )


def make_waiting_status(
    cluster: Cluster, placement: Placement, *, reason: str, message: str, now: datetime
) -> ClusterStatus:
    """The status of a cluster that fits nowhere yet, or cannot grow yet."""
    other_conditions = [
        c for c in cluster.status.conditions if c.type != ClusterConditionType.PROGRESSING
    ]
    progressing = ClusterCondition(
        type=ClusterConditionType.PROGRESSING,
        status=ConditionStatus.FALSE,
        reason=reason,
        message=message,
    )
    progressing = with_transition_time(progressing, cluster.status.conditions, now)
    state = ClusterState.PROGRESSING
    return msgspec.structs.replace(
        cluster.status,
        state=state,
        state_transition_time=cluster.status.state_transition_time
        if cluster.status.state == state
        else now,
        conditions=(progressing, *other_conditions),
        placement=placement,
    )


def _to_cluster_condition(condition: OrderCondition, order: Order) -> ClusterCondition:
    return ClusterCondition(
        type=_CONDITIONS[condition.type],
        status=ConditionStatus.TRUE if condition.status else ConditionStatus.FALSE,
        reason=condition.reason,
        message=redact_for_tenants(condition.message, order),
        last_transition_time=condition.last_transition_time,
    )
