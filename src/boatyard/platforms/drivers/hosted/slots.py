"""Slots: the named nodes of a node pool, and the machine of each. Pure.

HyperShift counts nodes; an order names them. The names are annotations of the NodePool, one per slot, and `replicas`
is how many of them stay. On the Agent platform a slot is one host, and its machine is the one with that host's agent.
Virtual machines are all alike: there a slot takes any machine, and the machine is annotated with the slot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from boatyard.model import hub_names
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.hosted.kinds import (
    Manifest,
    ObservedObject,
    annotations_of,
    get_path,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from boatyard.platforms.drivers.hosted.machines import PoolMachine, select_pool_machines
from boatyard.platforms.port import DesiredNode, ObservedNode

SLOT_ANNOTATION_PREFIX = "node.boatyard.io/"


@dataclass(frozen=True)
class Slot:
    """One node as recorded in its pool."""

    slot: str
    node_set: str
    key: str
    host: str
    address: str
    agent: str = ""  # <namespace>/<name> of the host's Agent
    leaving: bool = False

    @property
    def agent_name(self) -> str:
        return self.agent.partition("/")[2]


def read_slots(pool: ObservedObject) -> dict[str, Slot]:
    """Returns the slots of a pool by name. Unavailable when one cannot be read: it must not count as missing."""
    slots: dict[str, Slot] = {}
    for name, value in annotations_of(pool).items():
        if not name.startswith(SLOT_ANNOTATION_PREFIX):
            continue
        try:
            slot = Slot(**json.loads(value))
        except (ValueError, TypeError):
            where = f"{namespace_of(pool)}/{name_of(pool)}"
            raise Unavailable(
                f"NodePool {where}: the annotation {name} cannot be read; mend it or take it away",
                reason="BadRecord",
            ) from None
        slots[slot.slot] = slot
    return slots


def node_set_of(pool: ObservedObject) -> str:
    return annotations_of(pool).get(hub_names.NODE_SET, "")


def replicas_of(pool: ObservedObject) -> int:
    return int(get_path(pool, "spec", "replicas") or 0)


def render_slots(pool: ObservedObject, slots: Iterable[Slot], replicas: int) -> Manifest:
    """Renders the fields of a NodePool that record its nodes. Applying them fails if the pool has changed."""
    metadata = {
        "namespace": namespace_of(pool),
        "resourceVersion": resource_version_of(pool),
        "uid": uid_of(pool),  # else applying to a deleted pool would create half a new one
        "annotations": {
            SLOT_ANNOTATION_PREFIX + hub_names.label_value(slot.slot): json.dumps(
                _slot_to_dict(slot), sort_keys=True
            )
            for slot in slots
        },
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}}


def _slot_to_dict(slot: Slot) -> Mapping[str, object]:
    fields = {name: value for name, value in vars(slot).items() if value}
    return {"slot": slot.slot, "node_set": slot.node_set, "host": "", "address": "", **fields}


@dataclass(frozen=True)
class PoolUpdate:
    """The slots and replicas to write to a pool. `replicas` is 0 where HyperShift creates no machines."""

    slots: Mapping[str, Slot]
    replicas: int


def with_slot(pool: ObservedObject, slot: Slot, *, counted: bool = True) -> PoolUpdate:
    """Adds a slot. Never lowers the number of machines: unrecorded ones may be nodes whose record was lost."""
    slots = {**read_slots(pool), slot.slot: slot}
    staying = sum(not entry.leaving for entry in slots.values())
    return PoolUpdate(slots, max(replicas_of(pool), staying) if counted else 0)


def with_leaving(pool: ObservedObject, name: str, *, counted: bool = True) -> PoolUpdate:
    """Marks a slot as leaving. Lowers the number of machines by at most one, whatever the other slots are."""
    slots = read_slots(pool)
    if name not in slots or slots[name].leaving:
        return PoolUpdate(slots, replicas_of(pool))
    slots[name] = replace(slots[name], leaving=True)
    staying = sum(not entry.leaving for entry in slots.values())
    return PoolUpdate(slots, max(replicas_of(pool) - 1, staying, 0) if counted else 0)


def without_slot(pool: ObservedObject, name: str) -> PoolUpdate:
    """Removes a slot that has left."""
    slots = {slot: entry for slot, entry in read_slots(pool).items() if slot != name}
    return PoolUpdate(slots, replicas_of(pool))


def check_free(pools: Sequence[ObservedObject], key: str, node: DesiredNode) -> None:
    """Refused when the slot, or the host, is in use under another key."""
    for pool in pools:
        for slot in read_slots(pool).values():
            if slot.slot == node.slot and slot.key != key:
                raise Refused(
                    f"node {node.slot} is in use under another key", reason="HeldByAnother"
                )
            if node.host and slot.slot != node.slot and slot.host == node.host:
                raise Refused(
                    f"host {node.host} is a node of this cluster already: {slot.slot}",
                    reason="HeldByAnother",
                )


def find_slot(pools: Sequence[Manifest], name: str) -> tuple[Manifest, Slot] | None:
    """Returns the slot of this name and its pool; None when there is none."""
    for pool in pools:
        slot = read_slots(pool).get(name)
        if slot is not None:
            return pool, slot
    return None


def match_machines(
    pool: ObservedObject, machines: Iterable[PoolMachine], *, agents: bool
) -> dict[str, PoolMachine]:
    """Returns the machine of each slot. Virtual machines without a slot go to slots without one, oldest first."""
    pool_machines = select_pool_machines(machines, name_of(pool))
    slots = read_slots(pool)
    if agents:
        machines_by_agent = {machine.agent: machine for machine in pool_machines if machine.agent}
        # An agent may belong to a machine being deleted and to its successor: the one that stays counts.
        machines_by_agent |= {
            machine.agent: machine
            for machine in pool_machines
            if machine.agent and not machine.leaving
        }
        return {
            name: machines_by_agent[slot.agent_name]
            for name, slot in slots.items()
            if slot.agent_name in machines_by_agent
        }
    matched = {machine.slot: machine for machine in pool_machines if machine.slot in slots}
    free = [
        machine for machine in pool_machines if machine.slot not in slots and not machine.leaving
    ]
    missing = sorted((name for name in slots if name not in matched), key=_slot_number)
    missing = [name for name in missing if not slots[name].leaving]
    return matched | dict(zip(missing, free, strict=False))


def _slot_number(slot: str) -> tuple[int, str]:
    number = slot.rpartition("-")[2]
    return (int(number) if number.isdigit() else 0), slot


def to_observed_nodes(
    pool: ObservedObject, machines: Mapping[str, PoolMachine]
) -> list[ObservedNode]:
    nodes = []
    for name, slot in sorted(read_slots(pool).items(), key=lambda item: _slot_number(item[0])):
        machine = machines.get(name)
        ready = machine is not None and machine.ready and not machine.leaving
        nodes.append(
            ObservedNode(name, slot.node_set, ready, _describe_node(slot, machine, ready=ready))
        )
    return nodes


def list_joined_slots(machines: Mapping[str, PoolMachine]) -> list[str]:
    """Returns the slots whose machine has been a node."""
    return [name for name, machine in machines.items() if machine.node]


def _describe_node(slot: Slot, machine: PoolMachine | None, *, ready: bool) -> str:
    if ready:
        return ""
    if slot.leaving or (machine is not None and machine.leaving):
        return "The node is leaving."
    return (
        "The node is not ready." if machine is not None and machine.node else "The node is joining."
    )


def choose_leaving(
    slots: Sequence[str], count: int, machines: Mapping[str, PoolMachine]
) -> Sequence[str]:
    """Returns the slots to remove: those HyperShift deletes already, never joined, not ready, then the youngest."""

    def order(name: str) -> tuple[int, tuple[int, ...], int]:
        machine = machines.get(name)
        if machine is not None and (machine.leaving or machine.delete_first):
            rank = 0
        elif machine is None or not machine.node:
            rank = 1
        else:
            rank = 3 if machine.ready else 2
        # Youngest first: negated characters make a later timestamp the smaller key.
        age = tuple(-ord(letter) for letter in (machine.created if machine is not None else ""))
        return rank, age, -_slot_number(name)[0]

    return sorted(slots, key=order)[:count]
