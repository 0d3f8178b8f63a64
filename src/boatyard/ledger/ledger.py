"""The ledger: its tables as parts (documents, claims, work, events, …), and the commit that changes several at once."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

import asyncpg

from boatyard.ledger.changes import Change
from boatyard.ledger.claims import Claims
from boatyard.ledger.clock import DatabaseClock
from boatyard.ledger.codec import Codec
from boatyard.ledger.commit import encode_changes, label_changes
from boatyard.ledger.connections import STATEMENT_SECONDS, Connections, open_connection
from boatyard.ledger.documents import Documents
from boatyard.ledger.events import Events
from boatyard.ledger.notifications import Notifier
from boatyard.ledger.postgres_errors import CONNECTION_ERRORS, translate_error
from boatyard.ledger.records import Finish, WorkLease
from boatyard.ledger.role_contents import RoleContents
from boatyard.ledger.run_logs import RunLogTable
from boatyard.ledger.schema import require_current, require_key
from boatyard.ledger.seal import Seal
from boatyard.ledger.work import WorkTable
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.projection import SENSITIVE

OnWrite = Callable[[str], Awaitable[None] | None]
logger = logging.getLogger(__name__)

CHANNEL = "boatyard"
POLL_SECONDS = 1.0
_CLOCK_SECONDS = 30.0
_RECONNECT_SECONDS = 0.2
_BATCH_SECONDS = 0.01


class Ledger:
    """One database. Safe to share between tasks; every call is one round trip unless it says otherwise.

    Its parts read, claim, lease and publish: `documents`, `claims`, `work`, `events`, `contents`, `stories`.
    `wakes` wakes its subscribers on every commit of this process and on every published batch of any process;
    `published` on published batches only, once per batch.
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
        self.documents = Documents(connections, self._codec)
        self.claims = Claims(connections, self._report_write)
        self.work = WorkTable(connections)
        self.events = Events(connections, seal)
        self.contents = RoleContents(connections)
        self.run_logs = RunLogTable(connections)
        self.seal = seal
        self.clock = DatabaseClock()
        self.change_notifier = Notifier()
        self.publish_notifier = Notifier()
        self.has_unpublished = (
            asyncio.Event()
        )  # something was committed here and is not published yet

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
        """Sets our clock to the database's."""
        rows = await self._connections.read("reading the time", "select clock_timestamp()")
        self.clock.set(rows[0][0])

    async def read(self, doing: str, query: str, *args: object) -> Sequence[asyncpg.Record]:
        """Returns the rows of any query, for checks of the ledger itself."""
        return await self._connections.read(doing, query, *args)

    async def commit(
        self,
        changes: Sequence[Change],
        *,
        lease: WorkLease | None = None,
        finish: Finish | None = None,
        now: datetime,
    ) -> None:
        """Commits all of the changes, and with `finish` the end of the pass, or none of them.

        With a lease, LeaseLost when another worker has it. Unavailable means that the connection
        was lost: whether it was committed is unknown. Read again before repeating; the version
        guard makes a repeated Replace a Conflict, never a second write.
        """
        if finish is not None and lease is None:
            raise ValueError("only what is leased can be finished")
        argument = encode_changes(changes, self._codec, lease=lease, finish=finish, now=now)
        name = label_changes(changes)
        await self._report_write(f"before:commit:{name}")
        await self._connections.write("committing", "select boatyard_commit($1)", argument)
        self.has_unpublished.set()
        self.change_notifier.notify_all()
        await self._report_write(f"after:commit:{name}")

    # --- publishing and listening -----------------------------------------------------------------

    async def run(self) -> None:
        """Publishes and listens until cancelled. Every process that commits or watches runs this."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.run_publisher())
            tasks.create_task(self.run_listener())

    async def run_publisher(self) -> None:
        """Publishes after commits of this process, and once a second what other processes did not publish."""
        while True:
            hinted = await self._wait_for_commit(POLL_SECONDS)
            try:
                await self.events.publish(poke=hinted)
                await asyncio.sleep(_BATCH_SECONDS)  # what is committed meanwhile shares one batch
            except Unavailable:
                logger.warning("events cannot be published", exc_info=True)
                self.has_unpublished.set()
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def run_listener(self) -> None:
        """Wakes subscribers when any process has published. Reconnects when needed, and wakes them then too."""
        while True:
            try:
                await self._listen()
            except (Unavailable, Refused):  # the address was good when the ledger was opened
                logger.warning("PostgreSQL listener not connected", exc_info=True)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self) -> None:
        """Listens until the connection is lost. Unavailable when it cannot begin to listen."""
        lost = asyncio.Event()
        connection = await open_connection(self._url, f"{self._application} listener")
        try:
            connection.add_termination_listener(lambda _: lost.set())
            try:
                async with asyncio.timeout(STATEMENT_SECONDS):
                    await connection.add_listener(CHANNEL, lambda *_: self._notify_subscribers())
            except (asyncpg.PostgresError, *CONNECTION_ERRORS) as error:
                raise translate_error(error, "beginning to listen") from error
            await self.set_clock()
            self._notify_subscribers()  # notifications were lost while nobody listened
            while not lost.is_set():
                try:
                    async with asyncio.timeout(_CLOCK_SECONDS):
                        await lost.wait()
                except TimeoutError:
                    await self.set_clock()
        finally:
            connection.terminate()

    def _notify_subscribers(self) -> None:
        self.publish_notifier.notify_all()
        self.change_notifier.notify_all()

    async def _wait_for_commit(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self.has_unpublished.wait()
        except TimeoutError:
            return False
        self.has_unpublished.clear()
        return True

    async def _report_write(self, text: str) -> None:
        if self._on_write is not None:
            answer = self._on_write(text)
            if inspect.isawaitable(answer):
                await answer
