"""The road of an order as a graph of items: what should exist, what may be done now. Pure.

Called by the order reconciler. The graph is written once, in `KINDS`; adding walks it forwards, taking
away walks it backwards. An effect is only ever tried for an item that a committed write has recorded,
so a deletion that follows a crash knows everything that may exist outside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from boatyard.model.generated.boatyard import Item, ItemState, Order, OrderPhase
from boatyard.model.generated.osac import ClusterRest


@dataclass(frozen=True)
class ItemKind:
    """One kind of thing on the road. `needs` names the kinds that must be present before it.

    `last`: only once nothing else is coming or going. `leaves_nothing`: there is nothing to release.
    `apart`: never part of an order's plan; only what a deletion left of it is released by these steps.
    """

    name: str
    step: str
    needs: tuple[str, ...] = ()
    per_node: bool = False
    last: bool = False
    leaves_nothing: bool = False
    apart: bool = False


KINDS: Mapping[str, ItemKind] = {
    kind.name: kind
    for kind in (
        ItemKind("host", "hosts", per_node=True),
        ItemKind("l2", "network"),
        ItemKind("port", "network", needs=("host", "l2"), per_node=True),
        ItemKind("agent", "network", needs=("port",), per_node=True, leaves_nothing=True),
        ItemKind("l3", "network", needs=("l2", "agent")),
        ItemKind("binding", "network", needs=("l3", "l2")),
        ItemKind("api-address", "addresses", needs=("binding",)),
        ItemKind("ingress-address", "addresses", needs=("binding",)),
        ItemKind("api-name", "names", needs=("api-address",)),
        ItemKind("ingress-name", "names", needs=("ingress-address",)),
        ItemKind("cluster", "install", needs=("api-name", "ingress-name")),
        ItemKind("node", "install", needs=("cluster", "agent"), per_node=True),
        ItemKind("check", "validate", needs=("cluster", "node"), last=True, leaves_nothing=True),
        ItemKind("backup", "install", apart=True),
    )
}

# What a node needs that stands on a host; a platform that makes machines itself needs none of it.
ON_HOSTS = frozenset({"host", "port", "agent"})

STEPS: tuple[str, ...] = tuple(dict.fromkeys(kind.step for kind in KINDS.values()))


def step_needs(step: str) -> tuple[str, ...]:
    """The steps this one waits for, in the order of the road."""
    needed = {
        KINDS[need].step for kind in KINDS.values() if kind.step == step for need in kind.needs
    }
    return tuple(name for name in STEPS if name in needed and name != step)


@dataclass(frozen=True)
class Shrinking:
    """A node set that has become smaller: `count` of `slots` must leave, and the platform says which."""

    node_set: str
    slots: tuple[str, ...]
    count: int


def needs_planning(order: Order) -> bool:
    """True when the items recorded do not yet follow what the order asks for."""
    if order.metadata.deletion_timestamp is not None:
        return any(item.state != ItemState.LEAVING for item in order.status.items)
    return order.status.observed_generation != order.spec.generation


def rest_of(order: Order) -> ClusterRest:
    """How deep the cluster should rest now. A freeze that has lasted long has become a stop."""
    if order.spec.rest == ClusterRest.FROZEN and order.status.rest == ClusterRest.STOPPED:
        return ClusterRest.STOPPED
    return order.spec.rest


def shrinking(order: Order) -> tuple[Shrinking, ...]:
    """The node sets for which somebody must be chosen to leave before the plan can be made."""
    if order.metadata.deletion_timestamp is not None:
        return ()
    found = []
    for node_set, slots in staying_slots(order.status.items).items():
        wanted = order.spec.node_sets.get(node_set)
        surplus = len(slots) - (wanted.size if wanted else 0)
        if surplus > 0:
            found.append(Shrinking(node_set=node_set, slots=slots, count=surplus))
    return tuple(found)


def replan(
    order: Order,
    leaving: Mapping[str, Sequence[str]],
    checks: Sequence[str],
    *,
    on_hosts: bool = True,
) -> tuple[Item, ...]:
    """The items to record from now on: new ones PLANNED, surplus ones LEAVING, the rest as they are.

    `leaving` is the platform's answer to each of `shrinking(order)`. Nothing that was recorded
    disappears here: an item goes only when its release was confirmed. `on_hosts` counts for the first
    nodes of an order: those that come later stand on what the others stand on.
    """
    recorded = {item.key: item for item in order.status.items}
    if order.metadata.deletion_timestamp is not None:
        return tuple(_leave(item) for item in recorded.values())
    gone = {slot for slots in leaving.values() for slot in slots}
    wanted = _wanted(order, gone=gone, checks=checks)
    if not _stands_on_hosts(order, on_hosts):
        wanted = {key: item for key, item in wanted.items() if item.kind not in ON_HOSTS}
    kept = [
        _adjusted(item, wanted[key]) if key in wanted else _leave(item)
        for key, item in recorded.items()
    ]
    new = [item for key, item in wanted.items() if key not in recorded]
    return tuple(sorted([*kept, *new], key=_road_order))


def _stands_on_hosts(order: Order, first: bool) -> bool:
    kinds = {item.kind for item in order.status.items}
    if "node" in kinds:
        return "host" in kinds
    return first


def next_slots(order: Order, items: Iterable[Item]) -> dict[str, int]:
    """Per node set the number the next new node gets. A number is never given twice in an order.

    Somebody who was stopped in the middle of a release must not meet another node under the same key.
    """
    found = dict(order.status.next_slots)
    for item in items:
        if item.slot:
            number = _slot_number(item.slot)[1]
            found[item.node_set] = max(found.get(item.node_set, 0), number + 1)
    return found


def ready_to_add(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items that should be made or corrected now: all they need is present."""
    index = _Index(items)
    return tuple(item for item in index.items if _is_open(item) and index.has_needs(item))


