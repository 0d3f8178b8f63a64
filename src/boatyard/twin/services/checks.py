"""What one finds when one looks at a finished cluster from outside. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.twin.services.at import At, Verb, ping
from boatyard.twin.services.dns import resolve
from boatyard.twin.services.platform import observe


def reach(context: At, address: str) -> str:
    """For what purpose the address is routed to something that exists; empty when it is not."""
    floating = context.hub.taken["floating"].get(address)
    if floating is None or floating.ready_at > context.now or floating.gone_at:
        return ""
    subnet = context.find("subnet", floating.ref)
    return floating.extra[0] if subnet is not None else ""


def cluster(context: At, cluster_key: str) -> dict[str, Any]:
    """What the cluster's own API says, with the mood its name asks for."""
    return observe(context, cluster_key) | {"mood": _mood(context, cluster_key)}


def _mood(context: At, cluster_key: str) -> str:
    thing = context.find("cluster", cluster_key)
    return context.mood("check", cluster_key, thing.name if thing else "")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "resolve": resolve,
    "reach": reach,
    "cluster": cluster,
}
