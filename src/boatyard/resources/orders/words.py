"""Words that tenants may read: no names of the provider's hubs and hosts in them. Pure."""

from __future__ import annotations

import re

from boatyard.model.generated.boatyard import Order

_HOST_FACTS = ("host", "switch", "mac")


def for_tenants(text: str, order: Order) -> str:
    """The text with every name of ours that the order knows replaced by what it is.

    Drivers should not say such names in what they refuse; this holds when one does.
    """
    if not text:
        return text
    names = {order.spec.hub: "the hub"} if order.spec.hub else {}
    for item in order.status.items:
        names |= {item.facts[fact]: "a host" for fact in _HOST_FACTS if item.facts.get(fact)}
    for name in sorted(names, key=len, reverse=True):
        pattern = rf"(?:hub |host )?(?<![\w-])['\"]?{re.escape(name)}['\"]?(?![\w-])"
        text = re.sub(pattern, names[name], text)
    return text
