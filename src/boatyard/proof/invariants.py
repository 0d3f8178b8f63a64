"""The invariants of an installation, checked from outside: reads only the ledger's tables, its event log and the twin.

Called by `boatyard prove` after every run, and by tests. The numbers are those of the reliability notes; I5, I9
and I10 are about audit, secrets and tenants and have tests of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import (
    Backup,
    BackupState,
    Item,
    ItemState,
    Leftover,
    Order,
    OrderPhase,
)
from boatyard.model.generated.osac import Cluster, Hub
from boatyard.proof.capacity_replay import find_over_capacity
from boatyard.proof.evidence import ClaimRow, Evidence, HeldItem, gather_evidence
from boatyard.resources.clusters.deletion import leftover_owner
from boatyard.resources.orders.item_graph import DELETE_HOOK
from boatyard.twin.calls import TwinCalls

AcknowledgedWrites = Sequence[tuple[str, str, int]]  # kind, id, version

# What each kind of item is called outside. Kinds that are not listed leave nothing outside.
TWIN_KIND_BY_ITEM_KIND: Mapping[str, str] = {
    "host": "host",
    "l2": "network",
    "port": "port",
    "l3": "subnet",
    "binding": "binding",
    "api-address": "floating",
    "ingress-address": "floating",
    "api-name": "record",
    "ingress-name": "record",
    "cluster": "cluster",
    "node": "node",
}
# Kinds whose names are unique per hub, and the pool they are claimed from, where there is one.
POOL_BY_SCARCE_KIND: Mapping[str, str] = {
    "host": "hosts",
    "port": "hosts",
    "node": "hosts",
    "network": "vlans",
    "subnet": "subnets",
    "floating": "floating",
    "record": "",
}
_CREATED, _DELETED, _SIGNALED = 1, 3, 4


@dataclass(frozen=True)
class Breach:
    """One violation of an invariant, now or in the past."""

    invariant: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.message}"


async def check_invariants(
    ledger: Ledger,
    twin: TwinCalls,
    *,
    acknowledged: AcknowledgedWrites = (),
    elsewhere: Sequence[ClaimRow] = (),
) -> list[Breach]:
    """Every breach that can be seen now. No work may be in progress.

    `acknowledged` are the writes that callers were told had succeeded, `elsewhere` the claims that hubs keep.
    """
    evidence = await gather_evidence(ledger, twin)
    evidence = replace(evidence, claims=(*evidence.claims, *elsewhere))
    return find_breaches(evidence, acknowledged=acknowledged)


def find_breaches(evidence: Evidence, *, acknowledged: AcknowledgedWrites = ()) -> list[Breach]:
    """Every breach in the evidence."""
    breaches = [
        Breach(name, message) for name, rule in _RULES.items() for message in rule(evidence)
    ]
    breaches += [Breach("I4", message) for message in _find_lost_writes(evidence, acknowledged)]
    return breaches


# --- I1: nothing has two owners ------------------------------------------------------------------


def _check_single_owner(evidence: Evidence) -> Iterator[str]:
    yield from _find_double_claims(evidence)
    yield from _find_unclaimed_items(evidence)
    yield from _find_double_holders(evidence)
    live_orders = _items_by_order(evidence)
    for claim in evidence.claims:
        order, _, item_key = claim.owner.partition("/")
        if order in live_orders and not _is_listed(item_key, live_orders[order]):
            yield f"{claim.item} of {claim.pool} is claimed for {claim.owner}, which is not recorded"


def _find_double_claims(evidence: Evidence) -> Iterator[str]:
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    items: dict[tuple[str, str], set[str]] = defaultdict(set)
    for claim in evidence.claims:
        owners[claim.pool, claim.item].add(claim.owner)
        items[claim.pool, claim.owner].add(claim.item)
    for (pool, item), item_owners in owners.items():
        if len(item_owners) > 1:
            yield f"{item} of {pool} is claimed by {_join_names(item_owners)}"
    for (pool, owner), owner_items in items.items():
        if len(owner_items) > 1:
            yield f"{owner} has claimed {_join_names(owner_items)} of {pool}"


def _find_unclaimed_items(evidence: Evidence) -> Iterator[str]:
    """A scarce item that the twin holds must be claimed by the key that holds it."""
    hubs = {
        hub.spec.settings.get("twin.hub") or hub.id: hub.id for hub in evidence.list_documents(Hub)
    }
    owner_by_claim = {(claim.pool, claim.item): claim.owner for claim in evidence.claims}
    for item in evidence.held_items:
        pool = POOL_BY_SCARCE_KIND.get(item.kind)
        if not pool or item.hub not in hubs:
            continue
        owner = owner_by_claim.get((f"{hubs[item.hub]}/{pool}", item.name))
        # A port and a node stand on a host that is claimed under the host's own key.
        expected_owner = item.order if item.kind in ("port", "node") else item.key
        if owner is None:
            yield f"{item.kind} {item.name} is held by {item.key} and claimed by nobody"
        elif owner != expected_owner and not owner.startswith(expected_owner + "/"):
            yield f"{item.kind} {item.name} is held by {item.key} and claimed by {owner}"


def _find_double_holders(evidence: Evidence) -> Iterator[str]:
    """Walks back through the twin's history: two keys may never hold the same name at the same time."""
    holders: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    reported = set()
    for item, change in _walk_history_back(evidence):
        if item.kind not in POOL_BY_SCARCE_KIND:
            continue
        key_counts = holders[item.hub, item.kind, item.name]
        key_counts[item.key] += change
        holding_keys = [key for key, count in key_counts.items() if count > 0]
        if len(holding_keys) > 1 and (item.kind, item.name) not in reported:
            reported.add((item.kind, item.name))
            yield f"{item.kind} {item.name} was held by {_join_names(holding_keys)} at once"


