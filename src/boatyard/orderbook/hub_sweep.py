"""Finds claims on a hub that nobody stands behind, and gives them back. Called by the operator, now and then.

An operator that was stopped just before a claim was made may make it after its successor has released everything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from boatyard.kube.client import KubeClient
from boatyard.orderbook.hub_claims import is_below, order_of, owner_of
from boatyard.orderbook.hub_kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.hub_view import HubView
from boatyard.orderbook.mapping import leftovers, orders

logger = logging.getLogger(__name__)


async def sweep_claims(
    client: KubeClient, view: HubView, namespace: str, *, check: Callable[[], None]
) -> int:
    """How many there were. Asked of the API server in this order, each question after the answer before:

    claims, orders, leftovers. An item is recorded before it is claimed and given back before it is forgotten, and
    what is left is in a Leftover before its order lets go: whoever stands behind a claim is seen after it.
    """
    place = view.place
    claims = (await client.list(CLAIMS, namespace)).items
    if not claims:
        return 0
    recorded: dict[str, set[str]] = {}
    for item in (await client.list(CLUSTER_ORDERS, place.one_namespace)).items:
        found = ((item.get("status") or {}).get("boatyard") or {}).get("items") or ()
        keys = recorded.setdefault(orders.order_id(item, place), set())
        keys |= {str(one.get("key")) for one in found}
    for item in (await client.list(LEFTOVERS, place.one_namespace)).items:
        found = (item.get("status") or {}).get("items") or ()
        keys = recorded.setdefault(leftovers.leftover_id(item, place), set())
        keys |= {str(one.get("key")) for one in found}
    swept = 0
    for claim in claims:
        owner = owner_of(claim)
        order = order_of(owner)
        if any(is_below(owner, f"{order}/{key}") for key in recorded.get(order, ())):
            continue
        check()
        about = claim["metadata"]
        there = await client.delete(CLAIMS, about["name"], namespace, uid=about["uid"])
        view.gone(claim)
        if there:  # else its owner gave it back between our questions
            swept += 1
            logger.warning("claim without an owner removed", extra={"owner": owner})
    return swept
