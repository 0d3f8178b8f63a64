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

from boatyard.ledger.changes import Archive, Change, Insert, Note, Replace, Unclaim
from boatyard.model import hub_names
from boatyard.model.errors import Conflict, NotFound
from boatyard.model.generated.boatyard import NO_CREDENTIALS, Leftover, Order, OrderPhase
from boatyard.orderbook.kube.claims import HubClaims
from boatyard.orderbook.kube.mapping import camel
from boatyard.orderbook.kube.mapping.from_kube import MASK
from boatyard.orderbook.kube.objects import HubObjects, has_finalizer
from boatyard.orderbook.kube.view import HubView, Key

Object = dict[str, Any]
Item = Mapping[str, Any]
Tell = Callable[[Item, Note], None]  # publishes a note about an object, for people; may be lost

_DELETED = camel.enum_prefix(OrderPhase) + OrderPhase.DELETED.name
_NEXT_LOOK = camel.camel("next_look")
_QUIET = (_NEXT_LOOK, camel.camel("tries"))
_QUIET_FOR = timedelta(minutes=1)  # tries and next looks in the status may be this much out of date


def nobody(item: Item, note: Note) -> None:
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
        tell: Tell = nobody,
    ) -> None:
        self._view = view
        self._objects = objects
        self._claims = claims
        self._check = check
        self._tell = tell
        self._read: dict[Key, Object] = {}  # what the passes under way have read or written last
        self._quiet_since: dict[
            Key, datetime
        ] = {}  # when the first unwritten small change was made

    def read(self, key: Key) -> Object | None:
        """The object for a pass. What the pass writes is guarded by its version."""
        item = self._view.object(key)
        if item is not None:
            self._read[key] = item
        return item

    def end(self, key: Key) -> None:
        """Ends the pass: forgets what it has read."""
        self._read.pop(key, None)

    async def carry_out(self, key: Key, changes: Sequence[Change], now: datetime) -> None:
        """Writes the changes. Conflict when another write came first: then the object is read again and not written.

        Changes that concern the service alone (reservations, the cluster) are left to the service.
        """
        try:
            await self._carry_out(key, changes, now)
        except Conflict:
            await self._refresh(key)
            raise
        except NotFound:
            self._quiet_since.pop(key, None)
            self._view.is_gone(key)  # it was deleted meanwhile: there is nothing to write to

    async def settle(self, key: Key) -> None:
        """Adds our finalizer to an order that has items, and removes it from an order that has ended."""
        item = self._read.get(key) or self._view.object(key)
        if item is None or key[0] != "Order":
            return
        progress = (item.get("status") or {}).get("boatyard") or {}
        is_deleted = progress.get("phase") == _DELETED
        if not is_deleted and progress.get("items"):
            await self._hold(item)
        elif is_deleted and _is_held(item):
            await self._clear_secrets(item)
            self._check()
            self._quiet_since.pop(key, None)
            updated_item = await self._objects.set_finalizers(
                item, remove=hub_names.OPERATOR_FINALIZER
            )
            if updated_item is None:
                self._view.is_gone(key)
            else:
                self._view.wrote("Order", updated_item)

    async def _carry_out(self, key: Key, changes: Sequence[Change], now: datetime) -> None:
        for change in changes:
            if isinstance(change, Insert) and isinstance(change.doc, Leftover):
                self._check()
                leftover_item = await self._objects.create_leftover(change.doc)
                if leftover_item is not None:
                    self._view.wrote("Leftover", leftover_item)
        for change in changes:
            if isinstance(change, Unclaim):
                self._check()
                await self._claims.release(change.owner_prefix)
        for change in changes:
            match change:
                case Replace(doc=Order() as order, note=note):
                    await self._replace_order(key, order, note, now)
                case Replace(doc=Leftover() as leftover):
                    self._check()
                    leftover_item = await self._objects.replace_leftover(
                        self._before(key), leftover
                    )
                    self._wrote(key, leftover_item)
                case Archive(doc=Leftover()):
                    self._check()
                    await self._objects.delete_leftover(self._before(key))
                    self._view.is_gone(key)

    async def _replace_order(
        self, key: Key, order: Order, note: Note | None, now: datetime
    ) -> None:
        item = await self._hold(self._before(key))
        self._check()
        if order.status.credentials.kubeconfig not in ("", MASK):
            await self._objects.write_credentials(item, order)
            self._check()
        elif note is None and (quiet := _with_quiet_news(item, order)) is not None:
            since = self._quiet_since.setdefault(key, now)
            if now - since < _QUIET_FOR:
                self._read[key] = quiet
                self._view.keep_in_mind(key[0], quiet)
                return
        self._quiet_since.pop(key, None)
        if order.status.phase == OrderPhase.DELETED and not _is_held(item):
            await self._clear_secrets(item)  # without our finalizer `settle` does not do it
            self._check()
        item = await self._objects.apply_status(item, order, now)
        self._wrote(key, item)
        if note is not None:
            self._tell(item, note)

    async def _hold(self, item: Object) -> Object:
        """Adds our finalizer if it is missing: another tool created the order, or somebody removed it."""
        is_deleting = item["metadata"].get(
            "deletionTimestamp"
        )  # Kubernetes accepts no new finalizer then
        if is_deleting or _is_held(item):
            return item
        self._check()
        updated_item = await self._objects.set_finalizers(item, add=hub_names.OPERATOR_FINALIZER)
        if updated_item is None:
            raise NotFound("the order went meanwhile")
        self._view.wrote("Order", updated_item)
        return updated_item

    async def _clear_secrets(self, item: Object) -> None:
        """Deletes the secrets of an order that ends, before its finalizer goes: afterwards nobody can find them."""
        self._check()
        await self._objects.delete_credentials(item)
        if not has_finalizer(item, hub_names.FEEDBACK_FINALIZER):
            await self._objects.delete_inputs(item)

    def _before(self, key: Key) -> Object:
        item = self._read.get(key)
        if item is None:
            raise NotFound(f"{key[0]} {key[1]} is gone")
        return item

    def _wrote(self, key: Key, item: Object) -> None:
        self._read[key] = item
        self._view.wrote(key[0], item)

    async def _refresh(self, key: Key) -> None:
        """Reads the object again, because the watch has not reported the conflicting write yet."""
        item = self._read.get(key)
        if item is None:
            return
        current_item = await self._objects.get(key[0], item)
        if current_item is None:
            self._view.is_gone(key)
        else:
            self._view.wrote(key[0], current_item)


def _is_held(item: Item) -> bool:
    return has_finalizer(item, hub_names.OPERATOR_FINALIZER)


def _with_quiet_news(item: Item, order: Order) -> Object | None:
    """The object with the new status, if only the numbers of tries and the next looks differ.

    None when something else differs too, or the object has no status yet.
    """
    old = (item.get("status") or {}).get("boatyard")
    if not old:
        return None
    new = camel.dump(msgspec.structs.replace(order.status, credentials=NO_CREDENTIALS))
    if _loud(old) != _loud(new):
        return None
    return {**item, "status": {**item["status"], "boatyard": new}}


def _loud(progress: Item) -> Object:
    """The status without what need not be written at once. Whether there is a next look counts; its time does not."""
    steps = [
        {
            **{name: value for name, value in step.items() if name not in _QUIET},
            _NEXT_LOOK: bool(step.get(_NEXT_LOOK)),
        }
        for step in progress.get("steps", ())
    ]
    return {**progress, "steps": steps}
