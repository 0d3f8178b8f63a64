"""Converts an order's status to that of a ClusterOrder. Pure; the operator writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from boatyard.model import hub_names
from boatyard.model.conditions import transition_time
from boatyard.model.generated.boatyard import (
    Credentials,
    ItemState,
    Order,
    OrderPhase,
)
from boatyard.orderbook.kube.mapping import kube_json
from boatyard.orderbook.kube.mapping.from_kube import CREDENTIALS_MASK, Object, read_credentials_ref

# OSAC knows four phases; the conditions and `status.boatyard` say the rest.
OSAC_PHASES: Mapping[OrderPhase, str] = {
    OrderPhase.UNSPECIFIED: "Progressing",
    OrderPhase.PROGRESSING: "Progressing",
    OrderPhase.READY: "Ready",
    OrderPhase.DEGRADED: "Ready",
    OrderPhase.RESTING: "Ready",
    OrderPhase.FAILED: "Failed",
    OrderPhase.DELETING: "Deleting",
    OrderPhase.DELETED: "Deleting",
}
_DELETION_PHASES = (OrderPhase.DELETING, OrderPhase.DELETED)


def to_status(order: Order, before: Mapping[str, Any], now: datetime) -> Object:
    """The whole status, without credentials. `before` is the object as it was read."""
    status = order.status
    public_status = msgspec.structs.replace(status, credentials=Credentials())
    sizes = [node_set.size for node_set in order.spec.node_sets.values()]
    fields: Object = {
        "phase": OSAC_PHASES[status.phase],
        "conditions": list(_conditions(order, before, now)),
        "clusterReference": _make_cluster_reference(order, before),
        "credentialsRef": _keep_credentials_ref(order, before),
        "nodeRequests": [
            _make_node_request(name, order, count) for name, count in sorted(status.nodes.items())
        ],
        "apiEndpoint": status.facts.get("api_endpoint", ""),
        "ingressEndpoint": status.facts.get("ingress_endpoint", ""),
        "desiredWorkers": sum(sizes),
        "currentWorkers": sum(status.nodes.values()),
        "readyWorkers": sum(status.ready_nodes.values()),
        "boatyard": kube_json.dump(public_status),
    }
    return {name: value for name, value in fields.items() if value not in ("", None, [])}


def get_cluster_namespace(order: Order) -> str:
    """The namespace on the hub with the cluster's own objects; empty when its platform creates none."""
    cluster = next((item for item in order.status.items if item.kind == "cluster"), None)
    return cluster.facts.get("namespace", "") if cluster is not None else ""


def _make_cluster_reference(order: Order, before: Mapping[str, Any]) -> Object | None:
    """The reference to the cluster. It stays once it was set: whoever cleans up by hand must find the namespace."""
    namespace = get_cluster_namespace(order)
    if not namespace:
        reference: Object | None = (before.get("status") or {}).get("clusterReference")
        return reference
    return {
        "namespace": namespace,
        "hostedClusterName": str(before["metadata"]["name"]),
        "serviceAccountName": hub_names.SERVICE_ACCOUNT,
        "roleBindingName": hub_names.ROLE_BINDING,
    }


def make_credentials_ref(order: Order, item: Mapping[str, Any]) -> Object:
    """The Secret for the cluster's kubeconfig: in the cluster's own namespace, or beside the order."""
    metadata = item["metadata"]
    namespace = get_cluster_namespace(order) or metadata["namespace"]
    return {
        "namespace": str(namespace),
        "name": hub_names.credentials_secret_name(metadata["name"]),
    }


def _keep_credentials_ref(order: Order, before: Mapping[str, Any]) -> Object | None:
    if not order.status.credentials.kubeconfig:
        return None
    if order.status.credentials.kubeconfig == CREDENTIALS_MASK:  # not read, so not moved
        return read_credentials_ref(before)
    return make_credentials_ref(order, before)


def _make_node_request(name: str, order: Order, count: int) -> Object:
    node_set = order.spec.node_sets.get(name)
    host_type = node_set.host_type if node_set else ""
    node_request: Object = {"nodeSet": name, "resourceClass": host_type, "numberOfNodes": count}
    if host_type:
        node_request["bareMetal"] = {"instanceType": host_type}
    return node_request


def _conditions(order: Order, before: Mapping[str, Any], now: datetime) -> Iterator[Object]:
    """The order's own conditions, then those that OSAC's tools read."""
    generation = int(before["metadata"].get("generation") or 0)
    for condition in order.status.conditions:
        yield _condition(
            condition.type,
            condition.status,
            condition.reason,
            condition.message,
            since=condition.last_transition_time or now,
            generation=generation,
        )
    previous_conditions = {
        condition["type"]: condition
        for condition in (before.get("status") or {}).get("conditions") or ()
    }
    for name, holds, reason in _list_osac_conditions(order):
        previous = previous_conditions.get(name, {})
        since = transition_time(
            str(holds), previous.get("status"), previous.get("lastTransitionTime"), now
        )
        yield _condition(name, holds, reason, "", since=since, generation=generation)


def _list_osac_conditions(order: Order) -> Iterator[tuple[str, bool, str]]:
    status = order.status
    yield "Accepted", True, "Initialized"
    is_deleting = status.phase in _DELETION_PHASES
    yield "Deleting", is_deleting, "Deleting" if is_deleting else "AsExpected"
    cluster_exists = any(
        item.kind == "cluster" and item.state == ItemState.PRESENT for item in status.items
    )
    yield "ControlPlaneCreated", cluster_exists, "Created" if cluster_exists else "Progressing"
    available = any(
        condition.type == "ClusterAvailable" and condition.status for condition in status.conditions
    )
    yield "ControlPlaneAvailable", available, "Ready" if available else "Progressing"
    if get_cluster_namespace(order):
        yield "NamespaceCreated", True, "Created"


def _condition(
    name: str, holds: bool, reason: str, message: str, *, since: datetime | str, generation: int
) -> Object:
    return {
        "type": name,
        "status": str(holds),
        "reason": reason or "AsExpected",
        "message": message,
        "lastTransitionTime": since if isinstance(since, str) else kube_json.format_time(since),
        "observedGeneration": generation,
    }
