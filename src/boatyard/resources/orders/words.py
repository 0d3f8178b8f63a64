"""Words that tenants may read: no names of the provider's hubs and hosts in them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from boatyard.model.generated.boatyard import Item, Order

_HOST_FACTS = ("host", "switch", "mac")


def for_tenants(text: str, order: Order) -> str:
    """The text with every name of ours that the order knows replaced by what it is.

    Drivers should not say such names in what they refuse; this holds when one does.
    """
    return hidden(text, names_of_ours(order, order.status.items))


def names_of_ours(order: Order, items: Iterable[Item]) -> dict[str, str]:
    """The names of ours that the order and these items of it know, and what each is."""
    names = {order.spec.hub: "the hub"} if order.spec.hub else {}
    for item in items:
        names |= {item.facts[fact]: "a host" for fact in _HOST_FACTS if item.facts.get(fact)}
    return names


def hidden(text: str, names: Mapping[str, str]) -> str:
    """The text with every one of these names replaced by what it stands for."""
    for name in sorted((name for name in names if name in text), key=len, reverse=True):
        pattern = rf"(?:hub |host )?(?<![\w-])['\"]?{re.escape(name)}['\"]?(?![\w-])"
        text = re.sub(pattern, names[name], text)
    return text
