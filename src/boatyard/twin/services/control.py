"""Verbs of the twin itself: faults, moods, delays, broken hosts, and what it really holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from boatyard.model.errors import Refused
from boatyard.twin.behaviours import BEHAVIOURS, normalise_step
from boatyard.twin.delays import Delays
from boatyard.twin.faults import make_fault
from boatyard.twin.hub import KINDS
from boatyard.twin.layout import HubLayout
from boatyard.twin.services.control_planes import ClusterFields, is_available
from boatyard.twin.services.platform import NodeFields
from boatyard.twin.services.verb_context import Verb, VerbContext
from boatyard.twin.state import TwinState

SERVICES = ("inventory", "l2", "l3", "dns", "platform", "checks")


def hubs(state: TwinState, now: float) -> dict[str, Any]:
    """Every hub with its zone and how many usable hosts of each type it has."""
    return {
        name: {"zone": hub.layout.zone, "hosts": dict(hub.usable_counts)}
        for name, hub in state.hubs.items()
    }


def add_hub(state: TwinState, now: float, hub: str, layout: Mapping[str, Any]) -> None:
    """Adds a hub. The same layout again changes nothing; another one is Refused while it holds things."""
    try:
        hub_layout = msgspec.convert(layout, HubLayout)
        _ = hub_layout.subnet_list, hub_layout.floating_list
    except (msgspec.ValidationError, ValueError) as error:
        raise Refused(f"the layout of hub {hub} is not one: {error}") from error
    if hub not in state.hubs or state.hubs[hub].layout != hub_layout:
        state.change("hub", hub, msgspec.to_builtins(hub_layout))


def set_fault(
    state: TwinState,
    now: float,
    hub: str,
    service: str,
    profile: str,
    seconds: float = 0.5,
    every: int = 3,
    silent: bool = False,
) -> None:
    """Switches a fault profile on, for a service, one verb ("dns.ensure_record") or "*".

    A hub may be "*" too. The profile `none` switches it off.
    """
    if hub != "*" and hub not in state.hubs:
        raise Refused(f"there is no hub {hub!r}")
    if service != "*" and service.partition(".")[0] not in SERVICES:
        raise Refused(f"no service {service!r}; there are {', '.join(SERVICES)}")
    fault = make_fault(profile, seconds, every, silent)
    state.change("fault", hub, service, None if fault is None else msgspec.to_builtins(fault))


def faults(state: TwinState, now: float) -> list[dict[str, Any]]:
    """The faults in force."""
    return [
        {"hub": hub, "service": service, **msgspec.to_builtins(fault)}
        for (hub, service), fault in state.faults.items()
    ]


def clear_faults(state: TwinState, now: float) -> None:
    for hub, service in list(state.faults):
        state.change("fault", hub, service, None)


def set_mood(state: TwinState, now: float, order_id: str, step: str, mood: str) -> None:
    """Gives one order ("*" for all) a mood at one step; an empty mood takes it away."""
    if mood and mood not in BEHAVIOURS:
        raise Refused(f"no mood {mood!r}; there are {', '.join(BEHAVIOURS)}")
    state.change("mood", order_id, normalise_step(step), mood)


def set_delays(
    state: TwinState,
    now: float,
    profile: str = "instant",
    overrides: Mapping[str, float] | None = None,
) -> None:
    """Changes how long things take from now on; what is under way keeps its time."""
    Delays(profile, overrides)
    state.change("delays", profile, dict(overrides or {}))


def fail_host(state: TwinState, now: float, hub: str, host: str) -> None:
    """Breaks a host: its node is lost, and it is not handed out any more."""
    _flag(state, now, hub, host, broken=True)


def repair_host(state: TwinState, now: float, hub: str, host: str) -> None:
    _flag(state, now, hub, host, broken=False, off=False, unready=False)


def power_off(state: TwinState, now: float, hub: str, host: str, on: bool = False) -> None:
    """Switches a host off, or on again. A host that is off can be held: holding it starts it."""
    _flag(state, now, hub, host, off=not on)


def node_not_ready(state: TwinState, now: float, hub: str, host: str, ready: bool = False) -> None:
    """Makes the node on that host report that it is not ready, or ready again."""
    _flag(state, now, hub, host, unready=not ready)


def _flag(state: TwinState, now: float, hub: str, host: str, **flags: bool) -> None:
    if hub not in state.hubs:
        raise Refused(f"there is no hub {hub!r}")
    state.set_host_flags(hub, host, flags, now)


def write_objects(state: TwinState, now: float, hub: str, cluster_key: str, contents: str) -> None:
    """Replaces all objects in a cluster by this text, as a tenant would."""
    if hub not in state.hubs:
        raise Refused(f"there is no hub {hub!r}")
    cluster = state.hubs[hub].things["cluster"].get(cluster_key)
    if cluster is None or not is_available(VerbContext(state, state.hubs[hub], now), cluster):
        raise Refused("the cluster does not answer")
    fields = ClusterFields(*cluster.extra)
    state.replace(cluster, extra=fields._replace(contents=contents))


def wishes(state: TwinState, now: float, hub: str, cluster_key: str) -> dict[str, Any]:
    """The cluster's last requested fields, and those of its nodes by slot. Secrets are digests."""
    if hub not in state.hubs:
        raise Refused(f"there is no hub {hub!r}")
    cluster = state.hubs[hub].things["cluster"].get(cluster_key)
    if cluster is None:
        raise Refused(f"there is no cluster {cluster_key!r}")
    nodes = [
        {"host": node.name, **NodeFields(*node.extra)._asdict()}
        for node in state.hubs[hub].list_dependents("node", cluster_key).values()
    ]
    return {
        "name": cluster.name,
        **ClusterFields(*cluster.extra)._asdict(),
        "nodes": {node["slot"]: node for node in nodes},
    }


