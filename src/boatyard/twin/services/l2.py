"""Layer 2: networks by VLAN, and the switch ports of hosts bound to them."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.services.verb_context import (
    Verb,
    VerbContext,
    make_list_owned_verb,
    make_look_verb,
    ping,
)

KINDS = ("network", "port")


def get_vlan_range(context: VerbContext) -> list[int]:
    """The first and the last VLAN id of the range."""
    return list(context.hub.layout.vlans)


def ensure_network(context: VerbContext, key: str, vlan: int) -> Outcome:
    context.count_call("network", key)
    context.refuse_by_behaviour("network", key)
    first, last = context.hub.layout.vlans
    if not first <= vlan <= last:
        raise Refused(f"VLAN {vlan} is outside the range {first} to {last} of this fabric")
    network = context.find("network", key)
    if network is not None and network.name != str(vlan):
        raise Refused("the network of this key has another VLAN", reason="AnotherVlan")
    holder = context.hub.things_by_name["network"].get(str(vlan))
    if holder is not None and holder.key != key:
        raise Refused("the VLAN is in use under another key", reason="HeldByAnother")
    if network is None:
        network = context.make("network", key, str(vlan))
    return context.to_outcome(network, "The network is being made.", {"network": f"net-{vlan}"})


def release_network(context: VerbContext, key: str) -> Outcome:
    context.count_call("network", key)
    if context.hub.list_dependents("port", key):
        return Waiting("Ports are still bound to the network.")
    return context.release(context.find("network", key), "The network is being removed.")


def ensure_port(context: VerbContext, key: str, network_key: str, host: str) -> Outcome:
    context.count_call("port", key)
    context.refuse_by_behaviour("port", key)
    machine = context.hub.get_host(host)
    port = context.find("port", host)
    if port is not None and port.key != key:
        raise Refused("the port is bound under another key", reason="HeldByAnother")
    if context.find("network", network_key) is None:
        raise Unavailable("the network to bind the port to is not there", reason="NoNetwork")
    if port is None:
        port = context.make("port", key, host, ref=network_key)
    elif port.ref != network_key:
        ready_at = context.finish_time("port", key)
        port = context.replace(port, ref=network_key, extra=(), ready_at=ready_at)
    why = "A switch has not confirmed a port yet."
    return context.to_outcome(port, why, {"port": f"{machine.switch}/{machine.port}"})


def release_port(context: VerbContext, key: str, host: str) -> Outcome:
    context.count_call("port", key)
    port = context.find("port", host)
    if port is None or port.key != key:
        return Done()
    return context.release(port, "A port is being returned.")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": make_list_owned_verb(KINDS),
    "look": make_look_verb(KINDS),
    "vlans": get_vlan_range,
    "ensure_network": ensure_network,
    "release_network": release_network,
    "ensure_port": ensure_port,
    "release_port": release_port,
}
