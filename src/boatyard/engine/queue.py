"""The queue a worker takes due objects from and writes results to: the port, and the SQL queue.

The queue of a Kubernetes hub is in kube_queue.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import Finish, WorkLease
from boatyard.resources.reconciler import ReconcileResult


class Queue(Protocol):
    async def take(self, limit: int, *, now: datetime) -> Sequence[WorkLease]:
        """Leases up to `limit` due objects to this worker alone."""

    async def extend(self, leases: Sequence[WorkLease], *, now: datetime) -> set[tuple[str, str]]:
        """Prolongs the leases and returns the (kind, id) of those this worker still holds."""

    def check_lease(self, lease: WorkLease) -> None:
        """Raises LeaseLost when this process knows that another may hold the lease. Makes no request.

        The end of the lease by time is checked by the worker, not here.
        """

    async def refund_attempt(self, lease: WorkLease) -> None:
        """Takes one attempt off the object's count: the worker that lost the lease is alive."""

    async def write(self, lease: WorkLease, result: ReconcileResult, *, now: datetime) -> None:
        """Writes the result and keeps the lease. Raises what `finish` raises."""

    async def finish(
        self, lease: WorkLease, result: ReconcileResult, *, attempts: int, now: datetime
    ) -> None:
        """Writes the result and gives the lease back, in one transaction.

        Raises LeaseLost when another worker holds the lease, Conflict when the object was changed since it was
        read. Nothing is written then.
        """


class SqlQueue:
    """The ledger's work table."""

    def __init__(
        self, ledger: Ledger, *, kinds: Sequence[str], worker: str, lease_seconds: float
    ) -> None:
        self._ledger = ledger
        self._work_table = ledger.work
        self._kinds = kinds
        self._worker = worker
        self._lease_seconds = lease_seconds

    async def take(self, limit: int, *, now: datetime) -> Sequence[WorkLease]:
        return await self._work_table.take(
            kinds=self._kinds,
            limit=limit,
            lease_seconds=self._lease_seconds,
            worker=self._worker,
            now=now,
        )

    async def extend(self, leases: Sequence[WorkLease], *, now: datetime) -> set[tuple[str, str]]:
        return await self._work_table.extend(leases, self._lease_seconds, now)

    def check_lease(self, lease: WorkLease) -> None:
        """Does nothing: a lease of the ledger ends by time alone, which the worker checks."""

    async def refund_attempt(self, lease: WorkLease) -> None:
        await self._work_table.refund_attempt(lease)

    async def write(self, lease: WorkLease, result: ReconcileResult, *, now: datetime) -> None:
        await self._ledger.commit(list(result.changes), lease=lease, now=now)

    async def finish(
        self, lease: WorkLease, result: ReconcileResult, *, attempts: int, now: datetime
    ) -> None:
        finish = Finish(
            due=result.look_again,
            hub=result.hub,
            waiting_for=result.waiting_for,
            attempts=attempts,
        )
        await self._ledger.commit(list(result.changes), lease=lease, finish=finish, now=now)
