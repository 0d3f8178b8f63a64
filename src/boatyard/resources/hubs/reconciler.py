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
from boatyard.ledger.changes import Change, EventNote, Replace, WakeWaiting
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import BoatyardError, NotFound, Refused, Unavailable
from boatyard.model.generated.osac import Hub, HubConditionType, HubState, HubStatus
from boatyard.resources.clusters import placement
from boatyard.resources.clusters.reconciler import CAPACITY_WAKE
from boatyard.resources.hubs import capacity
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.hubs.check.evaluate import (
    get_registered_hub_id,
    has_current_settings,
    is_circuit_open,
    is_other_cluster,
)
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    HubCheckFinding,
    HubSnapshot,
    make_roles_finding,
)
from boatyard.resources.hubs.check.report import (
    EMBEDDED_CONDITIONS,
    KUBERNETES_CONDITIONS,
    compute_state,
    get_failing_since,
    make_conditions,
)
from boatyard.resources.hubs.check.run import HubCheckResult, check_kubernetes_hub
from boatyard.resources.hubs.preparation import ensure_settings, remove_settings
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.hubs.sweep import sweep_hub
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult

logger = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = 30.0
SHORTEST_INTERVAL_SECONDS = 2.0  # between two checks of a failing hub
_DRIVER_TIMEOUT_SECONDS = 5.0
SWEEP_INTERVAL = timedelta(minutes=10)
DISCOVERY_INTERVAL = timedelta(minutes=5)
CLEANUP_PERIOD = timedelta(minutes=10)  # how long we try to remove our settings from a deleted hub

_NOTE_REASONS = {
    HubState.READY: "Ready",
    HubState.UNREACHABLE: "Unreachable",
    HubState.NOT_READY: "NotReady",
}


