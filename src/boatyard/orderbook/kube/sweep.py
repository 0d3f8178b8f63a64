"""Reads a hub's orders, leftovers and claims, and deletes claims without an owner. Called by the operator's sweep.

An operator that pauses just before it creates a claim may create it after its successor has released everything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.model import hub_names
from boatyard.orderbook.kube.claims import get_claim_owner, get_order_id, is_below
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.view import HubView

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HubRecords:
    """The claims on a hub, and the items that orders and leftovers recorded; these were read after the claims."""

    claims: Sequence[dict[str, Any]] = ()
    item_keys: Mapping[str, set[str]] = field(default_factory=dict)  # keys of items, by order
    order_names: frozenset[str] = frozenset()  # of the orders' objects

    def has_order(self, order_id: str) -> bool:
        """Whether there is an order or a leftover of that id. An order counts by its name too, which cannot change."""
        return order_id in self.item_keys or hub_names.order_name(order_id) in self.order_names


async def read_hub_records(
    client: KubeClient, order_settings: HubOrderSettings, namespace: str, *, read_all: bool
) -> HubRecords:
    """Lists claims, then orders, then leftovers on the API server, each after the answer before.

    An item is recorded before it is claimed, its claim is deleted before it is forgotten, and a Leftover is written
    before its order drops the items: so the owner of every claim in the list is read after it. Without claims, orders
    and leftovers are read only with `read_all`.
    """
    claims = (await client.list(CLAIMS, namespace)).items
    if not claims and not read_all:
        return HubRecords()
    recorded: dict[str, set[str]] = {}
    listed = (await client.list(CLUSTER_ORDERS, order_settings.shared_namespace)).items
    for item in listed:
        items = ((item.get("status") or {}).get("boatyard") or {}).get("items") or ()
        keys = recorded.setdefault(from_kube.read_order_id(item, order_settings), set())
        keys |= {str(entry.get("key")) for entry in items}
    names = frozenset(str(item["metadata"]["name"]) for item in listed)
    for item in (await client.list(LEFTOVERS, order_settings.shared_namespace)).items:
        items = (item.get("status") or {}).get("items") or ()
        keys = recorded.setdefault(leftovers.read_leftover_id(item, order_settings), set())
        keys |= {str(entry.get("key")) for entry in items}
    return HubRecords(claims=claims, item_keys=recorded, order_names=names)


async def delete_orphaned_claims(
    client: KubeClient,
    view: HubView,
    namespace: str,
    books: HubRecords,
    *,
    check: Callable[[], None],
    is_protected: Callable[[str], bool],
) -> int:
    """Deletes claims that no order or leftover stands behind. Returns how many there were.

    Claims of orders for which `is_protected` is true stay.
    """
    count = 0
    for claim in books.claims:
        owner = get_claim_owner(claim)
        order = get_order_id(owner)
        if any(is_below(owner, f"{order}/{key}") for key in books.item_keys.get(order, ())):
            continue
        if is_protected(order):
            continue
        check()
        metadata = claim["metadata"]
        existed = await client.delete(CLAIMS, metadata["name"], namespace, uid=metadata["uid"])
        view.remove_claim(claim)
        if existed:  # else its owner deleted it after we listed it
            count += 1
            logger.warning("claim without an owner removed", extra={"owner": owner})
    return count
