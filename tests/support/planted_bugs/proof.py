"""Six bugs, each applied inside the workers of the proof, which must find it.

Named by `Options(plant="tests.support.planted_bugs.proof:…")`; never by anything a user can type.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from boatyard.engine import worker
from boatyard.ledger.changes import Change, Replace, Unclaim
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Conflict, LeaseLost
from boatyard.model.generated.boatyard import Item, ItemState, Order, Step
from boatyard.orderbook.embedded import EmbeddedOrderBook
from boatyard.resources.orders import plan, progress


def effect_without_its_key() -> None:
    """Which host stands for a key is known to one process only: the next one takes another host for it."""
    claim = EmbeddedOrderBook.claim

    async def forgetful(
        self: EmbeddedOrderBook, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        if pool.endswith("/hosts"):
            owner = f"{owner}/{os.getpid()}"
        return await claim(self, pool, candidates, owner, now=now)

    EmbeddedOrderBook.claim = forgetful  # type: ignore[method-assign]


def release_of_finished_steps_only() -> None:
    """A deletion forgets what was planned and not yet confirmed."""
    replan = plan.replan

    def hasty(order: Order, *rest: Any, **how: Any) -> tuple[Item, ...]:
        items = replan(order, *rest, **how)
        if order.metadata.deletion_timestamp is None:
            return items
        confirmed = {i.key for i in order.status.items if i.state != ItemState.PLANNED}
        return tuple(item for item in items if item.key in confirmed)

    plan.replan = hasty


def claim_forgotten() -> None:
    """What was claimed is never given back."""
    commit = Ledger.commit

    async def greedy(self: Ledger, changes: Sequence[Change], **how: Any) -> None:
        kept = [change for change in changes if not isinstance(change, Unclaim)]
        await commit(self, kept, **how)

    Ledger.commit = greedy  # type: ignore[method-assign]


def stale_write_accepted() -> None:
    """Neither the token nor the version is looked at: the last to write is right."""
    commit = Ledger.commit

    async def careless(self: Ledger, changes: Sequence[Change], **how: Any) -> None:
        try:
            await commit(self, changes, **how)
        except Conflict:
            fresh = [await _at_stored_version(self, change) for change in changes]
            try:
                await commit(self, fresh, **how)
            except LeaseLost:
                await commit(self, fresh, now=how["now"])

    Ledger.commit = careless  # type: ignore[method-assign]


async def _at_stored_version(ledger: Ledger, change: Change) -> Change:
    if not isinstance(change, Replace):
        return change
    stored = await ledger.documents.get(type(change.doc), change.doc.id)
    assert stored is not None
    metadata = msgspec.structs.replace(change.doc.metadata, version=stored.metadata.version)
    return Replace(msgspec.structs.replace(change.doc, metadata=metadata), change.note)  # type: ignore[type-var]


def refused_retried() -> None:
    """A step that was refused is tried again like any other."""

    def stubborn(step: Step | None, now: datetime) -> bool:
        return step is None or step.next_look is None or step.next_look <= now

    progress.can_try_step = stubborn


def hint_as_the_only_trigger() -> None:
    """Nobody looks for work unless told that there is some."""

    async def trusting(self: worker.Worker, stop: asyncio.Event) -> None:
        await worker._wait_for_first(self._wait_for_hint(86_400.0), stop.wait())

    worker.Worker._wait_for_work = trusting  # type: ignore[method-assign]
