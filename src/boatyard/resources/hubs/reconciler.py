"""Checks a hub regularly: does it answer, what does it lack, what is its capacity. Called by the engine.

A healthy hub is checked every half minute, a failing one at first every two seconds and then with growing pauses.
Other hubs do not suffer: each hub has its own pass and its own client, and one pass is a dozen requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.ledger.changes import Change, Note, Replace, Wake
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import BoatyardError, NotFound, Refused, Unavailable
from boatyard.model.generated.osac import Hub, HubConditionType, HubState, HubStatus
from boatyard.resources.clusters import placement
from boatyard.resources.clusters.reconciler import CAPACITY
from boatyard.resources.hubs import capacity
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.hubs.check.evaluate import (
    is_current,
    is_other_cluster,
    registered_as,
    was_not_asked,
)
from boatyard.resources.hubs.check.model import FAILED, PASSED, Finding, Seen, roles_finding
from boatyard.resources.hubs.check.report import (
    EMBEDDED_CONDITIONS,
    KUBERNETES_CONDITIONS,
    conditions,
    failing_since,
    state,
)
from boatyard.resources.hubs.check.run import Looked, look
from boatyard.resources.hubs.preparing import ensure_settings, remove_settings
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.hubs.sweep import sweep
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciling import Result, Turn

logger = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
SHORTEST_SECONDS = 2.0  # between two checks of a failing hub
_ANSWER_SECONDS = 5.0
SWEEP_EVERY = timedelta(minutes=10)
LEARN_EVERY = timedelta(minutes=5)
TIDY_FOR = timedelta(minutes=10)  # how long we try to remove our settings from a deleted hub

_REASONS = {
    HubState.READY: "Ready",
    HubState.UNREACHABLE: "Unreachable",
    HubState.NOT_READY: "NotReady",
}


@dataclass(frozen=True)
class _Look:
    """The result of one check of a hub, Kubernetes or embedded."""

    findings: list[Finding]
    types: tuple[HubConditionType, ...]
    version: str = ""
    capacity: Mapping[str, int] | None = None  # None: not determined in this pass
    cluster_uid: str = ""  # of the cluster whose settings name this hub


class HubReconciler:
    def __init__(
        self,
        *,
        ledger: Ledger,
        drivers_for: Callable[[str], Awaitable[HubDrivers]],
        access: HubAccess,
        sweep_every: timedelta = SWEEP_EVERY,
    ) -> None:
        self._ledger = ledger
        self._drivers_for = drivers_for
        self._access = access
        self._sweep_every = sweep_every
        # Kept in memory only: one sweep or discovery more or less does no harm.
        self._swept: dict[str, datetime] = {}
        self._learned: dict[str, tuple[int, datetime]] = {}  # generation, when

    async def reconcile(self, turn: Turn) -> Result:
        hub = await self._ledger.documents.get(Hub, turn.id)
        if hub is None:
            return await self._tidy(turn)
        observation = await (self._look if is_kubernetes(hub) else self._look_embedded)(hub, turn)
        if observation is None:
            return self._later(hub, hub.status, turn.now)
        used = await self._used(hub)
        status = _status(hub, observation, used, turn.now)
        changes = _changes(hub, status, turn.now)
        if status.state == HubState.READY and not is_kubernetes(hub):
            changes += await self._sweep(hub.id, turn)
        return self._later(hub, status, turn.now, changes)

    async def poisoned(self, turn: Turn) -> Result:
        return Result(look_again=turn.now + timedelta(seconds=10 * LOOK_SECONDS))

    def _later(
        self, hub: Hub, status: HubStatus, now: datetime, changes: list[Change] | None = None
    ) -> Result:
        pause = pause_before_look(msgspec.structs.replace(hub, status=status), now)
        return Result(changes=changes or [], look_again=now + pause, hub=hub.id)

    # --- a Kubernetes hub ---------------------------------------------------------------------

    async def _look(self, hub: Hub, turn: Turn) -> _Look | None:
        """Checks a Kubernetes hub. None when it was unreachable and the circuit breaker kept the request back."""
        check = await look(hub, self._access, turn.now, thorough=False)
        unreachable = hub.status.state == HubState.UNREACHABLE
        if unreachable and check.error is not None and was_not_asked(check.error):
            return None
        if check.seen is None or check.client is None:
            return _Look(check.findings, KUBERNETES_CONDITIONS, hub.status.version)
        snapshot, client = check.seen, check.client
        if is_other_cluster(hub, snapshot):
            return _Look(check.findings, KUBERNETES_CONDITIONS, hub.status.version)
        if _may_write(hub, snapshot) and not is_current(hub, snapshot):
            turn.check_lease()
            check = await self._write_settings(hub, client, turn, check)
        hub_capacity = await self._learn(hub, client, turn.now)
        return _Look(
            check.findings,
            KUBERNETES_CONDITIONS,
            snapshot.version,
            hub_capacity,
            _identity(hub, check.seen),
        )

    async def _write_settings(
        self, hub: Hub, client: KubeClient, turn: Turn, check: Looked
    ) -> Looked:
        """Writes the hub's settings and checks it again. Returns the earlier check when we may not write."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                for done in await ensure_settings(client, hub):
                    logger.info("hub prepared", extra={"hub": hub.id, "done": done})
        except (BoatyardError, TimeoutError) as error:
            logger.warning("hub not prepared", extra={"hub": hub.id, "why": str(error)})
            return check
        return await look(hub, self._access, turn.now, thorough=False)

    async def _learn(self, hub: Hub, client: KubeClient, now: datetime) -> Mapping[str, int] | None:
        generation, last = self._learned.get(hub.id, (0, now))
        if generation == hub.metadata.generation and now < last + LEARN_EVERY:
            return None
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                hub_capacity = await capacity.learn(client, hub)
        except (Unavailable, TimeoutError) as error:
            logger.warning("hub capacity not determined", extra={"hub": hub.id, "why": str(error)})
            return None
        self._learned[hub.id] = (hub.metadata.generation, now)
        return hub_capacity

    async def _tidy(self, turn: Turn) -> Result:
        """Removes our settings from a deleted hub, so that it can be registered again, and forgets its client."""
        hub = await self._ledger.documents.archived(Hub, turn.id)
        since = hub.metadata.deletion_timestamp if hub is not None else None
        if hub is not None and since is not None and is_kubernetes(hub):
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await remove_settings(await self._access.clients.client(hub), hub)
            except (Unavailable, Refused, TimeoutError) as error:
                logger.warning(
                    "hub settings not removed", extra={"hub": turn.id, "why": str(error)}
                )
                if turn.now < since + TIDY_FOR:
                    return Result(look_again=turn.now + timedelta(seconds=LOOK_SECONDS))
        await self._access.clients.forget(turn.id)
        self._learned.pop(turn.id, None)
        self._swept.pop(turn.id, None)
        return Result()

    # --- an embedded hub ----------------------------------------------------------------------

    async def _look_embedded(self, hub: Hub, turn: Turn) -> _Look:
        failure = await self._failure(hub.id)
        if failure is not None:
            return _Look([failure], EMBEDDED_CONDITIONS)
        finding = Finding("drivers", PASSED, "all answer", condition=HubConditionType.DRIVERS_READY)
        hub_capacity: Mapping[str, int] | None = None
        if not set(hub.spec.capacity) - {placement.CLUSTERS}:
            drivers = await self._drivers_for(hub.id)
            hub_capacity = dict(await drivers.inventory.capacity())
        return _Look(
            [finding, *await self._cautions(hub.id)], EMBEDDED_CONDITIONS, capacity=hub_capacity
        )

    async def _cautions(self, hub_id: str) -> list[Finding]:
        """Warnings for the operator that do not keep the hub from working."""
        automation = (await self._drivers_for(hub_id)).automation
        if automation is None:
            return []
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                words = await automation.caution()
        except (Unavailable, TimeoutError):
            return []
        return [roles_finding(words)] if words else []

    async def _failure(self, hub_id: str) -> Finding | None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                drivers = await self._drivers_for(hub_id)
                await drivers.check_ready()
        except (Unavailable, Refused, NotFound) as error:
            words, reason = str(error), getattr(error, "reason", "NotFound")
        except TimeoutError:
            words, reason = f"did not answer within {_ANSWER_SECONDS:g} s", "Timeout"
        else:
            return None
        return Finding(
            "drivers",
            FAILED,
            words,
            "see that what the hub's drivers speak to runs",
            reason,
            HubConditionType.DRIVERS_READY,
        )

    async def _sweep(self, hub_id: str, turn: Turn) -> list[Change]:
        last = self._swept.get(hub_id)
        if last is not None and turn.now < last + self._sweep_every:
            return []
        self._swept[hub_id] = turn.now
        return await sweep(self._ledger, hub_id, await self._drivers_for(hub_id), turn.now)

    async def _used(self, hub: Hub) -> Mapping[str, int]:
        reserved = await self._ledger.claims.reserved_by_pool()
        prefix = placement.pool(hub.id, "")
        return {
            name.removeprefix(prefix): amount
            for name, amount in sorted(reserved.items())
            if name.startswith(prefix) and amount
        }


