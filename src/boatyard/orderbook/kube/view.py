"""A copy of a hub's orders, leftovers and claims, kept up to date by watches. Used by the hub's queue and order book.

Our own writes are visible here at once, before the watch reports them. Objects are stored as JSON: as Python objects
five thousand of them would take ten times the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer
from boatyard.model import hub_names
from boatyard.orderbook.kube.claims import get_claim_owner, get_order_id, is_below
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.port import RETRY_ANNOTATION

Object = dict[str, Any]
Key = tuple[str, str]  # kind and id: ("Order", "c-1")
OnChange = Callable[[Key], None]  # the object changed in a way that needs a pass, or was deleted
OnGone = Callable[[Object], None]  # an order that was deleted, as it was last seen

_MOST_DELETED_CLAIMS = 10_000
_LONGEST_PAUSE = 5.0  # between tries while the API server is away
# A watch ends and is resumed this often, so one that is silent for longer has lost its connection without an error.
_WATCH_SECONDS, _SILENCE_SECONDS = 25, 35.0


class HubView:
    """The view of one hub. The caller runs each of `informers` in a task, and waits for `synced`."""

    def __init__(
        self,
        client: KubeClient,
        order_settings: HubOrderSettings,
        *,
        system_namespace: str,
        on_change: OnChange = lambda key: None,
    ) -> None:
        self.order_settings = order_settings
        self.on_change = on_change
        self.on_gone: OnGone = lambda item: None
        self._informer_keys: dict[Key, str] = {}  # to the informer's key
        self._own_writes: dict[
            Key, Object
        ] = {}  # our own writes that the watch has not reported yet
        self._stamps: dict[Key, object] = {}
        self._claims: dict[str, dict[str, Object]] = {}  # by order, by name
        self._claim_names: set[str] = set()
        self._deleted_claim_uids: dict[
            str, None
        ] = {}  # uids of claims we deleted; the watch may lag behind
        limits: Any = {
            "longest_pause": _LONGEST_PAUSE,
            "seconds": _WATCH_SECONDS,
            "silence": _SILENCE_SECONDS,
        }
        namespace = order_settings.shared_namespace
        self._informers = {
            "Order": Informer(
                *(client, CLUSTER_ORDERS, namespace),
                shape=lambda item: self._make_entry("Order", item),
                on_change=lambda name, old, new: self._handle_change("Order", name, old, new),
                **limits,
            ),
            "Leftover": Informer(
                *(client, LEFTOVERS, namespace),
                shape=lambda item: self._make_entry("Leftover", item),
                on_change=lambda name, old, new: self._handle_change("Leftover", name, old, new),
                **limits,
            ),
        }
        self._claims_informer = Informer(
            *(client, CLAIMS, system_namespace),
            shape=_compact_claim,
            on_change=lambda name, old, new: self._handle_claim_change(old, new),
            **limits,
        )

    @property
    def informers(self) -> Sequence[Informer]:
        return (*self._informers.values(), self._claims_informer)

    async def wait_until_synced(self) -> None:
        """Returns once every kind has been listed completely."""
        for informer in self.informers:
            await informer.synced.wait()

    @property
    def problem(self) -> str:
        """Why the view may be out of date; empty while all is well."""
        return next((informer.problem for informer in self.informers if informer.problem), "")

    def count_phases(self) -> Mapping[str, int]:
        """How many orders are in each of OSAC's phases."""
        return Counter(item["phase"] or "None" for _, item in self._informers["Order"].items())

    # --- objects ---------------------------------------------------------------------------------

    def list_keys(self) -> Iterator[Key]:
        return iter(list(self._informer_keys))

    def get_order_object(self, order_id: str) -> Object | None:
        return self.get_object(("Order", order_id))

    def get_leftover_object(self, leftover_id: str) -> Object | None:
        return self.get_object(("Leftover", leftover_id))

    def get_object(self, key: Key) -> Object | None:
        """The object as it is now; the caller may change it. None when there is none."""
        own = self._own_writes.get(key)
        if own is not None:
            return msgspec.json.decode(own["packed"], type=dict[str, Any])
        name = self._informer_keys.get(key)
        entry = self._informers[key[0]].get(name) if name is not None else None
        return None if entry is None else msgspec.json.decode(entry["packed"], type=dict[str, Any])

    def get_tenant(self, key: Key) -> str:
        entry = self._own_writes.get(key) or self._informers[key[0]].get(
            self._informer_keys.get(key, "")
        )
        return str(entry["tenant"]) if entry is not None else ""

    def record_write(self, kind: str, item: Mapping[str, Any]) -> None:
        """Takes in the object as our own write left it, or as it was just read from the API server."""
        packed = self._pack_object(kind, dict(item))
        key = (kind, packed["id"])
        self._stamps[key] = packed["stamp"]
        name = f"{packed['metadata']['namespace']}/{packed['metadata']['name']}"
        self._informer_keys.setdefault(key, name)
        watched_entry = self._informers[kind].get(name)
        if watched_entry is None or _get_resource_version(watched_entry) < _get_resource_version(
            packed
        ):
            self._own_writes[key] = packed

    def record_unwritten(self, kind: str, item: Mapping[str, Any]) -> None:
        """Takes in an object whose status was not written. It is lost when this process ends or the object changes."""
        packed = self._pack_object(kind, dict(item))
        key = (kind, packed["id"])
        name = self._informer_keys.get(key)
        watched_entry = self._informers[kind].get(name) if name is not None else None
        if watched_entry is not None and _get_resource_version(
            watched_entry
        ) <= _get_resource_version(packed):
            self._own_writes[key] = packed

    def record_deletion(self, key: Key) -> None:
        """Removes an object that the API server says does not exist; the watch will report that too."""
        self._remove_object(key, self._informers[key[0]].get(self._informer_keys.get(key, "")))

    def _remove_object(self, key: Key, watched_entry: Object | None) -> None:
        """Removes an object; `watched_entry` is the watch's last copy of it. Calls `on_gone` once per order."""
        last_entry = self._own_writes.pop(key, None) or watched_entry
        was_listed = self._informer_keys.pop(key, None) is not None
        self._stamps.pop(key, None)
        if was_listed and last_entry is not None and key[0] == "Order":
            self.on_gone(msgspec.json.decode(last_entry["packed"], type=dict[str, Any]))

    def _make_entry(self, kind: str, item: Object) -> Object:
        """The entry to store for an object. Our own writes come back by the watch: those were packed already."""
        own = self._own_writes.get((kind, _read_id(kind, item, self.order_settings)))
        if own is None or own["metadata"]["uid"] != item["metadata"].get("uid"):
            return self._pack_object(kind, item)
        if own["metadata"]["resourceVersion"] != item["metadata"].get("resourceVersion"):
            return self._pack_object(kind, item)
        return own

    def _pack_object(self, kind: str, item: Object) -> Object:
        item.setdefault("metadata", {}).pop("managedFields", None)
        metadata = item["metadata"]
        return {
            "metadata": {
                name: metadata.get(name) for name in ("namespace", "name", "resourceVersion", "uid")
            },
            "id": _read_id(kind, item, self.order_settings),
            "tenant": _tenant(kind, item, self.order_settings),
            "stamp": _make_change_stamp(kind, metadata),
            "phase": (item.get("status") or {}).get("phase") or "",
            "packed": msgspec.json.encode(item),
        }

    def _handle_change(self, kind: str, name: str, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new["id"] != old["id"]):
            key = (kind, old["id"])
            if self._informer_keys.get(key) == name:
                if new is not None:
                    self._own_writes.pop(key, None)  # it has another id now and still exists
                self._remove_object(key, old if new is None else None)
                self.on_change(key)
        if new is None:
            return
        key = (kind, new["id"])
        self._informer_keys[key] = name
        own = self._own_writes.get(key)
        if own is not None and _get_resource_version(own) <= _get_resource_version(new):
            del self._own_writes[key]
        elif own is not None:
            return  # older than what we wrote since
        if self._stamps.get(key) != new["stamp"]:
            self._stamps[key] = new["stamp"]
            self.on_change(key)

    # --- claims ----------------------------------------------------------------------------------

    def list_claims(self, owner: str) -> Sequence[Object]:
        """The claims of this owner and of owners below it."""
        of_order = self._claims.get(get_order_id(owner), {})
        return [claim for claim in of_order.values() if is_below(get_claim_owner(claim), owner)]

    def has_claim(self, name: str) -> bool:
        return name in self._claim_names

    def add_claim(self, claim: Object) -> None:
        name = claim["metadata"]["name"]
        self._claim_names.add(name)
        self._claims.setdefault(get_order_id(get_claim_owner(claim)), {})[name] = _compact_claim(
            claim
        )

    def remove_claim(self, claim: Object) -> None:
        self._deleted_claim_uids[claim["metadata"]["uid"]] = None
        if len(self._deleted_claim_uids) > _MOST_DELETED_CLAIMS:
            del self._deleted_claim_uids[next(iter(self._deleted_claim_uids))]
        self._remove_claim_entry(claim)

    def _remove_claim_entry(self, claim: Object) -> None:
        name = claim["metadata"]["name"]
        order = get_order_id(get_claim_owner(claim))
        of_order = self._claims.get(order, {})
        current = of_order.get(name)
        if current is None or current["metadata"]["uid"] != claim["metadata"]["uid"]:
            return
        self._claim_names.discard(name)
        del of_order[name]
        if not of_order:
            del self._claims[order]

    def _handle_claim_change(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._remove_claim_entry(old)
        if new is None:
            self._deleted_claim_uids.pop(old["metadata"]["uid"] if old else "", None)
        elif (
            new["metadata"]["uid"] not in self._deleted_claim_uids
        ):  # else a late event of a claim that we deleted
            self.add_claim(new)


def _compact_claim(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "metadata": {name: metadata.get(name) for name in ("name", "resourceVersion", "uid")},
        "spec": {name: claim["spec"][name] for name in ("pool", "item", "owner")},
    }


def _read_id(kind: str, item: Object, order_settings: HubOrderSettings) -> str:
    return (
        from_kube.read_order_id(item, order_settings)
        if kind == "Order"
        else leftovers.read_leftover_id(item, order_settings)
    )


def _make_change_stamp(kind: str, metadata: Mapping[str, Any]) -> object:
    """The parts of an object whose change needs a pass. Not the status: we write that ourselves."""
    if kind == "Leftover":
        return metadata.get("uid")
    annotations = metadata.get("annotations") or {}
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        tuple(sorted(metadata.get("finalizers") or ())),
        tuple(annotations.get(name) for name in (RETRY_ANNOTATION, hub_names.MANAGEMENT_STATE)),
    )


def _tenant(kind: str, item: Mapping[str, Any], order_settings: HubOrderSettings) -> str:
    if kind == "Order":
        return from_kube.read_tenant(item, order_settings)
    return str((item.get("spec") or {}).get("tenant") or "")


def _get_resource_version(item: Mapping[str, Any]) -> int:
    """The resource version as a number; those of one kind are comparable."""
    return int(item["metadata"]["resourceVersion"])
