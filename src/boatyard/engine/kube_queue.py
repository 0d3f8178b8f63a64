"""The operator's queue: which objects of a Kubernetes hub are due, and where results are written.

Due times are kept in memory, so a new leader reconciles every object once. Holding a lease means that this process is
the leader and that it works on the object.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from boatyard.ledger.changes import Due
from boatyard.ledger.records import WorkLease
from boatyard.model import hub_names
from boatyard.model.errors import LeaseLost
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView, Key
from boatyard.resources.reconciler import ReconcileResult

_LONGEST_LEASE = timedelta(days=365)  # leadership ends a lease, by its own clock


class Leader(Protocol):
    """The election that decides which process may work on this hub."""

    @property
    def suspects(self) -> Mapping[Key, int]:
        """The objects that the last leader held when it died, with their attempts."""

    def check_leadership(self) -> None:
        """Raises LeaseLost once another process may be the leader. Makes no request."""

    async def announce_work(self, held: Mapping[Key, int]) -> None:
        """Records all objects held now, with their attempts. Called before work on a new object begins."""


class KubeQueue:
    def __init__(
        self, *, view: HubView, results: HubResults, leader: Leader, now: datetime
    ) -> None:
        self._view = view
        self._results = results
        self._leader = leader
        self._now = now  # of the last call; objects that change in between are due from then on
        self._due_times: dict[Key, datetime] = {}
        self._heaps: dict[str, list[tuple[datetime, int, Key]]] = {}  # by tenant
        self._tenant_rotation: deque[str] = (
            deque()
        )  # tenants in round-robin order; the first is served next
        self._numbers = itertools.count(1)
        self._leases: dict[Key, WorkLease] = {}
        self._earlier_tokens: set[int] = set()  # of the leases held at the last call of `lasting`
        self._changed_while_held: set[Key] = set()
        self._attempts = dict(leader.suspects)
        self._wake_event = asyncio.Event()
        view.on_change = lambda key: self._schedule(key, self._now)
        for key in view.list_keys():
            self._schedule(key, now)

    # --- what is due -----------------------------------------------------------------------------

    async def take(self, limit: int, *, now: datetime) -> Sequence[WorkLease]:
        """Leases due objects: one of each tenant before a second of any, the most overdue first.

        Raises LeaseLost when this process is no longer the leader.
        """
        self._leader.check_leadership()
        self._now = now
        keys: list[Key] = []
        idle_tenants = 0  # tenants in a row that have nothing due
        while len(keys) < limit and idle_tenants < len(self._tenant_rotation):
            key = self._pop_due_key(self._tenant_rotation[0], now)
            self._tenant_rotation.rotate(-1)
            idle_tenants = 0 if key is not None else idle_tenants + 1
            if key is not None:
                keys.append(key)
        leases = [self._add_lease(key, now) for key in self._isolate_suspect(keys, now)]
        try:
            if leases:
                await self._leader.announce_work(self.list_work())
        except BaseException:
            for lease in leases:
                key = (lease.kind, lease.id)
                self._release_key(key, now, attempts=self._attempts.get(key, 0))
            raise
        return leases

    def _isolate_suspect(self, keys: Sequence[Key], now: datetime) -> Sequence[Key]:
        """Returns all keys, or one suspect alone when there is any.

        A leader's death counts against every object it held, so a suspect is tried with no other beside it.
        """
        suspects = [key for key in keys if self._attempts.get(key)]
        if not suspects:
            return keys
        for key in keys:
            if key != suspects[0]:
                self._schedule(key, now)
        return suspects[:1]

    def _pop_due_key(self, tenant: str, now: datetime) -> Key | None:
        heap = self._heaps[tenant]
        while heap and heap[0][0] <= now:
            due, _, key = heapq.heappop(heap)
            if self._due_times.get(key) != due:
                continue  # it has another due time by now
            del self._due_times[key]
            item = self._view.get_object(key)
            if item is not None and not _is_ignored(item):
                return key
        return None

    def _add_lease(self, key: Key, now: datetime) -> WorkLease:
        lease = WorkLease(
            kind=key[0],
            id=key[1],
            tenant=self._view.get_tenant(key),
            hub=self._view.order_settings.hub,
            attempts=self._attempts.get(key, 0) + 1,
            token=next(self._numbers),
            until=now + _LONGEST_LEASE,
        )
        self._leases[key] = lease
        return lease

    def _schedule(self, key: Key, at: datetime) -> None:
        """Makes the object due at `at` or earlier; one that is being worked on is due right after its pass."""
        if at <= self._now:
            self._wake_event.set()
        if key in self._leases:
            self._changed_while_held.add(key)
            return
        due = self._due_times.get(key)
        if due is not None and due <= at:
            return
        self._due_times[key] = at
        tenant = self._view.get_tenant(key)
        if tenant not in self._heaps:
            self._heaps[tenant] = []
            self._tenant_rotation.append(tenant)
        heapq.heappush(self._heaps[tenant], (at, next(self._numbers), key))

    def next_due(self) -> datetime | None:
        return min(self._due_times.values(), default=None)

    async def wait(self, seconds: float) -> None:
        """Waits until something may be due, for at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake_event.wait()
        except TimeoutError:
            return
        self._wake_event.clear()

    @property
    def waiting(self) -> int:
        """How many objects have a due time."""
        return len(self._due_times)

    # --- who holds what --------------------------------------------------------------------------

    @property
    def held(self) -> int:
        return len(self._leases)

    def list_work(self) -> dict[Key, int]:
        """The objects held now and all suspects, with their attempts."""
        return self._attempts | {key: lease.attempts for key, lease in self._leases.items()}

    def list_long_running_work(self) -> dict[Key, int]:
        """All suspects, and the objects held since the last call: a leader that dies may die of one of these."""
        earlier_tokens, self._earlier_tokens = (
            self._earlier_tokens,
            {lease.token for lease in self._leases.values()},
        )
        long_held = {
            key: lease.attempts
            for key, lease in self._leases.items()
            if lease.token in earlier_tokens
        }
        return self._attempts | long_held

    def check_lease(self, lease: WorkLease) -> None:
        self._leader.check_leadership()

    async def extend(self, leases: Sequence[WorkLease], *, now: datetime) -> set[Key]:
        try:
            self._leader.check_leadership()
        except LeaseLost:
            return set()
        return {(lease.kind, lease.id) for lease in leases}

    async def refund_attempt(self, lease: WorkLease) -> None:
        """Does nothing: here an attempt counts only when the leader itself died."""

    def get_order_object(self, order_id: str) -> dict[str, Any] | None:
        """The ClusterOrder as the order book of one pass reads it."""
        return self._results.read_for_pass(("Order", order_id))

    def get_leftover_object(self, leftover_id: str) -> dict[str, Any] | None:
        return self._results.read_for_pass(("Leftover", leftover_id))

    # --- results ---------------------------------------------------------------------------------

    async def write(self, lease: WorkLease, result: ReconcileResult, *, now: datetime) -> None:
        self._now = now
        await self._results.write_changes((lease.kind, lease.id), result.changes, now)
        for change in result.changes:
            if isinstance(change, Due) and change.kind in ("Order", "Leftover"):
                self._schedule((change.kind, change.id), change.at)

    async def finish(
        self, lease: WorkLease, result: ReconcileResult, *, attempts: int, now: datetime
    ) -> None:
        key = (lease.kind, lease.id)
        try:
            await self.write(lease, result, now=now)
            await self._results.update_finalizer(key)
        except BaseException:
            if not result.changes:  # with changes, the worker calls again without any
                self._release_key(key, result.look_again or now, attempts=attempts)
            raise
        self._release_key(key, result.look_again, attempts=attempts)

    def _release_key(self, key: Key, look_again: datetime | None, *, attempts: int) -> None:
        self._leases.pop(key, None)
        self._results.end_pass(key)
        if attempts:
            self._attempts[key] = attempts
        else:
            self._attempts.pop(key, None)
        if key in self._changed_while_held:
            self._changed_while_held.discard(key)
            look_again = self._now
        if look_again is not None:
            self._schedule(key, look_again)


def _is_ignored(item: Mapping[str, Any]) -> bool:
    """Whether somebody else manages the object; a deletion is always ours."""
    metadata = item["metadata"]
    management_state = (metadata.get("annotations") or {}).get(hub_names.MANAGEMENT_STATE)
    return management_state == hub_names.UNMANAGED and not metadata.get("deletionTimestamp")
