"""The plan of an order as a graph of items: what should exist, and what may be done now. Pure.

Called by the order reconciler. The dependencies are declared in `item_graph.py`; items are added in that order and
removed in reverse. An effect is only ever tried for an item that a committed write has recorded, so a deletion
that follows a crash knows everything that may exist outside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from boatyard.model.generated.boatyard import Item, ItemState, Order, OrderPhase
from boatyard.model.generated.osac import ClusterRest
from boatyard.resources.orders.item_graph import (
    ATTEMPT_FACT,
    DELETE_HOOK,
    HOST_ITEM_KINDS,
    ITEM_KINDS,
    ItemKind,
)


@dataclass(frozen=True)
class NodeSetReduction:
    """A node set that must lose `count` of its `slots`; the platform chooses which."""

    node_set: str
    slots: tuple[str, ...]
    count: int


def needs_planning(order: Order) -> bool:
    """Whether the recorded items do not yet match the order's spec."""
    if order.metadata.deletion_timestamp is not None:
        return any(item.state != ItemState.LEAVING for item in order.status.items)
    return order.status.observed_generation != order.spec.generation


def get_desired_rest(order: Order) -> ClusterRest:
    """How deeply the cluster should hibernate now. A long freeze has been turned into a stop."""
    if order.spec.rest == ClusterRest.FROZEN and order.status.rest == ClusterRest.STOPPED:
        return ClusterRest.STOPPED
    return order.spec.rest


def list_node_set_reductions(order: Order) -> tuple[NodeSetReduction, ...]:
    """The node sets of which nodes must be chosen for removal before the order can be planned."""
    if order.metadata.deletion_timestamp is not None:
        return ()
    shrinking_sets = []
    for node_set, slots in staying_slots(order.status.items).items():
        node_set_spec = order.spec.node_sets.get(node_set)
        surplus = len(slots) - (node_set_spec.size if node_set_spec else 0)
        if surplus > 0:
            shrinking_sets.append(NodeSetReduction(node_set=node_set, slots=slots, count=surplus))
    return tuple(shrinking_sets)


def replan(
    order: Order,
    leaving: Mapping[str, Sequence[str]],
    checks: Sequence[str],
    *,
    on_hosts: bool = True,
) -> tuple[Item, ...]:
    """The items to record from now on: new ones PLANNED, surplus ones LEAVING, all others unchanged.

    `leaving` is the platform's choice for each of `list_node_set_reductions(order)`. No recorded item disappears
    here: it is removed only when its release is confirmed. `on_hosts` decides for the first nodes of an order
    whether they need hosts; later nodes do as the first ones.
    """
    recorded = {item.key: item for item in order.status.items}
    if order.metadata.deletion_timestamp is not None:
        return (*(_mark_leaving(item) for item in recorded.values()), *_make_delete_hook_run(order))
    leaving_slots = {slot for slots in leaving.values() for slot in slots}
    desired_items = _list_desired_items(order, leaving_slots=leaving_slots, checks=checks)
    if not _needs_hosts(order, on_hosts):
        desired_items = {
            key: item for key, item in desired_items.items() if item.kind not in HOST_ITEM_KINDS
        }
    old_items = [
        _update_want(item, desired_items[key]) if key in desired_items else _mark_leaving(item)
        for key, item in recorded.items()
    ]
    new_items = [item for key, item in desired_items.items() if key not in recorded]
    return tuple(sorted([*old_items, *new_items], key=_plan_sort_key))


def _needs_hosts(order: Order, default: bool) -> bool:
    kinds = {item.kind for item in order.status.items}
    if "node" in kinds:
        return "host" in kinds
    return default


def next_slots(order: Order, items: Iterable[Item]) -> dict[str, int]:
    """Per node set, the number of the next new node. A number is never used twice in an order.

    A worker that was suspended in the middle of a release must not find another node under the same key.
    """
    numbers = dict(order.status.next_slots)
    for item in items:
        if item.slot:
            number = _parse_slot(item.slot)[1]
            numbers[item.node_set] = max(numbers.get(item.node_set, 0), number + 1)
    return numbers


def ready_to_add(items: Iterable[Item], requested_steps: Collection[str] = ()) -> tuple[Item, ...]:
    """Items to create or correct now: all items they need are present.

    While a role controls the installation, only items of `requested_steps` are among them.
    """
    index = _ItemIndex(items)
    role_decides = index.is_role_in_control()
    return tuple(
        item
        for item in index.items
        if _needs_ensure(item)
        and index.are_dependencies_present(item)
        and (not role_decides or item.step in requested_steps or ITEM_KINDS[item.kind].phase)
    )


