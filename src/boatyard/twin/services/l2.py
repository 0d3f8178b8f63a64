"""Layer 2: networks by VLAN, and the switch ports of hosts bound to them."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.services.at import At, Verb, list_owned, look, ping

KINDS = ("network", "port")


def vlans(context: At) -> list[int]:
    """The first and the last VLAN id of the range."""
    return list(context.hub.layout.vlans)


def ensure_network(context: At, key: str, vlan: int) -> Outcome:
    context.called("network", key)
    context.refuse_in_mood("network", key)
    first, last = context.hub.layout.vlans
    if not first <= vlan <= last:
        raise Refused(f"VLAN {vlan} is outside the range {first} to {last} of this fabric")
    network = context.find("network", key)
    if network is not None and network.name != str(vlan):
        raise Refused("the network of this key has another VLAN", reason="AnotherVlan")
    holder = context.hub.taken["network"].get(str(vlan))
    if holder is not None and holder.key != key:
        raise Refused("the VLAN is in use under another key", reason="HeldByAnother")
    if network is None:
        network = context.make("network", key, str(vlan))
    return context.answer(network, "The network is being made.", {"network": f"net-{vlan}"})


def release_network(context: At, key: str) -> Outcome:
    context.called("network", key)
    if context.hub.on("port", key):
        return Waiting("Ports are still bound to the network.")
    return context.release(context.find("network", key), "The network is being removed.")


def ensure_port(context: At, key: str, network_key: str, host: str) -> Outcome:
    context.called("port", key)
    context.refuse_in_mood("port", key)
    machine = context.hub.host(host)
    port = context.find("port", host)
    if port is not None and port.key != key:
        raise Refused("the port is bound under another key", reason="HeldByAnother")
    if context.find("network", network_key) is None:
        raise Unavailable("the network to bind the port to is not there", reason="NoNetwork")
    if port is None:
        port = context.make("port", key, host, ref=network_key)
    elif port.ref != network_key:
        ready_at = context.due("port", key)
        port = context.set(port, ref=network_key, extra=(), ready_at=ready_at)
    why = "A switch has not confirmed a port yet."
    return context.answer(port, why, {"port": f"{machine.switch}/{machine.port}"})


def release_port(context: At, key: str, host: str) -> Outcome:
    context.called("port", key)
    port = context.find("port", host)
    if port is None or port.key != key:
        return Done()
    return context.release(port, "A port is being returned.")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": list_owned(KINDS),
    "look": look(KINDS),
    "vlans": vlans,
    "ensure_network": ensure_network,
    "release_network": release_network,
    "ensure_port": ensure_port,
    "release_port": release_port,
}
