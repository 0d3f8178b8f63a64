"""Where what is due comes from and results go. The SQL queue; that of a Kubernetes hub is in kube_queue.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import Finish, Lease
from boatyard.resources.reconciling import Result


class Queue(Protocol):
    async def take(self, limit: int, *, now: datetime) -> Sequence[Lease]:
        """Up to so many objects that are due, leased to this worker alone."""

    async def extend(self, leases: Sequence[Lease], *, now: datetime) -> set[tuple[str, str]]:
        """Prolongs the leases; the (kind, id) of those that are still held."""

    def check(self, lease: Lease) -> None:
        """LeaseLost when it is known here, without asking, that the lease may have passed on. Beside its end."""

    async def forgive(self, lease: Lease) -> None:
        """Takes back one mark against an object: the worker that lost its lease is alive."""

    async def write(self, lease: Lease, result: Result, *, now: datetime) -> None:
        """Writes the result and keeps the lease. Fails like `finish`."""

    async def finish(self, lease: Lease, result: Result, *, attempts: int, now: datetime) -> None:
        """Writes the result and gives the lease back, in one transaction.

        LeaseLost when another holds it now, Conflict when the object was changed meanwhile: nothing is written then.
        """


class SqlQueue:
    """The ledger's work table."""

    def __init__(
        self, ledger: Ledger, *, kinds: Sequence[str], worker: str, lease_seconds: float
    ) -> None:
        self._ledger = ledger
        self._work = ledger.work
        self._kinds = kinds
        self._worker = worker
        self._lease_seconds = lease_seconds

    async def take(self, limit: int, *, now: datetime) -> Sequence[Lease]:
        return await self._work.take(
            kinds=self._kinds,
            limit=limit,
            lease_seconds=self._lease_seconds,
            worker=self._worker,
            now=now,
        )

    async def extend(self, leases: Sequence[Lease], *, now: datetime) -> set[tuple[str, str]]:
        return await self._work.extend(leases, self._lease_seconds, now)

    def check(self, lease: Lease) -> None:
        """A lease of the ledger ends by its time alone."""

    async def forgive(self, lease: Lease) -> None:
        await self._work.forgive(lease)

    async def write(self, lease: Lease, result: Result, *, now: datetime) -> None:
        await self._ledger.commit(list(result.changes), lease=lease, now=now)

    async def finish(self, lease: Lease, result: Result, *, attempts: int, now: datetime) -> None:
        finish = Finish(
            due=result.look_again,
            hub=result.hub,
            waiting_for=result.waiting_for,
            attempts=attempts,
        )
        await self._ledger.commit(list(result.changes), lease=lease, finish=finish, now=now)
