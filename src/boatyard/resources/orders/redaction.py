"""Removes the names of the provider's hubs and hosts from texts that tenants read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from boatyard.model.generated.boatyard import Item, Order

_HOST_NAME_FACTS = ("host", "switch", "mac")


def redact_for_tenants(text: str, order: Order) -> str:
    """Returns the text with the names of the order's hub and hosts replaced by "the hub" and "a host".

    Drivers should not put such names into messages; this is the guard for when one does.
    """
    return redact_names(text, collect_provider_names(order, order.status.items))


def collect_provider_names(order: Order, items: Iterable[Item]) -> dict[str, str]:
    """The provider's names that the order and these items know, each with its replacement."""
    names = {order.spec.hub: "the hub"} if order.spec.hub else {}
    for item in items:
        names |= {item.facts[fact]: "a host" for fact in _HOST_NAME_FACTS if item.facts.get(fact)}
    return names


def redact_names(text: str, names: Mapping[str, str]) -> str:
    """Returns the text with each of these names replaced."""
    for name in sorted((name for name in names if name in text), key=len, reverse=True):
        pattern = rf"(?:hub |host )?(?<![\w-])['\"]?{re.escape(name)}['\"]?(?![\w-])"
        text = re.sub(pattern, names[name], text)
    return text
