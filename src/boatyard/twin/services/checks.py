"""What checks see of a finished cluster from outside. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.twin.services.dns import resolve
from boatyard.twin.services.platform import observe_cluster
from boatyard.twin.services.verb_context import Verb, VerbContext, ping


def find_routed_purpose(context: VerbContext, address: str) -> str:
    """The purpose (api, ingress) for which the address is routed; empty when it is not routed."""
    floating = context.hub.things_by_name["floating"].get(address)
    if floating is None or floating.ready_at > context.now or floating.gone_at:
        return ""
    subnet = context.find("subnet", floating.ref)
    return floating.extra[0] if subnet is not None else ""


def observe_for_checks(context: VerbContext, cluster_key: str) -> dict[str, Any]:
    """What the cluster's own API reports, and the mood of the cluster's checks."""
    return observe_cluster(context, cluster_key) | {"mood": _checks_behaviour(context, cluster_key)}


def _checks_behaviour(context: VerbContext, cluster_key: str) -> str:
    thing = context.find("cluster", cluster_key)
    return context.find_behaviour("check", cluster_key, thing.name if thing else "")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "resolve": resolve,
    "reach": find_routed_purpose,
    "cluster": observe_for_checks,
}
