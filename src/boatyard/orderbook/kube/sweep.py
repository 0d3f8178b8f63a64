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
from boatyard.orderbook.kube.claims import is_below, order_of, owner_of
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.orderbook.kube.view import HubView

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Books:
    """The claims on a hub, and the items that orders and leftovers recorded; these were read after the claims."""

    claims: Sequence[dict[str, Any]] = ()
    recorded: Mapping[str, set[str]] = field(default_factory=dict)  # keys of items, by order
    names: frozenset[str] = frozenset()  # of the orders' objects

    def knows(self, order_id: str) -> bool:
        """Whether there is an order or a leftover of that id. An order counts by its name too, which cannot change."""
        return order_id in self.recorded or hub_names.order_name(order_id) in self.names


async def read_books(client: KubeClient, place: Place, namespace: str, *, read_all: bool) -> Books:
    """Lists claims, then orders, then leftovers on the API server, each after the answer before.

    An item is recorded before it is claimed, its claim is deleted before it is forgotten, and a Leftover is written
    before its order drops the items: so the owner of every claim in the list is read after it. Without claims, orders
    and leftovers are read only with `read_all`.
    """
    claims = (await client.list(CLAIMS, namespace)).items
    if not claims and not read_all:
        return Books()
    recorded: dict[str, set[str]] = {}
    listed = (await client.list(CLUSTER_ORDERS, place.one_namespace)).items
    for item in listed:
        items = ((item.get("status") or {}).get("boatyard") or {}).get("items") or ()
        keys = recorded.setdefault(from_kube.order_id(item, place), set())
        keys |= {str(entry.get("key")) for entry in items}
    names = frozenset(str(item["metadata"]["name"]) for item in listed)
    for item in (await client.list(LEFTOVERS, place.one_namespace)).items:
        items = (item.get("status") or {}).get("items") or ()
        keys = recorded.setdefault(leftovers.leftover_id(item, place), set())
        keys |= {str(entry.get("key")) for entry in items}
    return Books(claims=claims, recorded=recorded, names=names)


async def free_claims(
    client: KubeClient,
    view: HubView,
    namespace: str,
    books: Books,
    *,
    check: Callable[[], None],
    is_protected: Callable[[str], bool],
) -> int:
    """Deletes claims that no order or leftover stands behind. Returns how many there were.

    Claims of orders for which `is_protected` is true stay.
    """
    count = 0
    for claim in books.claims:
        owner = owner_of(claim)
        order = order_of(owner)
        if any(is_below(owner, f"{order}/{key}") for key in books.recorded.get(order, ())):
            continue
        if is_protected(order):
            continue
        check()
        metadata = claim["metadata"]
        existed = await client.delete(CLAIMS, metadata["name"], namespace, uid=metadata["uid"])
        view.gone(claim)
        if existed:  # else its owner deleted it after we listed it
            count += 1
            logger.warning("claim without an owner removed", extra={"owner": owner})
    return count