def ready_to_remove(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items to release now: no item that needs them is left."""
    index = _ItemIndex(items)
    return tuple(
        item
        for item in index.items
        if item.state == ItemState.LEAVING and not index.is_needed(item)
    )


def is_settled(items: Iterable[Item]) -> bool:
    """Whether every recorded item is present as desired and none is leaving."""
    return all(item.state == ItemState.PRESENT and item.have == item.want for item in items)


def start_new_run_attempts(items: Iterable[Item], steps: Collection[str]) -> tuple[Item, ...]:
    """Returns the items with a new attempt number for every run of these steps that has not succeeded."""
    return tuple(
        msgspec.structs.replace(
            item, facts={**item.facts, ATTEMPT_FACT: str(int(item.facts[ATTEMPT_FACT]) + 1)}
        )
        if ATTEMPT_FACT in item.facts and item.step in steps and not _is_confirmed(item)
        else item
        for item in items
    )


def needs_credentials(order: Order, items: Iterable[Item]) -> bool:
    """Whether to ask the platform for the cluster's credentials now.

    True as soon as its API answers, and again after each change, because an upgrade or a restore may have
    renewed its certificates.
    """
    if not order.status.credentials.kubeconfig:
        return any(item.kind == "cluster" and _is_confirmed(item) for item in items)
    steady = (OrderPhase.READY, OrderPhase.DEGRADED)
    awake = get_desired_rest(order) == ClusterRest.AWAKE
    return awake and order.status.phase not in steady and is_settled(items)


def _needs_ensure(item: Item) -> bool:
    if item.state == ItemState.PLANNED:
        return True
    return item.state == ItemState.PRESENT and item.have != item.want


def _mark_leaving(item: Item) -> Item:
    if item.state == ItemState.LEAVING:
        return item
    return msgspec.structs.replace(item, state=ItemState.LEAVING)


def _update_want(item: Item, desired_item: Item) -> Item:
    """A recorded item that is still in the plan, with its new want. One that is already leaving keeps leaving."""
    if item.state == ItemState.LEAVING or item.want == desired_item.want:
        return item
    # A correction was under way: what exists outside may be neither the old nor the new, so ensure it again.
    have = item.have if item.have == item.want else ""
    return msgspec.structs.replace(item, want=desired_item.want, have=have)


def _list_desired_items(
    order: Order, *, leaving_slots: set[str], checks: Sequence[str]
) -> dict[str, Item]:
    slots = _assign_slots(order, leaving_slots)
    items: dict[str, Item] = {}
    for kind in ITEM_KINDS.values():
        for item in _make_items_of_kind(kind, order, slots, checks):
            items[item.key] = item
    return items


def _make_items_of_kind(
    kind: ItemKind, order: Order, slots: Mapping[str, Sequence[str]], checks: Sequence[str]
) -> Iterable[Item]:
    if kind.never_planned or kind.name == DELETE_HOOK:
        return
    if kind.phase:
        yield from _make_role_runs(kind, order, slots)
        return
    if kind.name == "check":
        if get_desired_rest(order) != ClusterRest.AWAKE:
            return  # nobody answers; all checks run again when it is awake
        # The generation is in the key: after each change every check runs again.
        for check in checks:
            yield _new(kind, f"check/{check}@{order.spec.generation}", facts={"check": check})
        return
    if not kind.per_node:
        yield _new(
            kind, kind.name, want=_control_plane_digest(order) if kind.name == "cluster" else ""
        )
        return
    for node_set, names in slots.items():
        for slot in names:
            yield _new(kind, f"{kind.name}/{slot}", node_set=node_set, slot=slot)


def _make_role_runs(
    kind: ItemKind, order: Order, slots: Mapping[str, Sequence[str]]
) -> Iterable[Item]:
    """The run of the role's part for this kind, if the role has that part and it is due."""
    if kind.phase not in order.spec.template_phases:
        return
    key = kind.name
    if kind.name == "scale":
        unfinished = any(
            item.kind == "scale" and not _is_confirmed(item) for item in order.status.items
        )
        if not unfinished and not _is_resized(order, slots):
            return
    if kind.name in ("scale", "acceptance"):
        key = f"{kind.name}/{order.spec.generation}"  # again after each change, like checks
    done = any(item.key == key and _is_confirmed(item) for item in order.status.items)
    if not done and get_desired_rest(order) != ClusterRest.AWAKE:
        return  # there is nothing to work on; it is due when the cluster is awake again
    yield _new(kind, key, facts={ATTEMPT_FACT: "1"})


def _is_resized(order: Order, slots: Mapping[str, Sequence[str]]) -> bool:
    """Whether nodes are added or removed in a cluster that has some."""
    current_slots = staying_slots(order.status.items)
    return bool(current_slots) and {k: tuple(v) for k, v in slots.items() if v} != {
        node_set: names for node_set, names in current_slots.items() if names
    }


def _make_delete_hook_run(order: Order) -> Iterable[Item]:
    """The run of the role's delete part, planned if the role has run or may have run before."""
    kind = ITEM_KINDS[DELETE_HOOK]
    keys = {item.key for item in order.status.items}
    if kind.phase not in order.spec.template_phases or kind.name in keys:
        return
    if keys & {"role", "pre_install"} or order.status.credentials.kubeconfig:
        item = _new(kind, kind.name, facts={ATTEMPT_FACT: "1"})
        yield msgspec.structs.replace(item, state=ItemState.LEAVING)


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


def _assign_slots(order: Order, leaving_slots: set[str]) -> dict[str, tuple[str, ...]]:
    """Per node set, the slots that should exist: those that stay, then new ones up to the size."""
    staying = staying_slots(order.status.items)
    fresh = next_slots(order, order.status.items)
    slots_by_set: dict[str, tuple[str, ...]] = {}
    for node_set, node_set_spec in sorted(order.spec.node_sets.items()):
        slots = [slot for slot in staying.get(node_set, ()) if slot not in leaving_slots]
        first = fresh.get(node_set, 0)
        slots += [f"{node_set}-{first + n}" for n in range(node_set_spec.size - len(slots))]
        slots_by_set[node_set] = tuple(slots)
    return slots_by_set


def staying_slots(items: Iterable[Item]) -> dict[str, tuple[str, ...]]:
    """Per node set, the recorded slots of which no item is leaving."""
    stays_by_set: dict[str, dict[str, bool]] = {}
    for item in items:
        if not item.slot:
            continue
        slots = stays_by_set.setdefault(item.node_set, {})
        slots[item.slot] = slots.get(item.slot, True) and item.state != ItemState.LEAVING
    return {
        node_set: tuple(sorted((slot for slot, stays in slots.items() if stays), key=_parse_slot))
        for node_set, slots in stays_by_set.items()
    }


def _parse_slot(slot: str) -> tuple[str, int]:
    node_set, _, number = slot.rpartition("-")
    return node_set, int(number)


def _control_plane_digest(order: Order) -> str:
    """A short hash of all that the control plane depends on; when it changes, the cluster item is corrected."""
    spec = order.spec
    inputs: list[object] = [
        spec.version,
        spec.release_image,
        spec.ssh_public_key,
        spec.pull_secret,
        spec.pod_cidr,
        spec.service_cidr,
        dict(sorted(spec.template_parameters.items())),
    ]
    # Only values that are set: orders from before these fields existed keep their digest.
    optional_inputs = {
        "settings": dict(sorted(spec.platform_settings.items())),
        "rest": get_desired_rest(order).value,
        "restore": [spec.restore.request, spec.restore.backup] if spec.restore.request else [],
    }
    inputs += [[name, value] for name, value in optional_inputs.items() if value]
    return hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()[:12]


_KIND_POSITIONS = {name: position for position, name in enumerate(ITEM_KINDS)}


def _plan_sort_key(item: Item) -> tuple[int, str, int, str]:
    node_set, number = _parse_slot(item.slot) if item.slot else ("", 0)
    return _KIND_POSITIONS[item.kind], node_set, number, item.key


class _ItemIndex:
    """Items by kind and slot, to look up what an item needs and which items need it."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self._by_kind: dict[str, list[Item]] = {}
        self._by_slot: dict[tuple[str, str], Item] = {}
        for item in self.items:
            self._by_kind.setdefault(item.kind, []).append(item)
            self._by_slot[item.kind, item.slot] = item

    def are_dependencies_present(self, item: Item) -> bool:
        rank = ITEM_KINDS[item.kind].rank
        if rank and not all(
            _is_confirmed(other) for other in self.items if ITEM_KINDS[other.kind].rank < rank
        ):
            return False
        return all(
            self._is_dependency_present(need, item.slot) for need in ITEM_KINDS[item.kind].needs
        )

    def is_role_in_control(self) -> bool:
        """Whether a run of the role's install part controls the order and is not finished."""
        return any(not _is_confirmed(item) for item in self._by_kind.get("role", ()))

    def _is_dependency_present(self, kind: str, slot: str) -> bool:
        if ITEM_KINDS[kind].phase and kind not in self._by_kind:
            return True  # the role has no such part
        if not ITEM_KINDS[kind].per_node:
            return _is_confirmed(self._by_slot.get((kind, "")))
        if kind in HOST_ITEM_KINDS and kind not in self._by_kind:
            return True  # no node of this order needs a host
        if slot:
            return _is_confirmed(self._by_slot.get((kind, slot)))
        # An item of the whole cluster needs the items of every node, except of leaving nodes.
        staying = [i for i in self._by_kind.get(kind, ()) if i.state != ItemState.LEAVING]
        return all(_is_confirmed(item) for item in staying)

    def is_needed(self, item: Item) -> bool:
        return any(self._depends_on(other, item) for other in self.items)

    def _depends_on(self, other: Item, item: Item) -> bool:
        if ITEM_KINDS[item.kind].phase:
            # A run is ended whatever its result; the delete part waits until no other run is left.
            return (
                item.kind == DELETE_HOOK
                and other is not item
                and bool(ITEM_KINDS[other.kind].phase)
            )
        if other.kind == DELETE_HOOK:
            return True
        if item.kind not in ITEM_KINDS[other.kind].needs:
            return False
        if ITEM_KINDS[item.kind].per_node:
            # Only items of the same node hold it back: a dead name server must not keep hosts.
            return bool(other.slot) and other.slot == item.slot
        return True


def _is_confirmed(item: Item | None) -> bool:
    return item is not None and item.state == ItemState.PRESENT and item.have == item.want