def ready_to_remove(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items that should be released now: nothing that stands on them remains."""
    index = _Index(items)
    return tuple(
        item
        for item in index.items
        if item.state == ItemState.LEAVING and not index.is_needed(item)
    )


def is_settled(items: Iterable[Item]) -> bool:
    """True when all that is recorded is present as wanted and nothing is leaving."""
    return all(item.state == ItemState.PRESENT and item.have == item.want for item in items)


def wants_access(order: Order, items: Iterable[Item]) -> bool:
    """Whether the platform is to be asked how the cluster is reached.

    As soon as its API answers; and once more when a change is carried out, because an upgrade or a
    restore may have renewed its certificates.
    """
    if not order.status.credentials.kubeconfig:
        return any(item.kind == "cluster" and _is_confirmed(item) for item in items)
    steady = (OrderPhase.READY, OrderPhase.DEGRADED)
    awake = rest_of(order) == ClusterRest.AWAKE
    return awake and order.status.phase not in steady and is_settled(items)


def _is_open(item: Item) -> bool:
    if item.state == ItemState.PLANNED:
        return True
    return item.state == ItemState.PRESENT and item.have != item.want


def _leave(item: Item) -> Item:
    if item.state == ItemState.LEAVING:
        return item
    return msgspec.structs.replace(item, state=ItemState.LEAVING)


def _adjusted(item: Item, wanted: Item) -> Item:
    """A recorded item that is still wanted. One that is already leaving goes on leaving."""
    if item.state == ItemState.LEAVING or item.want == wanted.want:
        return item
    # A correction was under way: what is outside now is neither the old nor the new, so it is asked for again.
    have = item.have if item.have == item.want else ""
    return msgspec.structs.replace(item, want=wanted.want, have=have)


def _wanted(order: Order, *, gone: set[str], checks: Sequence[str]) -> dict[str, Item]:
    slots = _wanted_slots(order, gone)
    found: dict[str, Item] = {}
    for kind in KINDS.values():
        for item in _items_of(kind, order, slots, checks):
            found[item.key] = item
    return found


def _items_of(
    kind: ItemKind, order: Order, slots: Mapping[str, Sequence[str]], checks: Sequence[str]
) -> Iterable[Item]:
    if kind.apart:
        return
    if kind.name == "check":
        if rest_of(order) != ClusterRest.AWAKE:
            return  # nobody answers; all are asked anew when it is awake again
        # The generation is in the key: after each change every question is asked anew.
        for check in checks:
            yield _new(kind, f"check/{check}@{order.spec.generation}", facts={"check": check})
        return
    if not kind.per_node:
        yield _new(kind, kind.name, want=_digest(order) if kind.name == "cluster" else "")
        return
    for node_set, names in slots.items():
        for slot in names:
            yield _new(kind, f"{kind.name}/{slot}", node_set=node_set, slot=slot)


def _new(
    kind: ItemKind,
    key: str,
    *,
    node_set: str = "",
    slot: str = "",
    want: str = "",
    facts: Mapping[str, str] | None = None,
) -> Item:
    return Item(
        key=key,
        kind=kind.name,
        step=kind.step,
        node_set=node_set,
        slot=slot,
        state=ItemState.PLANNED,
        want=want,
        facts=facts or {},
    )


def _wanted_slots(order: Order, gone: set[str]) -> dict[str, tuple[str, ...]]:
    """Per node set the slots that should exist: those that stay, then fresh ones up to the size."""
    staying = staying_slots(order.status.items)
    fresh = next_slots(order, order.status.items)
    found: dict[str, tuple[str, ...]] = {}
    for node_set, wanted in sorted(order.spec.node_sets.items()):
        slots = [slot for slot in staying.get(node_set, ()) if slot not in gone]
        first = fresh.get(node_set, 0)
        slots += [f"{node_set}-{first + n}" for n in range(wanted.size - len(slots))]
        found[node_set] = tuple(slots)
    return found


def staying_slots(items: Iterable[Item]) -> dict[str, tuple[str, ...]]:
    """Per node set, the slots that are there to stay."""
    found: dict[str, dict[str, bool]] = {}
    for item in items:
        if not item.slot:
            continue
        slots = found.setdefault(item.node_set, {})
        slots[item.slot] = slots.get(item.slot, True) and item.state != ItemState.LEAVING
    return {
        node_set: tuple(sorted((slot for slot, stays in slots.items() if stays), key=_slot_number))
        for node_set, slots in found.items()
    }


def _slot_number(slot: str) -> tuple[str, int]:
    node_set, _, number = slot.rpartition("-")
    return node_set, int(number)


def _digest(order: Order) -> str:
    """What the control plane depends on, in a few letters; a change of it is a correction."""
    spec = order.spec
    wanted: list[object] = [
        spec.version,
        spec.release_image,
        spec.ssh_public_key,
        spec.pull_secret,
        spec.pod_cidr,
        spec.service_cidr,
        dict(sorted(spec.template_parameters.items())),
    ]
    # Only what is there: orders from before these existed keep their digest.
    more = {
        "settings": dict(sorted(spec.platform_settings.items())),
        "rest": rest_of(order).value,
        "restore": [spec.restore.request, spec.restore.backup] if spec.restore.request else [],
    }
    wanted += [[name, value] for name, value in more.items() if value]
    return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()[:12]


_ROAD = {name: position for position, name in enumerate(KINDS)}


def _road_order(item: Item) -> tuple[int, str, int, str]:
    node_set, number = _slot_number(item.slot) if item.slot else ("", 0)
    return _ROAD[item.kind], node_set, number, item.key


class _Index:
    """Items by kind and slot, to answer what one of them needs and who needs it."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self._by_kind: dict[str, list[Item]] = {}
        self._by_slot: dict[tuple[str, str], Item] = {}
        for item in self.items:
            self._by_kind.setdefault(item.kind, []).append(item)
            self._by_slot[item.kind, item.slot] = item

    def has_needs(self, item: Item) -> bool:
        if KINDS[item.kind].last and not all(
            _is_confirmed(other) for other in self.items if other.kind != item.kind
        ):
            return False
        return all(self._is_present(need, item.slot) for need in KINDS[item.kind].needs)

    def _is_present(self, kind: str, slot: str) -> bool:
        if not KINDS[kind].per_node:
            return _is_confirmed(self._by_slot.get((kind, "")))
        if kind in ON_HOSTS and kind not in self._by_kind:
            return True  # no node of this order stands on a host
        if slot:
            return _is_confirmed(self._by_slot.get((kind, slot)))
        # A thing of the whole cluster needs every node's part, except of nodes that are leaving.
        staying = [i for i in self._by_kind.get(kind, ()) if i.state != ItemState.LEAVING]
        return all(_is_confirmed(item) for item in staying)

    def is_needed(self, item: Item) -> bool:
        return any(self._stands_on(other, item) for other in self.items)

    def _stands_on(self, other: Item, item: Item) -> bool:
        if item.kind not in KINDS[other.kind].needs:
            return False
        if KINDS[item.kind].per_node:
            # Only what belongs to the same node holds it: a dead name server must not keep hosts.
            return bool(other.slot) and other.slot == item.slot
        return True


def _is_confirmed(item: Item | None) -> bool:
    return item is not None and item.state == ItemState.PRESENT and item.have == item.want
