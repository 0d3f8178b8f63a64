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
from boatyard.orderbook.kube.claims import is_below, order_of, owner_of
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.orderbook.port import RETRY

Object = dict[str, Any]
Key = tuple[str, str]  # kind and id: ("Order", "c-1")
OnChange = Callable[[Key], None]  # the object changed in a way that needs a pass, or was deleted
OnGone = Callable[[Object], None]  # an order that was deleted, as it was last seen

_MOST_GIVEN_BACK = 10_000
_LONGEST_PAUSE = 5.0  # between tries while the API server is away
# A watch ends and is resumed this often, so one that is silent for longer has lost its connection without an error.
_WATCH_SECONDS, _SILENCE_SECONDS = 25, 35.0


class HubView:
    """The view of one hub. The caller runs each of `informers` in a task, and waits for `synced`."""

    def __init__(
        self,
        client: KubeClient,
        place: Place,
        *,
        system_namespace: str,
        on_change: OnChange = lambda key: None,
    ) -> None:
        self.place = place
        self.on_change = on_change
        self.on_gone: OnGone = lambda item: None
        self._names: dict[Key, str] = {}  # to the informer's key
        self._own: dict[Key, Object] = {}  # our own writes that the watch has not reported yet
        self._stamps: dict[Key, object] = {}
        self._claims: dict[str, dict[str, Object]] = {}  # by order, by name
        self._taken: set[str] = set()
        self._given_back: dict[
            str, None
        ] = {}  # uids of claims we deleted; the watch may lag behind
        limits: Any = {
            "longest_pause": _LONGEST_PAUSE,
            "seconds": _WATCH_SECONDS,
            "silence": _SILENCE_SECONDS,
        }
        namespace = place.one_namespace
        self._informers = {
            "Order": Informer(
                *(client, CLUSTER_ORDERS, namespace),
                shape=lambda item: self._shaped("Order", item),
                on_change=lambda name, old, new: self._heard("Order", name, old, new),
                **limits,
            ),
            "Leftover": Informer(
                *(client, LEFTOVERS, namespace),
                shape=lambda item: self._shaped("Leftover", item),
                on_change=lambda name, old, new: self._heard("Leftover", name, old, new),
                **limits,
            ),
        }
        self._claims_informer = Informer(
            *(client, CLAIMS, system_namespace),
            shape=_small_claim,
            on_change=lambda name, old, new: self._heard_claim(old, new),
            **limits,
        )

    @property
    def informers(self) -> Sequence[Informer]:
        return (*self._informers.values(), self._claims_informer)

    async def synced(self) -> None:
        """Returns once every kind has been listed completely."""
        for informer in self.informers:
            await informer.synced.wait()

    @property
    def problem(self) -> str:
        """Why the view may be out of date; empty while all is well."""
        return next((informer.problem for informer in self.informers if informer.problem), "")

    def phases(self) -> Mapping[str, int]:
        """How many orders are in each of OSAC's phases."""
        return Counter(item["phase"] or "None" for _, item in self._informers["Order"].items())

    # --- objects ---------------------------------------------------------------------------------

    def all_keys(self) -> Iterator[Key]:
        return iter(list(self._names))

    def order_object(self, order_id: str) -> Object | None:
        return self.object(("Order", order_id))

    def leftover_object(self, leftover_id: str) -> Object | None:
        return self.object(("Leftover", leftover_id))

    def object(self, key: Key) -> Object | None:
        """The object as it is now; the caller may change it. None when there is none."""
        own = self._own.get(key)
        if own is not None:
            return msgspec.json.decode(own["packed"], type=dict[str, Any])
        name = self._names.get(key)
        entry = self._informers[key[0]].get(name) if name is not None else None
        return None if entry is None else msgspec.json.decode(entry["packed"], type=dict[str, Any])

    def tenant(self, key: Key) -> str:
        entry = self._own.get(key) or self._informers[key[0]].get(self._names.get(key, ""))
        return str(entry["tenant"]) if entry is not None else ""

    def wrote(self, kind: str, item: Mapping[str, Any]) -> None:
        """Takes in the object as our own write left it, or as it was just read from the API server."""
        packed = self._packed(kind, dict(item))
        key = (kind, packed["id"])
        self._stamps[key] = packed["stamp"]
        name = f"{packed['metadata']['namespace']}/{packed['metadata']['name']}"
        self._names.setdefault(key, name)
        watched_entry = self._informers[kind].get(name)
        if watched_entry is None or _version(watched_entry) < _version(packed):
            self._own[key] = packed

    def keep_in_mind(self, kind: str, item: Mapping[str, Any]) -> None:
        """Takes in an object whose status was not written. It is lost when this process ends or the object changes."""
        packed = self._packed(kind, dict(item))
        key = (kind, packed["id"])
        name = self._names.get(key)
        watched_entry = self._informers[kind].get(name) if name is not None else None
        if watched_entry is not None and _version(watched_entry) <= _version(packed):
            self._own[key] = packed

    def is_gone(self, key: Key) -> None:
        """Removes an object that the API server says does not exist; the watch will report that too."""
        self._forget(key, self._informers[key[0]].get(self._names.get(key, "")))

    def _forget(self, key: Key, watched_entry: Object | None) -> None:
        """Removes an object; `watched_entry` is the watch's last copy of it. Calls `on_gone` once per order."""
        last_entry = self._own.pop(key, None) or watched_entry
        was_listed = self._names.pop(key, None) is not None
        self._stamps.pop(key, None)
        if was_listed and last_entry is not None and key[0] == "Order":
            self.on_gone(msgspec.json.decode(last_entry["packed"], type=dict[str, Any]))

    def _shaped(self, kind: str, item: Object) -> Object:
        """The entry to store for an object. Our own writes come back by the watch: those were packed already."""
        own = self._own.get((kind, _identify(kind, item, self.place)))
        if own is None or own["metadata"]["uid"] != item["metadata"].get("uid"):
            return self._packed(kind, item)
        if own["metadata"]["resourceVersion"] != item["metadata"].get("resourceVersion"):
            return self._packed(kind, item)
        return own

    def _packed(self, kind: str, item: Object) -> Object:
        item.setdefault("metadata", {}).pop("managedFields", None)
        metadata = item["metadata"]
        return {
            "metadata": {
                name: metadata.get(name) for name in ("namespace", "name", "resourceVersion", "uid")
            },
            "id": _identify(kind, item, self.place),
            "tenant": _tenant(kind, item, self.place),
            "stamp": _stamp(kind, metadata),
            "phase": (item.get("status") or {}).get("phase") or "",
            "packed": msgspec.json.encode(item),
        }

    def _heard(self, kind: str, name: str, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new["id"] != old["id"]):
            key = (kind, old["id"])
            if self._names.get(key) == name:
                if new is not None:
                    self._own.pop(key, None)  # it has another id now and still exists
                self._forget(key, old if new is None else None)
                self.on_change(key)
        if new is None:
            return
        key = (kind, new["id"])
        self._names[key] = name
        own = self._own.get(key)
        if own is not None and _version(own) <= _version(new):
            del self._own[key]
        elif own is not None:
            return  # older than what we wrote since
        if self._stamps.get(key) != new["stamp"]:
            self._stamps[key] = new["stamp"]
            self.on_change(key)

    # --- claims ----------------------------------------------------------------------------------

    def of(self, owner: str) -> Sequence[Object]:
        """The claims of this owner and of owners below it."""
        of_order = self._claims.get(order_of(owner), {})
        return [claim for claim in of_order.values() if is_below(owner_of(claim), owner)]

    def holds(self, name: str) -> bool:
        return name in self._taken

    def made(self, claim: Object) -> None:
        name = claim["metadata"]["name"]
        self._taken.add(name)
        self._claims.setdefault(order_of(owner_of(claim)), {})[name] = _small_claim(claim)

    def gone(self, claim: Object) -> None:
        self._given_back[claim["metadata"]["uid"]] = None
        if len(self._given_back) > _MOST_GIVEN_BACK:
            del self._given_back[next(iter(self._given_back))]
        self._take_off(claim)

    def _take_off(self, claim: Object) -> None:
        name = claim["metadata"]["name"]
        order = order_of(owner_of(claim))
        of_order = self._claims.get(order, {})
        current = of_order.get(name)
        if current is None or current["metadata"]["uid"] != claim["metadata"]["uid"]:
            return
        self._taken.discard(name)
        del of_order[name]
        if not of_order:
            del self._claims[order]

    def _heard_claim(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._take_off(old)
        if new is None:
            self._given_back.pop(old["metadata"]["uid"] if old else "", None)
        elif (
            new["metadata"]["uid"] not in self._given_back
        ):  # else a late event of a claim that we deleted
            self.made(new)


def _small_claim(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "metadata": {name: metadata.get(name) for name in ("name", "resourceVersion", "uid")},
        "spec": {name: claim["spec"][name] for name in ("pool", "item", "owner")},
    }


def _identify(kind: str, item: Object, place: Place) -> str:
    return (
        from_kube.order_id(item, place) if kind == "Order" else leftovers.leftover_id(item, place)
    )


def _stamp(kind: str, metadata: Mapping[str, Any]) -> object:
    """The parts of an object whose change needs a pass. Not the status: we write that ourselves."""
    if kind == "Leftover":
        return metadata.get("uid")
    annotations = metadata.get("annotations") or {}
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        tuple(sorted(metadata.get("finalizers") or ())),
        tuple(annotations.get(name) for name in (RETRY, hub_names.MANAGEMENT_STATE)),
    )


def _tenant(kind: str, item: Mapping[str, Any], place: Place) -> str:
    if kind == "Order":
        return from_kube.tenant_of(item, place)
    return str((item.get("spec") or {}).get("tenant") or "")


def _version(item: Mapping[str, Any]) -> int:
    """The resource version as a number; those of one kind are comparable."""
    return int(item["metadata"]["resourceVersion"])
