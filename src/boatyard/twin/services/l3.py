"""Layer 3: subnets with DHCP and gateway, their ties to layer 2, and floating addresses."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome, Waiting
from boatyard.twin.layout import nth_address
from boatyard.twin.services.at import At, Verb, list_owned, look, ping

KINDS = ("subnet", "binding", "floating")
PURPOSES = ("api", "ingress")


def subnets(at: At) -> list[str]:
    return list(at.hub.layout.subnet_list)


def floating_addresses(at: At) -> list[str]:
    return list(at.hub.layout.floating_list)


def ensure_network(at: At, key: str, cidr: str) -> Outcome:
    at.called("subnet", key)
    at.refuse_in_mood("subnet", key)
    if cidr not in at.hub.layout.subnet_set:
        raise Refused(f"{cidr} is not one of this hub's subnets")
    subnet = at.find("subnet", key)
    if subnet is not None and subnet.name != cidr:
        raise Refused("the network of this key has another subnet", reason="AnotherSubnet")
    holder = at.hub.taken["subnet"].get(cidr)
    if holder is not None and holder.key != key:
        raise Refused("the subnet is in use under another key", reason="HeldByAnother")
    if subnet is None:
        subnet = at.make("subnet", key, cidr)
    facts = {"gateway": nth_address(cidr, 1)}
    return at.answer(subnet, "DHCP and gateway are being started.", facts)


def release_network(at: At, key: str) -> Outcome:
    at.called("subnet", key)
    if at.hub.on("floating", key):
        return Waiting("Floating addresses still stand in front of the network.")
    return at.release(at.find("subnet", key), "DHCP and gateway are being removed.")


def ensure_binding(at: At, key: str, network_key: str, l2_key: str) -> Outcome:
    at.called("binding", key)
    at.refuse_in_mood("binding", key)
    if at.find("subnet", network_key) is None or at.find("network", l2_key) is None:
        raise Unavailable(
            "one of the two networks to tie together is not there", reason="NoNetwork"
        )
    binding = at.find("binding", key)
    if binding is None:
        binding = at.make("binding", key, network_key, ref=l2_key)
    elif (binding.name, binding.ref) != (network_key, l2_key):
        binding = at.set(binding, name=network_key, ref=l2_key)
    return at.answer(binding, "The gateway is being joined to the network.", {})


def release_binding(at: At, key: str) -> Outcome:
    at.called("binding", key)
    return at.release(at.find("binding", key), "The gateway is being taken off the network.")


def ensure_floating(at: At, key: str, address: str, network_key: str, purpose: str) -> Outcome:
    at.called("floating", key)
    at.refuse_in_mood("floating", key)
    if address not in at.hub.layout.floating_set:
        raise Refused(f"{address} is not one of this hub's floating addresses")
    if purpose not in PURPOSES:
        raise Refused(f"no purpose {purpose!r}; there are {', '.join(PURPOSES)}")
    floating = at.find("floating", key)
    if floating is not None and floating.name != address:
        raise Refused("the route of this key has another address", reason="AnotherAddress")
    holder = at.hub.taken["floating"].get(address)
    if holder is not None and holder.key != key:
        raise Refused("the address is in use under another key", reason="HeldByAnother")
    if at.find("subnet", network_key) is None:
        raise Unavailable("the network to route the address to is not there", reason="NoNetwork")
    if floating is None:
        floating = at.make("floating", key, address, ref=network_key, extra=(purpose,))
    elif (floating.ref, floating.extra) != (network_key, (purpose,)):
        floating = at.set(floating, ref=network_key, extra=(purpose,))
    return at.answer(floating, "A floating address is not routed yet.", {"address": address})


def release_floating(at: At, key: str) -> Outcome:
    at.called("floating", key)
    return at.release(at.find("floating", key), "A route is being taken away.")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": list_owned(KINDS),
    "look": look(KINDS),
    "subnets": subnets,
    "floating_addresses": floating_addresses,
    "ensure_network": ensure_network,
    "release_network": release_network,
    "ensure_binding": ensure_binding,
    "release_binding": release_binding,
    "ensure_floating": ensure_floating,
    "release_floating": release_floating,
}
