"""The ledger: everything others may ask of it. Its parts are in the files beside this one."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import asyncpg

from boatyard.ledger.changes import Change
from boatyard.ledger.claims import Claims
from boatyard.ledger.clock import DatabaseClock
from boatyard.ledger.codec import Codec
from boatyard.ledger.commit import label, payload
from boatyard.ledger.connections import STATEMENT_SECONDS, Connections, connect
from boatyard.ledger.contents import Contents
from boatyard.ledger.documents import Documents
from boatyard.ledger.events import Events
from boatyard.ledger.failures import DROPPED, translate
from boatyard.ledger.filters.conditions import OrderBy, Predicate
from boatyard.ledger.queue import Queue
from boatyard.ledger.records import Claim, ClaimRequest, EventRow, Finish, Lease, Page
from boatyard.ledger.schema import require_current, require_key
from boatyard.ledger.seal import Seal
from boatyard.ledger.stories import Stories
from boatyard.ledger.wakes import Wakes
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.projection import SENSITIVE

T = TypeVar("T")
OnWrite = Callable[[str], Awaitable[None] | None]
logger = logging.getLogger(__name__)

CHANNEL = "boatyard"
POLL_SECONDS = 1.0
BATCH = 1000
_CLOCK_SECONDS = 30.0
_RECONNECT_SECONDS = 0.2
_BREATH_SECONDS = 0.01


class Ledger:
    """One database. Safe to share between tasks; every call is one round trip unless it says otherwise.

    `wakes` ring on every commit of this process and on every published batch of any;
    `published` ring on published batches only, once per batch.
    """

    def __init__(
        self,
        url: str,
        connections: Connections,
        *,
        seal: Seal,
        application: str,
        sensitive: Mapping[str, Sequence[str]],
        on_write: OnWrite | None,
    ) -> None:
        self._url = url
        self._connections = connections
        self._application = application
        self._on_write = on_write
        self._codec = Codec(seal, sensitive)
        self._documents = Documents(connections, self._codec)
        self._claims = Claims(connections)
        self._queue = Queue(connections)
        self._events = Events(connections, seal)
        self.contents = Contents(connections)
        self.stories = Stories(connections)
        self.seal = seal
        self.clock = DatabaseClock()
        self.wakes = Wakes()
        self.published = Wakes()
        self.hints = asyncio.Event()  # something was committed here and is not published yet

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        seal: Seal,
        application: str,
        on_write: OnWrite | None = None,
        pool_size: int = 10,
        sensitive: Mapping[str, Sequence[str]] = SENSITIVE,
    ) -> Ledger:
        """Refused when the schema is not ours or the seal key is not the database's."""
        connections = await Connections.open(url, application=application, size=pool_size)
        try:
            await require_current(connections)
            await require_key(connections, seal)
            ledger = cls(
                url,
                connections,
                seal=seal,
                application=application,
                sensitive=sensitive,
                on_write=on_write,
            )
            await ledger.set_clock()
        except BaseException:
            await connections.close()
            raise
        return ledger

    async def close(self) -> None:
        await self._connections.close()

    async def set_clock(self) -> None:
        """Looks at the database's clock."""
        rows = await self._connections.read("reading the time", "select clock_timestamp()")
        self.clock.set(rows[0][0])

    async def read(self, doing: str, query: str, *args: object) -> Sequence[asyncpg.Record]:
        """Rows of the tables themselves, for those who check the ledger rather than use it."""
        return await self._connections.read(doing, query, *args)

    # --- documents -------------------------------------------------------------------------------

    async def get(self, cls: type[T], id: str, *, sealed: bool = False) -> T | None:
        """The document with its secrets in clear; `sealed` shows `***` in their place."""
        return await self._documents.get(cls, id, sealed=sealed)

    async def get_many(
        self, cls: type[T], ids: Sequence[str], *, sealed: bool = False
    ) -> dict[str, T]:
        """Those of the documents that exist, by id."""
        return await self._documents.get_many(cls, ids, sealed=sealed)

    async def find(
        self,
        cls: type[T],
        *,
        name: str,
        tenants: Sequence[str] | None,
        project: str | None = None,
        sealed: bool = False,
    ) -> builtins.list[T]:
        """All documents of that name, in these tenants (None: in all) and this project (None: in any)."""
        return await self._documents.find(
            cls, name=name, tenants=tenants, project=project, sealed=sealed
        )

    async def list(
        self,
        cls: type[T],
        *,
        where: Predicate | None = None,
        tenants: Sequence[str] | None = None,
        order: Sequence[OrderBy] = (),
        offset: int = 0,
        limit: int = 100,
        with_total: bool = True,
        sealed: bool = False,
    ) -> Page[T]:
        """One page, ordered by `order` and then by id. A full page with a total is two round trips."""
        return await self._documents.list(
            cls,
            where=where,
            tenants=tenants,
            order=order,
            offset=offset,
            limit=limit,
            with_total=with_total,
            sealed=sealed,
        )

    async def archived(self, cls: type[T], id: str, *, sealed: bool = False) -> T | None:
        """The document as it left."""
        return await self._documents.archived(cls, id, sealed=sealed)

    async def archived_find(
        self, cls: type[T], name: str, tenants: Sequence[str] | None, *, sealed: bool = False
    ) -> T | None:
        """The last document of that name to leave."""
        return await self._documents.archived_find(cls, name, tenants, sealed=sealed)

    async def commit(
        self,
        changes: Sequence[Change],
        *,
        lease: Lease | None = None,
        finish: Finish | None = None,
        now: datetime,
    ) -> None:
        """All of the changes, and the end of the pass, or none of them.

        With a lease, LeaseLost when it has passed to another. Unavailable means that the connection
        was lost: whether it was committed is unknown. Look again before repeating; the version
        guard makes a repeated Replace a Conflict, never a second write.
        """
        if finish is not None and lease is None:
            raise ValueError("only what is leased can be finished")
        argument = payload(changes, self._codec, lease=lease, finish=finish, now=now)
        name = label(changes)
        await self._tell(f"before:commit:{name}")
        await self._connections.write("committing", "select boatyard_commit($1)", argument)
        self.hints.set()
        self.wakes.fire()
        await self._tell(f"after:commit:{name}")

    # --- scarce things ---------------------------------------------------------------------------

    async def claim(
        self,
        pool: str,
        candidates: Sequence[str],
        owner: str,
        *,
        tenant: str = "",
        lease: Lease | None = None,
        now: datetime,
    ) -> str | None:
        """What the owner holds of the pool, or else the first free candidate; None when all are taken.

        May be called any number of times. LeaseLost when the lease has passed to another.
        """
        request = ClaimRequest(pool, candidates, owner)
        return (await self.claim_many([request], tenant=tenant, lease=lease, now=now))[0]

    async def claim_many(
        self,
        requests: Sequence[ClaimRequest],
        *,
        tenant: str = "",
        lease: Lease | None = None,
        now: datetime,
    ) -> builtins.list[str | None]:
        """Like `claim` for each of them, all in one transaction."""
        pools = ", ".join(sorted({request.pool for request in requests}))
        await self._tell(f"before:claim:{pools}")
        given = await self._claims.claim_many(requests, tenant=tenant, lease=lease, now=now)
        await self._tell(f"after:claim:{pools}")
        return given

    async def claims(self, owner_prefix: str) -> builtins.list[Claim]:
        """What this owner and those below it (`prefix/…`) hold."""
        return await self._claims.claims(owner_prefix)

    async def pool_claims(self, pool: str) -> builtins.list[Claim]:
        """Everything claimed of a pool."""
        return await self._claims.pool_claims(pool)

    async def reserved(self, pool: str) -> int:
        """The sum of the pool's reservations."""
        return await self._claims.reserved(pool)

    async def reserved_by_pool(self) -> dict[str, int]:
        """The sum of every pool's reservations, pools in which something is reserved only."""
        return await self._claims.reserved_by_pool()

    async def reservations(self, owner: str) -> dict[str, int]:
        """The owner's amounts by pool."""
        return await self._claims.reservations(owner)

    # --- work ------------------------------------------------------------------------------------

    async def take(
        self, *, kinds: Sequence[str], limit: int, lease_seconds: float, worker: str, now: datetime
    ) -> builtins.list[Lease]:
        """Leases what is due: one of each tenant before a second of any, the most overdue first."""
        return await self._queue.take(
            kinds=kinds, limit=limit, lease_seconds=lease_seconds, worker=worker, now=now
        )

    async def extend(
        self, leases: Sequence[Lease], lease_seconds: float, now: datetime
    ) -> set[tuple[str, str]]:
        """Prolongs the leases that are still held, and names them as (kind, id)."""
        return await self._queue.extend(leases, lease_seconds, now)

    async def forgive(self, lease: Lease) -> None:
        """Counts one attempt less: whoever held this lease lives, it was only too slow."""
        await self._queue.forgive(lease)

    async def next_due(self) -> datetime | None:
        """The earliest moment at which something is due or a lease ends."""
        return await self._queue.next_due()

    # --- events ----------------------------------------------------------------------------------

    async def publish(self, *, poke: bool = False) -> int:
        """Numbers all that was committed before the call; `poke` wakes other processes in any case."""
        total = 0
        while True:
            numbered = await self._events.publish(many=BATCH, poke=poke and total == 0)
            total += numbered
            if numbered < BATCH:
                return total

    async def events_after(
        self,
        seq: int,
        limit: int,
        *,
        tenants: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> builtins.list[EventRow]:
        """Events with larger numbers, in order. Refused when `seq` was trimmed away or is not given yet."""
        return await self._events.after(seq, limit, tenants, kinds)

    async def first_seq(self) -> int:
        """The first number that is kept, given or not."""
        return (await self._events.bounds())[0]

    async def last_seq(self) -> int:
        """The last number given; 0 when there is none."""
        return (await self._events.bounds())[1]

    async def happenings(
        self, kind_ids: Sequence[tuple[str, str]], limit: int
    ) -> builtins.list[EventRow]:
        """The latest published events of some objects, oldest first."""
        return await self._events.happenings(kind_ids, limit)

    async def trim_events(self, before: datetime) -> int:
        """Forgets the oldest events, all of them older than `before`; how many."""
        return await self._events.trim(before)

    async def run(self) -> None:
        """Publishes and listens until cancelled. Every process that commits or watches runs this."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.run_publisher())
            tasks.create_task(self.run_listener())

    async def run_publisher(self) -> None:
        """Publishes after commits of this process, and every second what others left behind."""
        while True:
            hinted = await self._hinted(POLL_SECONDS)
            try:
                await self.publish(poke=hinted)
                await asyncio.sleep(_BREATH_SECONDS)  # what is committed meanwhile shares one batch
            except Unavailable:
                logger.warning("events cannot be published", exc_info=True)
                self.hints.set()
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def run_listener(self) -> None:
        """Rings the bells when any process has published; reconnects, and rings once it has."""
        while True:
            try:
                await self._listen()
            except (Unavailable, Refused):  # the address was good when the ledger was opened
                logger.warning("not listening to PostgreSQL", exc_info=True)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self) -> None:
        """Returns when the connection is lost, and is Unavailable when that happens before it listens."""
        lost = asyncio.Event()
        connection = await connect(self._url, f"{self._application} listener")
        try:
            connection.add_termination_listener(lambda _: lost.set())
            try:
                async with asyncio.timeout(STATEMENT_SECONDS):
                    await connection.add_listener(CHANNEL, lambda *_: self._ring())
            except (asyncpg.PostgresError, *DROPPED) as error:
                raise translate(error, "beginning to listen") from error
            await self.set_clock()
            self._ring()  # whatever was missed while nobody listened
            while not lost.is_set():
                try:
                    async with asyncio.timeout(_CLOCK_SECONDS):
                        await lost.wait()
                except TimeoutError:
                    await self.set_clock()
        finally:
            connection.terminate()

    def _ring(self) -> None:
        self.published.fire()
        self.wakes.fire()

    async def _hinted(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self.hints.wait()
        except TimeoutError:
            return False
        self.hints.clear()
        return True

    async def _tell(self, text: str) -> None:
        if self._on_write is not None:
            answer = self._on_write(text)
            if inspect.isawaitable(answer):
                await answer
