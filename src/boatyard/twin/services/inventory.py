"""Hosts: which are free, who holds which, and what their agents report."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.model.errors import Refused
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.twin.hub import Thing
from boatyard.twin.layout import nth_address
from boatyard.twin.services.at import LATEST, At, Verb, list_owned, look, ping

KINDS = ("host",)
FIRST_LEASE = 10
UNUSABLE = "HostUnusable"


def list_free(at: At, host_type: str, limit: int, seed: str = "") -> list[dict[str, Any]]:
    names = at.hub.free.get(host_type, [])
    start = zlib.crc32(seed.encode()) % len(names) if seed and names else 0
    chosen = names[start : start + limit]
    chosen += names[: min(start, limit - len(chosen))]
    return [
        {"name": name, "host_type": host_type, "facts": at.hub.facts(at.hub.hosts[name])}
        for name in chosen
    ]


def capacity(at: At) -> dict[str, int]:
    return dict(at.hub.usable)


def ensure_held(at: At, key: str, host: str) -> Outcome:
    at.called("host", key)
    at.refuse_in_mood("host", key)
    machine = at.hub.hosts.get(host)
    if machine is None:
        raise Refused("there is no such host on this hub", reason=UNUSABLE)
    held = at.find("host", host)
    if held is not None and held.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if held is not None and held.gone_at:
        return at.wait("A host is still being wiped.", held.gone_at)
    if held is None:
        if not machine.usable:
            raise Refused("the host is broken", reason=UNUSABLE)
        if "off" in machine.flags:
            at.state.flag(at.hub.name, host, {"off": False}, at.now)
        held = at.make("host", key, host)
    return at.answer(held, "A host is starting its agent.", at.hub.facts(machine))


def release_held(at: At, key: str, host: str) -> Outcome:
    at.called("host", key)
    held = at.find("host", host)
    if held is None:
        return Done()
    if held.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if not at.hub.host(host).usable:
        # Nobody can wipe a broken host. It goes back as it is, and is not free until repaired.
        at.state.remove(held, at.now)
        return Done()
    return at.release(held, "A host is being wiped.")


def agent_address(at: At, key: str, host: str) -> Outcome:
    machine = at.hub.host(host)
    held, port = at.find("host", host), at.find("port", host)
    if held is not None and held.key != key:
        raise Refused("the host is held under another key", reason="HeldByAnother")
    if held is None or port is None:
        return Waiting("A host's agent is on no network yet.")
    if machine.flags:
        return Waiting("A host's agent does not answer.", LATEST, reason="HostDoesNotAnswer")
    if at.mood("port", key) == "stuck":
        return Waiting("A host's agent has not been seen on its network.", LATEST, reason="Stuck")
    seen_at = at.due("agent", host, start=max(held.ready_at, port.ready_at))
    if seen_at > at.now:
        at.state.remind(seen_at, port)
        return at.wait("A host's agent has not been seen on its network.", seen_at)
    return Done({"address": _address(at, port)})


def machines(at: At, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the machines do, for whoever plays their operating system; names of no host are left out.

    A machine runs since `since` and needs `boot` seconds from there until it can be a node.
    """
    found = {}
    for name in names:
        machine = at.hub.hosts.get(name)
        if machine is None:
            continue
        held = at.find("host", name)
        found[name] = {
            "power": "off" not in machine.flags,
            "broken": "broken" in machine.flags,
            "unready": "unready" in machine.flags,
            "attached": held is not None and not held.gone_at and bool(at.find("port", name)),
            "since": max(machine.started_at, 0.0 if held is None else held.ready_at),
            "boot": at.state.delays.of("node", name),
        }
    return found


def _address(at: At, port: Thing) -> str:
    """From the subnet's DHCP when one is on the network; until then the agent helps itself."""
    binding = next(iter(at.hub.on("binding", port.ref).values()), None)
    subnet = None if binding is None else at.find("subnet", binding.name)
    if subnet is None:
        number = at.hub.hosts[port.name].number
        return f"169.254.{number // 250 % 250 + 1}.{number % 250 + 1}"
    # The first of what the port has leased is the subnet, the second the address in it.
    if port.extra[:1] == (subnet.name,):
        return port.extra[1]
    leased = {other.extra[1] for other in at.hub.on("port", port.ref).values() if other.extra}
    numbers = itertools.count(FIRST_LEASE)
    address = next(a for a in (nth_address(subnet.name, n) for n in numbers) if a not in leased)
    at.set(port, extra=(subnet.name, address))
    return address


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": list_owned(KINDS),
    "look": look(KINDS),
    "list_free": list_free,
    "capacity": capacity,
    "ensure_held": ensure_held,
    "release_held": release_held,
    "agent_address": agent_address,
    "machines": machines,
}