def effects(state: TwinState, now: float, prefix: str = "") -> list[dict[str, Any]]:
    """Per key and kind: how often it was made (applied), removed, and requested (calls)."""
    rows = []
    for order in state.find_orders(prefix, state.counts_by_order):
        for (kind, key), counts in state.counts_by_order[order].items():
            if key.startswith(prefix):
                rows.append({"key": key, "kind": kind, **msgspec.structs.asdict(counts)})
    return sorted(rows, key=lambda effect: (effect["key"], effect["kind"]))


def truth(state: TwinState, now: float, hub: str = "", prefix: str = "") -> dict[str, Any]:
    """The names of everything that exists now, by hub, kind and key."""
    names_by_hub: dict[str, dict[str, dict[str, list[str]]]] = {}
    things = state.things(prefix, hub)
    for thing in sorted(things, key=lambda thing: (thing.hub, thing.kind, thing.key, thing.name)):
        kinds = names_by_hub.setdefault(thing.hub, {})
        kinds.setdefault(thing.kind, {}).setdefault(thing.key, []).append(thing.name)
    return names_by_hub


def totals(state: TwinState, now: float) -> dict[str, dict[str, int]]:
    """How many things of each kind every hub holds. Cheap at any size."""
    return {
        name: {kind: len(hub.things[kind]) for kind in KINDS} for name, hub in state.hubs.items()
    }


def history(state: TwinState, now: float, after: int = 0, limit: int = 10_000) -> dict[str, Any]:
    """What was made and removed, in order and numbered without gaps; `oldest` is the first kept."""
    oldest = state.history[0].number if state.history else state.last_history_number + 1
    start = max(after + 1 - oldest, 0)
    rows: Sequence[Any] = list(state.history)[start : start + limit]
    return {
        "oldest": oldest,
        "newest": state.last_history_number,
        "happenings": [happening._asdict() for happening in rows],
    }


def forget(state: TwinState, now: float, prefix: str = "") -> None:
    """Drops the counts of orders that hold nothing now."""
    state.change("forget", prefix)


def next_event(state: TwinState, now: float) -> float | None:
    """The next moment at which something changes by itself; None when nothing is under way."""
    return state.next_change_time(now)


def ping(state: TwinState, now: float) -> bool:
    return True


VERBS: Mapping[str, Verb] = {
    verb.__name__: verb
    for verb in (
        hubs,
        add_hub,
        set_fault,
        faults,
        clear_faults,
        set_mood,
        set_delays,
        fail_host,
        repair_host,
        power_off,
        node_not_ready,
        write_objects,
        wishes,
        effects,
        truth,
        totals,
        history,
        forget,
        next_event,
        ping,
    )
}
