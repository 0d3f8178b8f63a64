"""Converts a Leftover to an object beside the hub's orders and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.model import hub_names
from boatyard.model.generated.boatyard import (
    HubLeftoverSpec,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.mapping import kube_json
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings, Object


def make_leftover_name(order_id: str) -> str:
    """The name of a Leftover's object: that of its order, in the same namespace."""
    return hub_names.order_name(order_id)


def to_object(
    leftover: Leftover, order_settings: HubOrderSettings, *, aside: bool = False
) -> Object:
    """The object, in the namespace of its tenant's orders, or `aside` when there is no such namespace."""
    metadata = leftover.metadata
    spec = HubLeftoverSpec(
        order=leftover.id,
        tenant=metadata.tenant,
        cluster_name=leftover.spec.cluster_name,
        hub=leftover.spec.hub,
        left_at=metadata.creation_timestamp,
    )
    return {
        "metadata": {
            "name": make_leftover_name(leftover.id),
            "namespace": order_settings.fallback_namespace
            if aside
            else order_settings.get_tenant_namespace(metadata.tenant),
            "labels": {hub_names.ORDER_UUID: hub_names.label_value(leftover.id)},
            "annotations": {hub_names.TENANT: metadata.tenant},
        },
        "spec": kube_json.dump(spec),
        "status": kube_json.dump(leftover.status),
    }


def read_leftover_id(item: Mapping[str, Any], order_settings: HubOrderSettings) -> str:
    """The id of its order, where name and namespace are that order's; else the object's own."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    order_id = str(spec.get("order") or "")
    namespaces = (
        order_settings.fallback_namespace,
        order_settings.get_tenant_namespace(str(spec.get("tenant") or "")),
    )
    is_ours = (
        metadata["name"] == make_leftover_name(order_id) and metadata["namespace"] in namespaces
    )
    return order_id if is_ours else str(metadata["uid"])


def to_leftover(item: Mapping[str, Any], order_settings: HubOrderSettings) -> Leftover:
    """The Leftover in an object. Its order is always its own id, so that it never releases another order's items."""
    id = read_leftover_id(item, order_settings)
    spec = kube_json.load(HubLeftoverSpec, item.get("spec") or {})
    return Leftover(
        id=id,
        metadata=Metadata(
            name=id, tenant=spec.tenant, creator="system", creation_timestamp=spec.left_at
        ),
        spec=LeftoverSpec(order=id, cluster_name=spec.cluster_name, hub=spec.hub),
        status=kube_json.load(LeftoverStatus, item.get("status") or {}),
    )
