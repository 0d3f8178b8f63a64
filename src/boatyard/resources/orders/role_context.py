"""The order as a role sees it. Pure; used by the step that runs roles and by the API that roles call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.model.generated.boatyard import Item, ItemState, Order
from boatyard.resources.orders.item_graph import ROLE_FACT_PREFIX


def build_role_context(order: Order, items: Mapping[str, Item]) -> dict[str, Any]:
    """The value of `boatyard_order`: all that a role may know of its order. It reaches Ansible as data."""
    spec = order.spec
    return {
        "id": order.id,
        "name": spec.cluster_name,
        "tenant": order.metadata.tenant,
        "project": spec.project,
        "display_name": spec.display_name,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "template": spec.template,
        "version": spec.version,
        "generation": spec.generation,
        "deleting": order.metadata.deletion_timestamp is not None,
        "node_sets": {
            name: {"host_type": node_set.host_type, "size": node_set.size}
            for name, node_set in spec.node_sets.items()
        },
        "nodes": [
            {
                "slot": item.slot,
                "node_set": item.node_set,
                "host": _get_item_fact(items, f"host/{item.slot}", "host"),
                "address": _get_item_fact(items, f"agent/{item.slot}", "address"),
            }
            for item in items.values()
            if item.kind == "node" and item.state != ItemState.LEAVING
        ],
        "network": {
            "cidr": _get_item_fact(items, "l3", "cidr"),
            "gateway": _get_item_fact(items, "l3", "gateway"),
        },
        "api_name": _get_item_fact(items, "api-name", "name"),
        "api_address": _get_item_fact(items, "api-address", "address"),
        "ingress_name": _get_item_fact(items, "ingress-name", "name"),
        "ingress_address": _get_item_fact(items, "ingress-address", "address"),
        "api_url": order.status.facts.get("api_url", ""),
        "facts": {
            name.removeprefix(ROLE_FACT_PREFIX): value
            for item in items.values()
            for name, value in item.facts.items()
            if name.startswith(ROLE_FACT_PREFIX)
        },
    }


def _get_item_fact(items: Mapping[str, Item], key: str, name: str) -> str:
    return items[key].facts.get(name, "") if key in items else ""