def _walk_history_back(evidence: Evidence) -> Iterator[tuple[HeldItem, int]]:
    """The items held now, then every change of the history undone, the last one first."""
    for item in evidence.held_items:
        yield item, +1
    for change in reversed(evidence.history):
        yield change.item, -change.change


# --- I3, I4, I6 ----------------------------------------------------------------------------------


def _find_forgotten_work(evidence: Evidence) -> Iterator[str]:
    unfinished = [("Cluster", cluster.id) for cluster in evidence.list_documents(Cluster)]
    unfinished += [("Hub", hub.id) for hub in evidence.list_documents(Hub)]
    unfinished += [("Leftover", leftover.id) for leftover in evidence.list_documents(Leftover)]
    remote_hubs = {hub.id for hub in evidence.list_documents(Hub) if hub.spec.kubeconfig}
    unfinished += [
        ("Order", order.id)
        for order in evidence.list_documents(Order)
        # The copy of an order that a hub keeps itself is never due; its cluster is.
        if order.status.phase != OrderPhase.DELETED and order.spec.hub not in remote_hubs
    ]
    unfinished += [
        ("Backup", backup.id)
        for backup in evidence.list_documents(Backup)
        if backup.status.state == BackupState.PENDING or backup.metadata.deletion_timestamp
    ]
    for kind, id in unfinished:
        if (kind, id) not in evidence.work:
            yield f"{kind} {id} has not ended and nothing is due for it"


def _find_lost_writes(evidence: Evidence, acknowledged: AcknowledgedWrites) -> Iterator[str]:
    newest: dict[tuple[str, str], int] = {}
    for stored in (*evidence.archive, *evidence.documents):
        object_key = stored.kind, stored.id
        newest[object_key] = max(newest.get(object_key, -1), stored.version)
    for kind, id, version in acknowledged:
        if newest.get((kind, id), -1) < version:
            yield f"{kind} {id} was acknowledged at version {version} and is not there"


def _check_event_log(evidence: Evidence) -> Iterator[str]:
    expected = evidence.first_seq
    for event in evidence.events:
        if event.seq != expected:
            yield f"the log goes from event {expected - 1} to event {event.seq}"
        expected = event.seq + 1
    if expected != evidence.last_seq + 1:
        yield f"the log ends at event {expected - 1}, but {evidence.last_seq} were numbered"
    yield from _check_event_versions(evidence)


def _check_event_versions(evidence: Evidence) -> Iterator[str]:
    """Each version of an object must have its event, in order."""
    last_versions: dict[tuple[str, str], int] = {}
    for event in evidence.events:
        if event.event_type == _SIGNALED:
            continue
        object_key = event.kind, event.id
        previous = last_versions.get(object_key)
        allowed = (previous,) if event.event_type == _DELETED else ()
        if event.event_type == _CREATED:
            allowed, previous = (0,), None
        if previous is not None:
            allowed = (*allowed, previous + 1)
        if allowed and event.version not in allowed:
            yield f"{event.kind} {event.id} goes from version {previous} to {event.version}"
        last_versions[object_key] = event.version
        if event.event_type == _DELETED:
            del last_versions[object_key]
    for stored in evidence.documents:
        last_version = last_versions.get((stored.kind, stored.id))
        if last_version is not None and last_version != stored.version:
            yield f"{stored.kind} {stored.id} is at version {stored.version}, its last event at {last_version}"


# --- I7: deleted is gone -------------------------------------------------------------------------


