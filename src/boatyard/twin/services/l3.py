"""Layer 3: subnets with DHCP and gateway, their bindings to layer 2, and floating addresses."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome, Waiting
from boatyard.twin.layout import nth_address
from boatyard.twin.services.verb_context import (
    Verb,
    VerbContext,
    make_list_owned_verb,
    make_look_verb,
    ping,
)

KINDS = ("subnet", "binding", "floating")
PURPOSES = ("api", "ingress")


def list_subnets(context: VerbContext) -> list[str]:
    return list(context.hub.layout.subnet_list)


def list_floating_addresses(context: VerbContext) -> list[str]:
    return list(context.hub.layout.floating_list)


def ensure_network(context: VerbContext, key: str, cidr: str) -> Outcome:
    context.count_call("subnet", key)
    context.refuse_by_behaviour("subnet", key)
    if cidr not in context.hub.layout.subnet_set:
        raise Refused(f"{cidr} is not one of this hub's subnets")
    subnet = context.find("subnet", key)
    if subnet is not None and subnet.name != cidr:
        raise Refused("the network of this key has another subnet", reason="AnotherSubnet")
    holder = context.hub.things_by_name["subnet"].get(cidr)
    if holder is not None and holder.key != key:
        raise Refused("the subnet is in use under another key", reason="HeldByAnother")
    if subnet is None:
        subnet = context.make("subnet", key, cidr)
    facts = {"gateway": nth_address(cidr, 1)}
    return context.to_outcome(subnet, "DHCP and gateway are being started.", facts)


def release_network(context: VerbContext, key: str) -> Outcome:
    context.count_call("subnet", key)
    if context.hub.list_dependents("floating", key):
        return Waiting("Floating addresses still stand in front of the network.")
    return context.release(context.find("subnet", key), "DHCP and gateway are being removed.")


def ensure_binding(context: VerbContext, key: str, network_key: str, l2_key: str) -> Outcome:
    context.count_call("binding", key)
    context.refuse_by_behaviour("binding", key)
    if context.find("subnet", network_key) is None or context.find("network", l2_key) is None:
        raise Unavailable(
            "one of the two networks to tie together is not there", reason="NoNetwork"
        )
    binding = context.find("binding", key)
    if binding is None:
        binding = context.make("binding", key, network_key, ref=l2_key)
    elif (binding.name, binding.ref) != (network_key, l2_key):
        binding = context.replace(binding, name=network_key, ref=l2_key)
    return context.to_outcome(binding, "The gateway is being joined to the network.", {})


def release_binding(context: VerbContext, key: str) -> Outcome:
    context.count_call("binding", key)
    return context.release(
        context.find("binding", key), "The gateway is being taken off the network."
    )


def ensure_floating(
    context: VerbContext, key: str, address: str, network_key: str, purpose: str
) -> Outcome:
    context.count_call("floating", key)
    context.refuse_by_behaviour("floating", key)
    if address not in context.hub.layout.floating_set:
        raise Refused(f"{address} is not one of this hub's floating addresses")
    if purpose not in PURPOSES:
        raise Refused(f"no purpose {purpose!r}; there are {', '.join(PURPOSES)}")
    floating = context.find("floating", key)
    if floating is not None and floating.name != address:
        raise Refused("the route of this key has another address", reason="AnotherAddress")
    holder = context.hub.things_by_name["floating"].get(address)
    if holder is not None and holder.key != key:
        raise Refused("the address is in use under another key", reason="HeldByAnother")
    if context.find("subnet", network_key) is None:
        raise Unavailable("the network to route the address to is not there", reason="NoNetwork")
    if floating is None:
        floating = context.make("floating", key, address, ref=network_key, extra=(purpose,))
    elif (floating.ref, floating.extra) != (network_key, (purpose,)):
        floating = context.replace(floating, ref=network_key, extra=(purpose,))
    return context.to_outcome(
        floating, "A floating address is not routed yet.", {"address": address}
    )


def release_floating(context: VerbContext, key: str) -> Outcome:
    context.count_call("floating", key)
    return context.release(context.find("floating", key), "A route is being taken away.")


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": make_list_owned_verb(KINDS),
    "look": make_look_verb(KINDS),
    "subnets": list_subnets,
    "floating_addresses": list_floating_addresses,
    "ensure_network": ensure_network,
    "release_network": release_network,
    "ensure_binding": ensure_binding,
    "release_binding": release_binding,
    "ensure_floating": ensure_floating,
    "release_floating": release_floating,
}
