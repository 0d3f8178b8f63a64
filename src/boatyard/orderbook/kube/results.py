"""Writes the changes of a reconcile pass to a Kubernetes hub. Called by the hub's queue.

In the ledger all changes of a pass are one transaction. Here they are separate requests, sorted so that a crash between
any two of them loses and leaks nothing: a Leftover is written before its order drops the items in it; a claim is
deleted before the order forgets the item; the finalizer is removed last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from boatyard.ledger.changes import Archive, Change, EventNote, Insert, Replace, Unclaim
from boatyard.model import hub_names
from boatyard.model.errors import Conflict, NotFound
from boatyard.model.generated.boatyard import NO_CREDENTIALS, Leftover, Order, OrderPhase
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.mapping import kube_json
from boatyard.orderbook.kube.mapping.from_kube import CREDENTIALS_MASK
from boatyard.orderbook.kube.objects import HubObjects, has_finalizer
from boatyard.orderbook.kube.view import HubView, Key

Object = dict[str, Any]
ObjectMapping = Mapping[str, Any]
PublishNote = Callable[
    [ObjectMapping, EventNote], None
]  # publishes a note about an object, for people; may be lost

_DELETED_PHASE = kube_json.make_enum_prefix(OrderPhase) + OrderPhase.DELETED.name
_NEXT_LOOK_FIELD = kube_json.to_camel_case("next_look")
_DEFERRED_FIELDS = (_NEXT_LOOK_FIELD, kube_json.to_camel_case("tries"))
_LONGEST_DEFERRAL = timedelta(
    minutes=1
)  # tries and next looks in the status may be this much out of date


def drop_note(item: ObjectMapping, note: EventNote) -> None:
    """Drops the note."""


class HubResults:
    """Writes results to a hub. Every write is guarded by the version the pass has read, and by `check` (LeaseLost)."""

    def __init__(
        self,
        *,
        view: HubView,
        objects: HubObjects,
        claims: HubClaims,
        check: Callable[[], None],
        publish_note: PublishNote = drop_note,
    ) -> None:
        self._view = view
        self._objects = objects
        self._claims = claims
        self._check_lease = check
        self._publish_note = publish_note
        self._objects_read: dict[
            Key, Object
        ] = {}  # what the passes under way have read or written last
        self._deferred_since: dict[
            Key, datetime
        ] = {}  # when the first unwritten small change was made

    def read_for_pass(self, key: Key) -> Object | None:
        """The object for a pass. What the pass writes is guarded by its version."""
        item = self._view.get_object(key)
        if item is not None:
            self._objects_read[key] = item
        return item

    def end_pass(self, key: Key) -> None:
        """Ends the pass: forgets what it has read."""
        self._objects_read.pop(key, None)

    async def write_changes(self, key: Key, changes: Sequence[Change], now: datetime) -> None:
        """Writes the changes. Conflict when another write came first: then the object is read again and not written.

        Changes that concern the service alone (reservations, the cluster) are left to the service.
        """
        try:
            await self._write_changes(key, changes, now)
        except Conflict:
            await self._refresh(key)
            raise
        except NotFound:
            self._deferred_since.pop(key, None)
            self._view.record_deletion(
                key
            )  # it was deleted meanwhile: there is nothing to write to

    async def update_finalizer(self, key: Key) -> None:
        """Adds our finalizer to an order that has items, and removes it from an order that has ended."""
        item = self._objects_read.get(key) or self._view.get_object(key)
        if item is None or key[0] != "Order":
            return
        progress = (item.get("status") or {}).get("boatyard") or {}
        is_deleted = progress.get("phase") == _DELETED_PHASE
        if not is_deleted and progress.get("items"):
            await self._ensure_finalizer(item)
        elif is_deleted and _has_our_finalizer(item):
            await self._clear_secrets(item)
            self._check_lease()
            self._deferred_since.pop(key, None)
            updated_item = await self._objects.set_finalizers(
                item, remove=hub_names.OPERATOR_FINALIZER
            )
            if updated_item is None:
                self._view.record_deletion(key)
            else:
                self._view.record_write("Order", updated_item)

    async def _write_changes(self, key: Key, changes: Sequence[Change], now: datetime) -> None:
        for change in changes:
            if isinstance(change, Insert) and isinstance(change.doc, Leftover):
                self._check_lease()
                leftover_item = await self._objects.create_leftover(change.doc)
                if leftover_item is not None:
                    self._view.record_write("Leftover", leftover_item)
        for change in changes:
            if isinstance(change, Unclaim):
                self._check_lease()
                await self._claims.release(change.owner_prefix)
        for change in changes:
            match change:
                case Replace(doc=Order() as order, note=note):
                    await self._replace_order(key, order, note, now)
                case Replace(doc=Leftover() as leftover):
                    self._check_lease()
                    leftover_item = await self._objects.replace_leftover(
                        self._get_read_object(key), leftover
                    )
                    self._record_write(key, leftover_item)
                case Archive(doc=Leftover()):
                    self._check_lease()
                    await self._objects.delete_leftover(self._get_read_object(key))
                    self._view.record_deletion(key)

    async def _replace_order(
        self, key: Key, order: Order, note: EventNote | None, now: datetime
    ) -> None:
        item = await self._ensure_finalizer(self._get_read_object(key))
        self._check_lease()
        if order.status.credentials.kubeconfig not in ("", CREDENTIALS_MASK):
            await self._objects.write_credentials(item, order)
            self._check_lease()
        elif note is None and (quiet := _with_deferred_changes(item, order)) is not None:
            since = self._deferred_since.setdefault(key, now)
            if now - since < _LONGEST_DEFERRAL:
                self._objects_read[key] = quiet
                self._view.record_unwritten(key[0], quiet)
                return
        self._deferred_since.pop(key, None)
        if order.status.phase == OrderPhase.DELETED and not _has_our_finalizer(item):
            await self._clear_secrets(item)  # without our finalizer `settle` does not do it
            self._check_lease()
        item = await self._objects.apply_status(item, order, now)
        self._record_write(key, item)
        if note is not None:
            self._publish_note(item, note)

    async def _ensure_finalizer(self, item: Object) -> Object:
        """Adds our finalizer if it is missing: another tool created the order, or somebody removed it."""
        is_deleting = item["metadata"].get(
            "deletionTimestamp"
        )  # Kubernetes accepts no new finalizer then
        if is_deleting or _has_our_finalizer(item):
            return item
        self._check_lease()
        updated_item = await self._objects.set_finalizers(item, add=hub_names.OPERATOR_FINALIZER)
        if updated_item is None:
            raise NotFound("the order went meanwhile")
        self._view.record_write("Order", updated_item)
        return updated_item

    async def _clear_secrets(self, item: Object) -> None:
        """Deletes the secrets of an order that ends, before its finalizer goes: afterwards nobody can find them."""
        self._check_lease()
        await self._objects.delete_credentials(item)
        if not has_finalizer(item, hub_names.FEEDBACK_FINALIZER):
            await self._objects.delete_inputs(item)

    def _get_read_object(self, key: Key) -> Object:
        item = self._objects_read.get(key)
        if item is None:
            raise NotFound(f"{key[0]} {key[1]} is gone")
        return item

    def _record_write(self, key: Key, item: Object) -> None:
        self._objects_read[key] = item
        self._view.record_write(key[0], item)

    async def _refresh(self, key: Key) -> None:
        """Reads the object again, because the watch has not reported the conflicting write yet."""
        item = self._objects_read.get(key)
        if item is None:
            return
        current_item = await self._objects.read_again(key[0], item)
        if current_item is None:
            self._view.record_deletion(key)
        else:
            self._view.record_write(key[0], current_item)


def _has_our_finalizer(item: ObjectMapping) -> bool:
    return has_finalizer(item, hub_names.OPERATOR_FINALIZER)


def _with_deferred_changes(item: ObjectMapping, order: Order) -> Object | None:
    """The object with the new status, if only the numbers of tries and the next looks differ.

    None when something else differs too, or the object has no status yet.
    """
    old = (item.get("status") or {}).get("boatyard")
    if not old:
        return None
    new = kube_json.dump(msgspec.structs.replace(order.status, credentials=NO_CREDENTIALS))
    if _without_deferred_fields(old) != _without_deferred_fields(new):
        return None
    return {**item, "status": {**item["status"], "boatyard": new}}


def _without_deferred_fields(progress: ObjectMapping) -> Object:
    """The status without what need not be written at once. Whether there is a next look counts; its time does not."""
    steps = [
        {
            **{name: value for name, value in step.items() if name not in _DEFERRED_FIELDS},
            _NEXT_LOOK_FIELD: bool(step.get(_NEXT_LOOK_FIELD)),
        }
        for step in progress.get("steps", ())
    ]
    return {**progress, "steps": steps}
