"""Keeps an eye on a hub: does it answer, how much does it hold. Called by the engine, every half minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec

from boatyard.ledger.changes import Change, Note, Replace, Wake
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.osac import Hub, HubState
from boatyard.resources.clusters.reconciler import CAPACITY
from boatyard.resources.hubs.sweep import sweep
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciling import Result, Turn

_LOOK_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
SWEEP_EVERY = timedelta(minutes=10)


class HubReconciler:
    def __init__(
        self,
        *,
        ledger: Ledger,
        drivers_for: Callable[[str], Awaitable[HubDrivers]],
        sweep_every: timedelta = SWEEP_EVERY,
    ) -> None:
        self._ledger = ledger
        self._drivers_for = drivers_for
        self._sweep_every = sweep_every
        self._swept: dict[str, datetime] = {}  # a sweep more or less does no harm

    async def reconcile(self, turn: Turn) -> Result:
        hub = await self._ledger.get(Hub, turn.id)
        if hub is None:
            return Result()
        state, message = await self._health(hub.id)
        spec = hub.spec
        if state == HubState.READY and not spec.capacity:
            drivers = await self._drivers_for(hub.id)
            spec = msgspec.structs.replace(spec, capacity=dict(await drivers.inventory.capacity()))
        seen = msgspec.structs.replace(
            hub.status,
            state=state,
            message=message,
            last_seen=turn.now if state != hub.status.state else hub.status.last_seen,
            observed_generation=hub.metadata.generation,
        )
        found = msgspec.structs.replace(hub, spec=spec, status=seen)
        changes: list[Change] = []
        if found != hub:
            note = Note(state.name.capitalize(), message or f"Hub is {state.name.lower()}")
            changes.append(Replace(found, note=note))
        if state == HubState.READY and _may_take_more(hub, found):
            changes.append(Wake(CAPACITY, turn.now))
        if state == HubState.READY:
            changes += await self._sweep(hub.id, turn)
        return Result(
            changes=changes, look_again=turn.now + timedelta(seconds=_LOOK_SECONDS), hub=hub.id
        )

    async def poisoned(self, turn: Turn) -> Result:
        return Result(look_again=turn.now + timedelta(seconds=10 * _LOOK_SECONDS))

    async def _sweep(self, hub_id: str, turn: Turn) -> list[Change]:
        last = self._swept.get(hub_id)
        if last is not None and turn.now < last + self._sweep_every:
            return []
        self._swept[hub_id] = turn.now
        return await sweep(self._ledger, hub_id, await self._drivers_for(hub_id), turn.now)

    async def _health(self, hub_id: str) -> tuple[HubState, str]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                drivers = await self._drivers_for(hub_id)
                await drivers.check_ready()
        except (Unavailable, Refused) as error:
            return HubState.UNREACHABLE, str(error)
        except TimeoutError:
            return HubState.UNREACHABLE, f"did not answer within {_ANSWER_SECONDS:g} s"
        return HubState.READY, ""


def _may_take_more(before: Hub, after: Hub) -> bool:
    """A hub that came back, or was changed by a person since the last look, may have room for who waits."""
    return (
        before.status.state != after.status.state
        or before.status.observed_generation != after.status.observed_generation
        or before.spec != after.spec
    )
