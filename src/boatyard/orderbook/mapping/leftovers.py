"""What a deletion left behind as an object beside the hub's orders, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.kube import naming
from boatyard.model.generated.boatyard import Leftover, LeftoverSpec, LeftoverStatus
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.mapping import camel
from boatyard.orderbook.mapping.orders import Object, Place, tenant_of

ID = "boatyard.io/leftover"  # annotation: the id, whole
_MADE = "boatyard.io/left-at"  # annotation: when, by our clock


def leftover_name(leftover_id: str) -> str:
    """As the order's, which it outlives in the same namespace."""
    return naming.order_name(leftover_id)


def to_object(leftover: Leftover, place: Place) -> Object:
    about = leftover.metadata
    annotations = {ID: leftover.id, naming.TENANT: about.tenant}
    if about.creation_timestamp is not None:
        annotations[_MADE] = camel.time_text(about.creation_timestamp)
    return {
        "metadata": {
            "name": leftover_name(leftover.id),
            "namespace": place.namespace(about.tenant),
            "annotations": annotations,
            "labels": {naming.ORDER_UUID: naming.label_value(leftover.spec.order)},
        },
        "spec": camel.dump(leftover.spec),
        "status": camel.dump(leftover.status),
    }


def leftover_id(item: Mapping[str, Any], place: Place) -> str:
    """The id it was made with, where its name and namespace are that id's; else the object's own."""
    about = item["metadata"]
    named = str((about.get("annotations") or {}).get(ID) or "")
    ours = about["name"] == leftover_name(named) and about["namespace"] == place.namespace(
        tenant_of(item)
    )
    return named if named and ours else str(about["uid"])


def to_leftover(item: Mapping[str, Any], place: Place) -> Leftover:
    """The leftover that an object is. Its order is its own id: nobody's things but its own are released for it."""
    id = leftover_id(item, place)
    about = item["metadata"]
    made = (about.get("annotations") or {}).get(_MADE) or about.get("creationTimestamp")
    metadata = {"name": id, "tenant": tenant_of(item), "creator": "system"}
    if made:
        metadata["creationTimestamp"] = made
    spec = camel.load(LeftoverSpec, item.get("spec") or {})
    return Leftover(
        id=id,
        metadata=camel.load(Metadata, metadata),
        spec=msgspec.structs.replace(spec, order=id),
        status=camel.load(LeftoverStatus, item.get("status") or {}),
    )
