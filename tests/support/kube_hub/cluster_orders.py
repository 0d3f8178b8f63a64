"""ClusterOrders as an API server would give them back: ours, and those of other tools."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from boatyard.model import hub_names
from boatyard.model.generated.boatyard import ClusterOrderSecretReference, OrderSpec
from boatyard.orderbook.kube.mapping import to_kube
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = HubOrderSettings(hub="hub-1")


def an_object(
    order_id: str,
    spec: OrderSpec,
    *,
    order_settings: HubOrderSettings = PLACE,
    tenant: str = "acme",
    deleted: bool = False,
) -> dict[str, Any]:
    """The ClusterOrder as the API server would give it back."""
    return {
        "metadata": {
            "name": hub_names.order_name(order_id),
            "namespace": order_settings.get_tenant_namespace(tenant),
            "uid": "a-uid",
            "generation": 7,
            "creationTimestamp": "2026-01-05T00:00:00Z",
            "annotations": {hub_names.TENANT: tenant},
            **({"deletionTimestamp": "2026-01-06T00:00:00Z"} if deleted else {}),
        },
        "spec": to_kube.to_spec(
            order_id,
            spec,
            tenant=tenant,
            order_settings=order_settings,
            ordered_at=NOW,
            deleted_at=NOW + timedelta(hours=1) if deleted else None,
            secret_ref=ClusterOrderSecretReference(
                name=hub_names.inputs_secret_name(hub_names.order_name(order_id)), version="3"
            ),
        ),
    }


def theirs(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "order-x7k2p",
            "namespace": "osac-orders",
            "uid": "1234-uid",
            "generation": 3,
            "creationTimestamp": "2026-01-05T00:00:00Z",
        },
        "spec": {"templateID": "ocp_4_17_small", **spec},
    }
