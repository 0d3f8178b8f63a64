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
from boatyard.ledger.records import Lease
from boatyard.model import hub_names
from boatyard.model.errors import LeaseLost
from boatyard.orderbook.kube.results import HubResults
from boatyard.orderbook.kube.view import HubView, Key
from boatyard.resources.reconciling import Result

_NEVER = timedelta(days=365)  # leadership ends a lease, by its own clock


class Leader(Protocol):
    """The election that decides which process may work on this hub."""

    @property
    def suspects(self) -> Mapping[Key, int]:
        """The objects that the last leader held when it died, with their attempts."""

    def check(self) -> None:
        """Raises LeaseLost once another process may be the leader. Makes no request."""

    async def begin(self, held: Mapping[Key, int]) -> None:
        """Records all objects held now, with their attempts. Called before work on a new object begins."""


class KubeQueue:
    def __init__(
        self, *, view: HubView, results: HubResults, leader: Leader, now: datetime
    ) -> None:
        self._view = view
        self._results = results
        self._leader = leader
        self._now = now  # of the last call; objects that change in between are due from then on
        self._due: dict[Key, datetime] = {}
        self._heaps: dict[str, list[tuple[datetime, int, Key]]] = {}  # by tenant
        self._turns: deque[str] = deque()  # tenants in round-robin order; the first is served next
        self._numbers = itertools.count(1)
        self._held: dict[Key, Lease] = {}
        self._tokens: set[int] = set()  # of the leases held at the last call of `lasting`
        self._poked: set[Key] = set()
        self._attempts = dict(leader.suspects)
        self._hint = asyncio.Event()
        view.on_change = lambda key: self._look(key, self._now)
        for key in view.all_keys():
            self._look(key, now)

    # --- what is due -----------------------------------------------------------------------------

    async def take(self, limit: int, *, now: datetime) -> Sequence[Lease]:
        """Leases due objects: one of each tenant before a second of any, the most overdue first.

        Raises LeaseLost when this process is no longer the leader.
        """
        self._leader.check()
        self._now = now
        keys: list[Key] = []
        idle_tenants = 0  # tenants in a row that have nothing due
        while len(keys) < limit and idle_tenants < len(self._turns):
            key = self._next_of(self._turns[0], now)
            self._turns.rotate(-1)
            idle_tenants = 0 if key is not None else idle_tenants + 1
            if key is not None:
                keys.append(key)
        leases = [self._hold(key, now) for key in self._one_suspect(keys, now)]
        try:
            if leases:
                await self._leader.begin(self.at())
        except BaseException:
            for lease in leases:
                key = (lease.kind, lease.id)
                self._let_go(key, now, attempts=self._attempts.get(key, 0))
            raise
        return leases

    def _one_suspect(self, keys: Sequence[Key], now: datetime) -> Sequence[Key]:
        """Returns all keys, or one suspect alone when there is any.

        A leader's death counts against every object it held, so a suspect is tried with no other beside it.
        """
        suspects = [key for key in keys if self._attempts.get(key)]
        if not suspects:
            return keys
        for key in keys:
            if key != suspects[0]:
                self._look(key, now)
        return suspects[:1]

    def _next_of(self, tenant: str, now: datetime) -> Key | None:
        heap = self._heaps[tenant]
        while heap and heap[0][0] <= now:
            due, _, key = heapq.heappop(heap)
            if self._due.get(key) != due:
                continue  # it has another due time by now
            del self._due[key]
            item = self._view.object(key)
            if item is not None and not _is_ignored(item):
                return key
        return None

    def _hold(self, key: Key, now: datetime) -> Lease:
        lease = Lease(
            kind=key[0],
            id=key[1],
            tenant=self._view.tenant(key),
            hub=self._view.place.hub,
            attempts=self._attempts.get(key, 0) + 1,
            token=next(self._numbers),
            until=now + _NEVER,
        )
        self._held[key] = lease
        return lease

    def _look(self, key: Key, at: datetime) -> None:
        """Makes the object due at `at` or earlier; one that is being worked on is due right after its pass."""
        if at <= self._now:
            self._hint.set()
        if key in self._held:
            self._poked.add(key)
            return
        due = self._due.get(key)
        if due is not None and due <= at:
            return
        self._due[key] = at
        tenant = self._view.tenant(key)
        if tenant not in self._heaps:
            self._heaps[tenant] = []
            self._turns.append(tenant)
        heapq.heappush(self._heaps[tenant], (at, next(self._numbers), key))

    def next_due(self) -> datetime | None:
        return min(self._due.values(), default=None)

    async def wait(self, seconds: float) -> None:
        """Waits until something may be due, for at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._hint.wait()
        except TimeoutError:
            return
        self._hint.clear()

    @property
    def waiting(self) -> int:
        """How many objects have a due time."""
        return len(self._due)

    # --- who holds what --------------------------------------------------------------------------

    @property
    def held(self) -> int:
        return len(self._held)

    def at(self) -> dict[Key, int]:
        """The objects held now and all suspects, with their attempts."""
        return self._attempts | {key: lease.attempts for key, lease in self._held.items()}

    def lasting(self) -> dict[Key, int]:
        """All suspects, and the objects held since the last call: a leader that dies may die of one of these."""
        earlier_tokens, self._tokens = self._tokens, {lease.token for lease in self._held.values()}
        long_held = {
            key: lease.attempts
            for key, lease in self._held.items()
            if lease.token in earlier_tokens
        }
        return self._attempts | long_held

    def check(self, lease: Lease) -> None:
        self._leader.check()

    async def extend(self, leases: Sequence[Lease], *, now: datetime) -> set[Key]:
        try:
            self._leader.check()
        except LeaseLost:
            return set()
        return {(lease.kind, lease.id) for lease in leases}

    async def forgive(self, lease: Lease) -> None:
        """Does nothing: here an attempt counts only when the leader itself died."""

    def order_object(self, order_id: str) -> dict[str, Any] | None:
        """The ClusterOrder as the order book of one pass reads it."""
        return self._results.read(("Order", order_id))

    def leftover_object(self, leftover_id: str) -> dict[str, Any] | None:
        return self._results.read(("Leftover", leftover_id))

    # --- results ---------------------------------------------------------------------------------

    async def write(self, lease: Lease, result: Result, *, now: datetime) -> None:
        self._now = now
        await self._results.carry_out((lease.kind, lease.id), result.changes, now)
        for change in result.changes:
            if isinstance(change, Due) and change.kind in ("Order", "Leftover"):
                self._look((change.kind, change.id), change.at)

    async def finish(self, lease: Lease, result: Result, *, attempts: int, now: datetime) -> None:
        key = (lease.kind, lease.id)
        try:
            await self.write(lease, result, now=now)
            await self._results.settle(key)
        except BaseException:
            if not result.changes:  # with changes, the worker calls again without any
                self._let_go(key, result.look_again or now, attempts=attempts)
            raise
        self._let_go(key, result.look_again, attempts=attempts)

    def _let_go(self, key: Key, look_again: datetime | None, *, attempts: int) -> None:
        self._held.pop(key, None)
        self._results.end(key)
        if attempts:
            self._attempts[key] = attempts
        else:
            self._attempts.pop(key, None)
        if key in self._poked:
            self._poked.discard(key)
            look_again = self._now
        if look_again is not None:
            self._look(key, look_again)


def _is_ignored(item: Mapping[str, Any]) -> bool:
    """Whether somebody else manages the object; a deletion is always ours."""
    metadata = item["metadata"]
    management_state = (metadata.get("annotations") or {}).get(hub_names.MANAGEMENT_STATE)
    return management_state == hub_names.UNMANAGED and not metadata.get("deletionTimestamp")