@dataclass(frozen=True)
class _HubObservation:
    """The result of one check of a hub, Kubernetes or embedded."""

    findings: list[HubCheckFinding]
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
        sweep_every: timedelta = SWEEP_INTERVAL,
    ) -> None:
        self._ledger = ledger
        self._drivers_for = drivers_for
        self._access = access
        self._sweep_interval = sweep_every
        # Kept in memory only: one sweep or discovery more or less does no harm.
        self._swept_at: dict[str, datetime] = {}
        self._discovered_at: dict[str, tuple[int, datetime]] = {}  # generation, when

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        hub = await self._ledger.documents.get(Hub, reconcile_pass.id)
        if hub is None:
            return await self._clean_up(reconcile_pass)
        observation = await (
            self._observe_kubernetes if is_kubernetes(hub) else self._observe_embedded
        )(hub, reconcile_pass)
        if observation is None:
            return self._make_result(hub, hub.status, reconcile_pass.now)
        used = await self._read_used_capacity(hub)
        status = _status(hub, observation, used, reconcile_pass.now)
        changes = _changes(hub, status, reconcile_pass.now)
        if status.state == HubState.READY and not is_kubernetes(hub):
            changes += await self._sweep(hub.id, reconcile_pass)
        return self._make_result(hub, status, reconcile_pass.now, changes)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return ReconcileResult(
            look_again=reconcile_pass.now + timedelta(seconds=10 * CHECK_INTERVAL_SECONDS)
        )

    def _make_result(
        self, hub: Hub, status: HubStatus, now: datetime, changes: list[Change] | None = None
    ) -> ReconcileResult:
        pause = compute_check_pause(msgspec.structs.replace(hub, status=status), now)
        return ReconcileResult(changes=changes or [], look_again=now + pause, hub=hub.id)

    # --- a Kubernetes hub ---------------------------------------------------------------------

    async def _observe_kubernetes(
        self, hub: Hub, reconcile_pass: ReconcilePass
    ) -> _HubObservation | None:
        """Checks a Kubernetes hub. None when it was unreachable and the circuit breaker kept the request back."""
        check = await check_kubernetes_hub(hub, self._access, reconcile_pass.now, thorough=False)
        unreachable = hub.status.state == HubState.UNREACHABLE
        if unreachable and check.error is not None and is_circuit_open(check.error):
            return None
        if check.snapshot is None or check.client is None:
            return _HubObservation(check.findings, KUBERNETES_CONDITIONS, hub.status.version)
        snapshot, client = check.snapshot, check.client
        if is_other_cluster(hub, snapshot):
            return _HubObservation(check.findings, KUBERNETES_CONDITIONS, hub.status.version)
        if _may_write_settings(hub, snapshot) and not has_current_settings(hub, snapshot):
            reconcile_pass.check_lease()
            check = await self._write_settings(hub, client, reconcile_pass, check)
        hub_capacity = await self._discover_capacity(hub, client, reconcile_pass.now)
        return _HubObservation(
            check.findings,
            KUBERNETES_CONDITIONS,
            snapshot.version,
            hub_capacity,
            _get_registered_uid(hub, check.snapshot),
        )

    async def _write_settings(
        self, hub: Hub, client: KubeClient, reconcile_pass: ReconcilePass, check: HubCheckResult
    ) -> HubCheckResult:
        """Writes the hub's settings and checks it again. Returns the earlier check when we may not write."""
        try:
            async with asyncio.timeout(CHECK_INTERVAL_SECONDS):
                for done in await ensure_settings(client, hub):
                    logger.info("hub prepared", extra={"hub": hub.id, "done": done})
        except (BoatyardError, TimeoutError) as error:
            logger.warning("hub not prepared", extra={"hub": hub.id, "why": str(error)})
            return check
        return await check_kubernetes_hub(hub, self._access, reconcile_pass.now, thorough=False)

    async def _discover_capacity(
        self, hub: Hub, client: KubeClient, now: datetime
    ) -> Mapping[str, int] | None:
        generation, last = self._discovered_at.get(hub.id, (0, now))
        if generation == hub.metadata.generation and now < last + DISCOVERY_INTERVAL:
            return None
        try:
            async with asyncio.timeout(CHECK_INTERVAL_SECONDS):
                hub_capacity = await capacity.discover_capacity(client, hub)
        except (Unavailable, TimeoutError) as error:
            logger.warning("hub capacity not determined", extra={"hub": hub.id, "why": str(error)})
            return None
        self._discovered_at[hub.id] = (hub.metadata.generation, now)
        return hub_capacity

    async def _clean_up(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        """Removes our settings from a deleted hub, so that it can be registered again, and forgets its client."""
        hub = await self._ledger.documents.get_archived(Hub, reconcile_pass.id)
        since = hub.metadata.deletion_timestamp if hub is not None else None
        if hub is not None and since is not None and is_kubernetes(hub):
            try:
                async with asyncio.timeout(CHECK_INTERVAL_SECONDS):
                    await remove_settings(await self._access.clients.client(hub), hub)
            except (Unavailable, Refused, TimeoutError) as error:
                logger.warning(
                    "hub settings not removed", extra={"hub": reconcile_pass.id, "why": str(error)}
                )
                if reconcile_pass.now < since + CLEANUP_PERIOD:
                    return ReconcileResult(
                        look_again=reconcile_pass.now + timedelta(seconds=CHECK_INTERVAL_SECONDS)
                    )
        await self._access.clients.forget(reconcile_pass.id)
        self._discovered_at.pop(reconcile_pass.id, None)
        self._swept_at.pop(reconcile_pass.id, None)
        return ReconcileResult()

    # --- an embedded hub ----------------------------------------------------------------------

    async def _observe_embedded(self, hub: Hub, reconcile_pass: ReconcilePass) -> _HubObservation:
        failure = await self._find_driver_failure(hub.id)
        if failure is not None:
            return _HubObservation([failure], EMBEDDED_CONDITIONS)
        finding = HubCheckFinding(
            "drivers", PASSED, "all answer", condition=HubConditionType.DRIVERS_READY
        )
        hub_capacity: Mapping[str, int] | None = None
        if not set(hub.spec.capacity) - {placement.CLUSTERS_RESOURCE}:
            drivers = await self._drivers_for(hub.id)
            hub_capacity = dict(await drivers.inventory.capacity())
        return _HubObservation(
            [finding, *await self._list_warnings(hub.id)],
            EMBEDDED_CONDITIONS,
            capacity=hub_capacity,
        )

    async def _list_warnings(self, hub_id: str) -> list[HubCheckFinding]:
        """Warnings for the operator that do not keep the hub from working."""
        automation = (await self._drivers_for(hub_id)).automation
        if automation is None:
            return []
        try:
            async with asyncio.timeout(_DRIVER_TIMEOUT_SECONDS):
                words = await automation.get_isolation_warning()
        except (Unavailable, TimeoutError):
            return []
        return [make_roles_finding(words)] if words else []

    async def _find_driver_failure(self, hub_id: str) -> HubCheckFinding | None:
        try:
            async with asyncio.timeout(_DRIVER_TIMEOUT_SECONDS):
                drivers = await self._drivers_for(hub_id)
                await drivers.check_ready()
        except (Unavailable, Refused, NotFound) as error:
            words, reason = str(error), getattr(error, "reason", "NotFound")
        except TimeoutError:
            words, reason = f"did not answer within {_DRIVER_TIMEOUT_SECONDS:g} s", "Timeout"
        else:
            return None
        return HubCheckFinding(
            "drivers",
            FAILED,
            words,
            "see that what the hub's drivers speak to runs",
            reason,
            HubConditionType.DRIVERS_READY,
        )

    async def _sweep(self, hub_id: str, reconcile_pass: ReconcilePass) -> list[Change]:
        last = self._swept_at.get(hub_id)
        if last is not None and reconcile_pass.now < last + self._sweep_interval:
            return []
        self._swept_at[hub_id] = reconcile_pass.now
        return await sweep_hub(
            self._ledger, hub_id, await self._drivers_for(hub_id), reconcile_pass.now
        )

    async def _read_used_capacity(self, hub: Hub) -> Mapping[str, int]:
        reserved = await self._ledger.claims.sum_reserved_by_pool()
        prefix = placement.get_capacity_pool(hub.id, "")
        return {
            name.removeprefix(prefix): amount
            for name, amount in sorted(reserved.items())
            if name.startswith(prefix) and amount
        }


def compute_check_pause(hub: Hub, now: datetime) -> timedelta:
    """Half the time that the hub has been failing, within bounds: short at first, longer later."""
    since = get_failing_since(hub)
    if since is None:
        return timedelta(seconds=CHECK_INTERVAL_SECONDS)
    half = (now - since).total_seconds() / 2
    return timedelta(seconds=min(max(half, SHORTEST_INTERVAL_SECONDS), CHECK_INTERVAL_SECONDS))


def _may_write_settings(hub: Hub, snapshot: HubSnapshot) -> bool:
    """Whether we may write our settings: not over those of another hub, nor to a different cluster than before."""
    if hub.status.cluster_uid not in ("", snapshot.cluster_uid):
        return False
    return snapshot.settings is None or get_registered_hub_id(snapshot.settings) in ("", hub.id)


def _get_registered_uid(hub: Hub, snapshot: HubSnapshot | None) -> str:
    """The uid of the cluster, if its settings name this hub; else empty."""
    if snapshot is None or get_registered_hub_id(snapshot.settings) != hub.id:
        return ""
    return snapshot.cluster_uid


def _status(
    hub: Hub, observation: _HubObservation, used: Mapping[str, int], now: datetime
) -> HubStatus:
    new_state, message = compute_state(observation.findings)
    old = hub.status
    return msgspec.structs.replace(
        old,
        state=new_state,
        message=message,
        last_seen=now if new_state != old.state else old.last_seen,
        observed_generation=hub.metadata.generation,
        conditions=make_conditions(hub, observation.findings, observation.types, now),
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
        note = EventNote(_NOTE_REASONS[status.state], status.message or "Hub is ready")
    after = msgspec.structs.replace(hub, status=status)
    changes: list[Change] = [Replace(after, note=note)]
    if status.state == HubState.READY and _may_take_more(hub, after):
        changes.append(WakeWaiting(CAPACITY_WAKE, now))
    return changes


def _may_take_more(before: Hub, after: Hub) -> bool:
    """Whether waiting clusters may fit now: the hub came back, was changed, or has another capacity."""
    return (
        before.status.state != after.status.state
        or before.status.observed_generation != after.status.observed_generation
        or before.status.capacity != after.status.capacity
    )