def _find_remains(evidence: Evidence) -> Iterator[str]:
    live_orders = _items_by_order(evidence)
    leftover_items = _leftover_items_by_order(evidence)
    backups = {backup.id for backup in evidence.list_documents(Backup)}
    for item in evidence.held_items:
        if item.kind == "backup" and item.order in backups:
            continue  # it outlives its cluster
        if item.order in live_orders or _is_listed(
            _item_key_of(item.key), leftover_items.get(item.order, {})
        ):
            continue
        yield f"{item.kind} {item.name} is still there under {item.key}, whose order has ended"
    for claim in evidence.claims:
        order, _, item_key = claim.owner.partition("/")
        if order not in live_orders and not _is_listed(item_key, leftover_items.get(order, {})):
            yield f"{claim.item} of {claim.pool} is still claimed by {claim.owner}, which has ended"
    owners = {cluster.id for cluster in evidence.list_documents(Cluster)}
    owners |= {leftover_owner(order) for order in leftover_items}
    for pool, owner, amount in evidence.reservations:
        if owner not in owners:
            yield f"{amount} of {pool} are still reserved for {owner}, which has ended"
    yield from _find_false_receipts(evidence)


def _find_false_receipts(evidence: Evidence) -> Iterator[str]:
    """A receipt must list as left what its Leftover had when it was created."""
    leftover_keys: dict[str, set[str]] = {}
    ended_orders: set[str] = set()  # what is swept up after the end is in no receipt
    for event in evidence.events:
        if event.kind == "Order" and event.event_type == _DELETED:
            ended_orders.add(event.id)
        elif (
            event.kind == "Leftover"
            and event.event_type == _CREATED
            and event.id not in ended_orders
        ):
            leftover = event.decode(Leftover)
            leftover_keys[leftover.spec.order] = {
                item.key
                for item in leftover.status.items
                if item.kind in (*TWIN_KIND_BY_ITEM_KIND, DELETE_HOOK)
            }
    for order in (*evidence.list_archived(Order), *evidence.list_documents(Order)):
        if order.status.phase != OrderPhase.DELETED:
            continue
        receipt_keys = {line.key for line in order.status.receipt.left}
        if receipt_keys != leftover_keys.get(order.id, set()) and evidence.first_seq == 1:
            yield f"the receipt of {order.id} lists {_join_names(receipt_keys) or 'nothing'} as left, not what is"


# --- I8: the net effect is one -------------------------------------------------------------------


def _check_net_effects(evidence: Evidence) -> Iterator[str]:
    live_orders = _items_by_order(evidence)
    net_counts = {
        (effect.kind, effect.key): effect.applied - effect.removed for effect in evidence.effects
    }
    recorded_effects = set()
    for order, items in live_orders.items():
        for item in items.values():
            if item.kind not in TWIN_KIND_BY_ITEM_KIND:
                continue
            effect_key = TWIN_KIND_BY_ITEM_KIND[item.kind], f"{order}/{item.key}"
            recorded_effects.add(effect_key)
            count = net_counts.get(effect_key, 0)
            if item.state == ItemState.PRESENT and count != 1:
                yield f"{effect_key[1]} is recorded as present and is there {count} times"
            elif count not in (0, 1):
                yield f"{effect_key[1]} is there {count} times"
    for (kind, key), count in net_counts.items():
        order = key.partition("/")[0]
        if order in live_orders and (kind, key) not in recorded_effects and count != 0:
            yield f"{kind} {key} is there {count} times and not recorded"
        elif order not in live_orders and count not in (0, 1):
            yield f"{kind} {key} is there {count} times after its order has ended"
    yield from _find_past_doubles(evidence)


def _find_past_doubles(evidence: Evidence) -> Iterator[str]:
    """Walks back through the twin's history: a key may never have had two items of its kind at the same time."""
    count: Counter[tuple[str, str]] = Counter()
    reported = set()
    for item, change in _walk_history_back(evidence):
        effect_key = item.kind, item.key
        count[effect_key] += change
        if count[effect_key] > 1 and effect_key not in reported:
            reported.add(effect_key)
            yield f"{item.kind} {item.key} was made again while it was there"


# --- shared --------------------------------------------------------------------------------------


def _items_by_order(evidence: Evidence) -> dict[str, dict[str, Item]]:
    """The items of each order that has not ended, by order and key."""
    return {
        order.id: {item.key: item for item in order.status.items}
        for order in evidence.list_documents(Order)
        if order.status.phase != OrderPhase.DELETED
    }


def _leftover_items_by_order(evidence: Evidence) -> dict[str, dict[str, Item]]:
    """The items of each order's Leftovers, by order and key."""
    items_by_order: dict[str, dict[str, Item]] = {}
    for leftover in evidence.list_documents(Leftover):
        items = {item.key: item for item in leftover.status.items}
        items_by_order.setdefault(leftover.spec.order, {}).update(items)
    return items_by_order


def _item_key_of(key: str) -> str:
    return key.partition("/")[2]


def _is_listed(item_key: str, items: Mapping[str, Item]) -> bool:
    """Whether `item_key` is the key of an item, or below one."""
    return item_key in items or any(item_key.startswith(f"{key}/") for key in items)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


_RULES: Mapping[str, Callable[[Evidence], Iterator[str]]] = {
    "I1": _check_single_owner,
    "I2": find_over_capacity,
    "I3": _find_forgotten_work,
    "I6": _check_event_log,
    "I7": _find_remains,
    "I8": _check_net_effects,
}
