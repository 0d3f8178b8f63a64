"""Layer 2: networks by VLAN, and the switch ports of hosts bound to them."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.services.at import At, Verb, list_owned, look, ping

KINDS = ("network", "port")


def vlans(at: At) -> list[int]:
    """The first and the last VLAN id of the range."""
    return list(at.hub.layout.vlans)


def ensure_network(at: At, key: str, vlan: int) -> Outcome:
    at.called("network", key)
    at.refuse_in_mood("network", key)
    first, last = at.hub.layout.vlans
    if not first <= vlan <= last:
        raise Refused(f"VLAN {vlan} is outside the range {first} to {last} of this fabric")
    network = at.find("network", key)
    if network is not None and network.name != str(vlan):
        raise Refused("the network of this key has another VLAN", reason="AnotherVlan")
    holder = at.hub.taken["network"].get(str(vlan))
    if holder is not None and holder.key != key:
        raise Refused("the VLAN is in use under another key", reason="HeldByAnother")
    if network is None:
        network = at.make("network", key, str(vlan))
    return at.answer(network, "The network is being made.", {"network": f"net-{vlan}"})


def release_network(at: At, key: str) -> Outcome:
    at.called("network", key)
    if at.hub.on("port", key):
        return Waiting("Ports are still bound to the network.")
    return at.release(at.find("network", key), "The network is being removed.")


def ensure_port(at: At, key: str, network_key: str, host: str) -> Outcome:
    at.called("port", key)
    at.refuse_in_mood("port", key)
    machine = at.hub.host(host)
    port = at.find("port", host)
    if port is not None and port.key != key:
        raise Refused("the port is bound under another key", reason="HeldByAnother")
    if at.find("network", network_key) is None:
        raise Unavailable("the network to bind the port to is not there", reason="NoNetwork")
    if port is None:
        port = at.make("port", key, host, ref=network_key)
    elif port.ref != network_key:
        ready_at = at.due("port", key)
        port = at.set(port, ref=network_key, extra=(), ready_at=ready_at)
    why = "A switch has not confirmed a port yet."
    return at.answer(port, why, {"port": f"{machine.switch}/{machine.port}"})


def release_port(at: At, key: str, host: str) -> Outcome:
    at.called("port", key)
    port = at.find("port", host)
    if port is None or port.key != key:
        return Done()
    return at.release(port, "A port is being returned.")


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
