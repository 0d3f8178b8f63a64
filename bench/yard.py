"""One Boatyard made of real processes: PostgreSQL, twin, `serve` and `work`. Used by every benchmark here."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import asyncpg
import grpc
from processes import family

from boatyard.api.authentication import TokenIssuer
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import migrate
from boatyard.ledger.seal import Seal
from boatyard.model.caller import SHARED, CallerRole
from boatyard.model.wire import message, services
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import Layout, demo_layout, write_layout
from boatyard.wiring import seed_catalogue
from boatyard.wiring.service_process import ISSUER_KEY, SEAL_KEY

READY_SECONDS = 60.0
STOP_SECONDS = 20.0
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0))


class Broken(Exception):
    """A process did not do what it was started for; the benchmark cannot go on."""


class Yard:
    """Started on entering, stopped and removed on leaving. The first catalogue is in it."""

    def __init__(
        self, *, layout: Layout | None = None, serves: int = 1, works: int = 1, twin: bool = True
    ) -> None:
        self._layout = layout or demo_layout()
        self._serves, self._works, self._twin = serves, works, twin
        self._stack = AsyncExitStack()
        self._processes: dict[str, list[asyncio.subprocess.Process]] = {}
        self.data = Path()
        self.url = ""
        self.addresses: list[str] = []

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        self.data = Path(tempfile.mkdtemp(prefix="boatyard-bench-"))
        self.data.chmod(0o755)  # PostgreSQL may run as another user below it
        self._stack.callback(shutil.rmtree, self.data, ignore_errors=True)
        layout = self.data / "layout.json"
        layout.write_bytes(write_layout(self._layout))
        self._environment = os.environ | {
            "BOATYARD_DATA": str(self.data),
            "BOATYARD_TWIN_LAYOUT": str(layout),
            "BOATYARD_TWIN_DELAYS": "instant",
            "BOATYARD_GRPC": "127.0.0.1:0",
            "BOATYARD_REST": "127.0.0.1:0",
            "BOATYARD_LOG_LEVEL": "warning",
            "BOATYARD_ASSETS": str(self.data / "no-assets"),  # what is measured is simulated
        }
        self._postgres = EmbeddedPostgres(self.data)
        await self._stack.enter_async_context(self._postgres)
        self.url = self._postgres.url()
        await migrate(self.url)
        await self._fill()
        self._environment["BOATYARD_DATABASE_URL"] = self.url
        if self._twin:
            await self.start("twin")
        for _ in range(self._serves):
            said = await self.start("serve")
            self.addresses.append(said.split("gRPC ")[1].split()[0])
        for _ in range(self._works):
            await self.start("work")

    async def _fill(self) -> None:
        async with self.ledger() as ledger:
            await seed_catalogue.fill_catalogue(ledger, self._layout, now=ledger.clock.now())

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        seal = Seal.load_or_create(self.data / SEAL_KEY)
        ledger = await Ledger.open(self.url, seal=seal, application="bench")
        try:
            yield ledger
        finally:
            await ledger.close()

    # --- processes ---------------------------------------------------------------------------

    async def start(self, verb: str, *words: str) -> str:
        """Starts one more `boatyard <verb>`; what it said when it was ready."""
        command = [sys.executable, "-m", "boatyard.app.main", verb, *words]
        process, said = await self.run_beside(verb, command)
        self._processes.setdefault(verb, []).append(process)
        return said

    async def run_beside(
        self, name: str, command: list[str], tell: str = ""
    ) -> tuple[asyncio.subprocess.Process, str]:
        """Starts a process that says one line when it is ready, and ends with this yard.

        It is told `tell` first, if anything. It is not counted as ours.
        """
        log = self.data / f"{name}.log"
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=self._environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=1 << 20,
            )
        self._stack.push_async_callback(_stop, process)
        assert process.stdin is not None
        assert process.stdout is not None
        if tell:
            process.stdin.write(tell.encode() + b"\n")
        try:
            async with asyncio.timeout(READY_SECONDS):
                line = (await process.stdout.readline()).decode().strip()
        except TimeoutError:
            line = ""
        if not line:
            raise Broken(f"{name} did not start:\n{log.read_text()[-2000:]}")
        return process, line

    async def stop(self, verb: str) -> None:
        """Ends the processes of one verb."""
        for process in self._processes.pop(verb, []):
            await _stop(process)

    def groups(self) -> dict[str, list[int]]:
        """The ids of all our processes, by what they are."""
        found = {
            name: [pid for process in processes for pid in family(process.pid)]
            for name, processes in self._processes.items()
        }
        return found | {"postgres": family(self._postgres.pid)}

    def complaints(self, most: int = 5) -> list[str]:
        """The last lines the processes logged; warnings and errors only."""
        lines = []
        for name in self._processes:
            log = self.data / f"{name}.log"
            lines += [f"{name}: {line}" for line in log.read_text().splitlines()[-most:]]
        return lines

    # --- ways in -----------------------------------------------------------------------------

    def token(
        self, tenant: str = "", user: str = "bench", role: CallerRole = CallerRole.OPERATOR
    ) -> str:
        issuer = TokenIssuer.load_or_create(self.data / ISSUER_KEY)
        return issuer.create_token(
            tenant=tenant or SHARED,
            user=user,
            role=role,
            ttl=timedelta(days=1),
            now=datetime.now(UTC),
        )

    async def sql(self, query: str, *args: Any) -> list[Any]:
        connection = await asyncpg.connect(self.url)
        try:
            return list(await connection.fetch(query, *args))
        finally:
            await connection.close()

    async def twin_call(self, verb: str, **args: Any) -> Any:
        client = TwinClient(self.data / "twin.sock")
        try:
            return await client.call(verb, **args)
        finally:
            await client.close()


class Door:
    """A gRPC client for one address and one token."""

    def __init__(self, address: str, token: str) -> None:
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._methods: dict[str, tuple[Any, Any]] = {}

    async def call(self, method: str, /, **fields: Any) -> Any:
        """For example `call("osac.public.v1.Clusters/Get", id=…)`."""
        if method not in self._methods:
            self._methods[method] = self._prepare(method)
        request, invoke = self._methods[method]
        return await invoke(request(**fields), metadata=self._metadata, timeout=60)

    def _prepare(self, method: str) -> tuple[Any, Any]:
        service, _, name = method.partition("/")
        described = services()[service].methods_by_name[name]
        request = message(described.input_type.full_name)
        invoke = self._channel.unary_unary(
            f"/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=message(described.output_type.full_name).FromString,
        )
        return request, invoke

    async def close(self) -> None:
        await self._channel.close()


async def in_parallel(items: Iterable[Any], at_once: int, act: Any) -> None:
    """Does something to every item, so many at a time."""
    waiting = iter(items)

    async def lane() -> None:
        for item in waiting:
            await act(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(lane())


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
