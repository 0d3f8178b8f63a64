"""What a hub keeps of who holds what, and claims there that nobody stands behind. Called by the operator, now and then.

An operator that was stopped just before a claim was made may make it after its successor has released everything.
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
    """Claims, and what was recorded after they had been seen."""

    claims: Sequence[dict[str, Any]] = ()
    recorded: Mapping[str, set[str]] = field(default_factory=dict)  # keys of items, by order
    names: frozenset[str] = frozenset()  # of the orders' objects

    def knows(self, order_id: str) -> bool:
        """Whether there is an order or a leftover of that id. Nobody can take an order's name off it."""
        return order_id in self.recorded or hub_names.order_name(order_id) in self.names


async def read_books(client: KubeClient, place: Place, namespace: str, *, read_all: bool) -> Books:
    """Asked of the API server in this order, each question after the answer before: claims, orders, leftovers.

    An item is recorded before it is claimed and given back before it is forgotten, and what is left is in a Leftover
    before its order lets go: whoever stands behind a claim is seen after it. Without claims nothing more is asked,
    unless all is wanted.
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
        if existed:  # else its owner gave it back between our questions
            count += 1
            logger.warning("claim without an owner removed", extra={"owner": owner})
    return count