def pause_before_look(hub: Hub, now: datetime) -> timedelta:
    """Half the time that the hub has been failing, within bounds: short at first, longer later."""
    since = failing_since(hub)
    if since is None:
        return timedelta(seconds=LOOK_SECONDS)
    half = (now - since).total_seconds() / 2
    return timedelta(seconds=min(max(half, SHORTEST_SECONDS), LOOK_SECONDS))


def _may_write(hub: Hub, snapshot: Seen) -> bool:
    """Whether we may write our settings: not over those of another hub, nor to a different cluster than before."""
    if hub.status.cluster_uid not in ("", snapshot.cluster_uid):
        return False
    return snapshot.settings is None or registered_as(snapshot.settings) in ("", hub.id)


def _identity(hub: Hub, snapshot: Seen | None) -> str:
    """The uid of the cluster, if its settings name this hub; else empty."""
    if snapshot is None or registered_as(snapshot.settings) != hub.id:
        return ""
    return snapshot.cluster_uid


def _status(hub: Hub, observation: _Look, used: Mapping[str, int], now: datetime) -> HubStatus:
    new_state, message = state(observation.findings)
    old = hub.status
    return msgspec.structs.replace(
        old,
        state=new_state,
        message=message,
        last_seen=now if new_state != old.state else old.last_seen,
        observed_generation=hub.metadata.generation,
        conditions=conditions(hub, observation.findings, observation.types, now),
        version=observation.version,
        capacity=old.capacity if observation.capacity is None else observation.capacity,
        used=used,
        cluster_uid=old.cluster_uid or observation.cluster_uid,
    )


def _changes(hub: Hub, status: HubStatus, now: datetime) -> list[Change]:
    if status == hub.status:
        return []
    note = None
    if (status.state, status.message) != (hub.status.state, hub.status.message):
        note = Note(_REASONS[status.state], status.message or "Hub is ready")
    after = msgspec.structs.replace(hub, status=status)
    changes: list[Change] = [Replace(after, note=note)]
    if status.state == HubState.READY and _may_take_more(hub, after):
        changes.append(Wake(CAPACITY, now))
    return changes


def _may_take_more(before: Hub, after: Hub) -> bool:
    """Whether waiting clusters may fit now: the hub came back, was changed, or has another capacity."""
    return (
        before.status.state != after.status.state
        or before.status.observed_generation != after.status.observed_generation
        or before.status.capacity != after.status.capacity
    )
