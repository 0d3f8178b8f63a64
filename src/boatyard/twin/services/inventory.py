"""Hosts: which are free, which key holds which, and what their agents report."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.hub import Thing
from boatyard.twin.layout import nth_address
from boatyard.twin.services.verb_context import (
    LONGEST_WAIT_SECONDS,
    Verb,
    VerbContext,
    make_list_owned_verb,
    make_look_verb,
    ping,
)

KINDS = ("host",)
FIRST_LEASE_NUMBER = 10
HOST_UNUSABLE = "HostUnusable"


def list_free(
    context: VerbContext, host_type: str, limit: int, seed: str = ""
) -> list[dict[str, Any]]:
    names = context.hub.free_hosts.get(host_type, [])
    start = zlib.crc32(seed.encode()) % len(names) if seed and names else 0
    chosen = names[start : start + limit]
    chosen += names[: min(start, limit - len(chosen))]
    return [
        {
            "name": name,
            "host_type": host_type,
            "facts": context.hub.host_facts(context.hub.hosts[name]),
        }
        for name in chosen
    ]


def count_usable_hosts(context: VerbContext) -> dict[str, int]:
    return dict(context.hub.usable_counts)


def ensure_held(context: VerbContext, key: str, host: str) -> Outcome:
    context.count_call("host", key)
    context.refuse_by_behaviour("host", key)
    machine = context.hub.hosts.get(host)
    if machine is None:
        raise Refused("there is no such host on this hub", reason=HOST_UNUSABLE)
    hold = context.find("host", host)
    if hold is not None and hold.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if hold is not None and hold.gone_at:
        return context.wait_until("A host is still being wiped.", hold.gone_at)
    if hold is None:
        if not machine.is_usable:
            raise Refused("the host is broken", reason=HOST_UNUSABLE)
        if "off" in machine.flags:
            context.state.set_host_flags(context.hub.name, host, {"off": False}, context.now)
        hold = context.make("host", key, host)
    return context.to_outcome(
        hold, "A host is starting its agent.", context.hub.host_facts(machine)
    )


def release_held(context: VerbContext, key: str, host: str) -> Outcome:
    context.count_call("host", key)
    hold = context.find("host", host)
    if hold is None:
        return Done()
    if hold.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if not context.hub.get_host(host).is_usable:
        # A broken host cannot be wiped. It is released as it is, and is not free until repaired.
        context.state.remove(hold, context.now)
        return Done()
    return context.release(hold, "A host is being wiped.")


def find_agent_address(context: VerbContext, key: str, host: str) -> Outcome:
    machine = context.hub.get_host(host)
    hold, port = context.find("host", host), context.find("port", host)
    if hold is not None and hold.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if hold is None or port is None:
        return Waiting("A host's agent is on no network yet.")
    if machine.flags:
        return Waiting(
            "A host's agent does not answer.", LONGEST_WAIT_SECONDS, reason="HostDoesNotAnswer"
        )
    if context.find_behaviour("port", key) == "stuck":
        return Waiting(
            "A host's agent has not been seen on its network.", LONGEST_WAIT_SECONDS, reason="Stuck"
        )
    seen_at = context.finish_time("agent", host, start=max(hold.ready_at, port.ready_at))
    if seen_at > context.now:
        context.state.schedule_change(seen_at, port)
        return context.wait_until("A host's agent has not been seen on its network.", seen_at)
    return Done({"address": _lease_address(context, port)})


def describe_machines(context: VerbContext, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The machines' state, for simulated operating systems. Names of unknown hosts are left out.

    A machine runs since `since` and needs `boot` seconds from then until it can be a node.
    """
    states = {}
    for name in names:
        machine = context.hub.hosts.get(name)
        if machine is None:
            continue
        hold = context.find("host", name)
        states[name] = {
            "power": "off" not in machine.flags,
            "broken": "broken" in machine.flags,
            "unready": "unready" in machine.flags,
            "attached": hold is not None and not hold.gone_at and bool(context.find("port", name)),
            "since": max(machine.started_at, 0.0 if hold is None else hold.ready_at),
            "boot": context.state.delays.seconds_for("node", name),
        }
    return states


def _lease_address(context: VerbContext, port: Thing) -> str:
    """An address from the DHCP of the network's subnet; a link-local one while there is no subnet."""
    binding = next(iter(context.hub.list_dependents("binding", port.ref).values()), None)
    subnet = None if binding is None else context.find("subnet", binding.name)
    if subnet is None:
        number = context.hub.hosts[port.name].number
        return f"169.254.{number // 250 % 250 + 1}.{number % 250 + 1}"
    # `extra` of a port is its lease: the subnet and the address in it.
    if port.extra[:1] == (subnet.name,):
        return port.extra[1]
    leased = {
        other.extra[1]
        for other in context.hub.list_dependents("port", port.ref).values()
        if other.extra
    }
    numbers = itertools.count(FIRST_LEASE_NUMBER)
    address = next(
        candidate
        for candidate in (nth_address(subnet.name, number) for number in numbers)
        if candidate not in leased
    )
    context.replace(port, extra=(subnet.name, address))
    return address


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": make_list_owned_verb(KINDS),
    "look": make_look_verb(KINDS),
    "list_free": list_free,
    "capacity": count_usable_hosts,
    "ensure_held": ensure_held,
    "release_held": release_held,
    "agent_address": find_agent_address,
    "machines": describe_machines,
}
