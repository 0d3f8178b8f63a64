"""The twin as a process: what was answered survives SIGKILL; clients reconnect and time out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.processes.socket_protocol import LONGEST_SOCKET_PATH
from boatyard.twin.client import TwinClient
from boatyard.twin.process import serve_twin

HUB = "boston-1"


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, for the kernel's sake: the path of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="twin-") as directory:
        yield Path(directory)


class Process:
    """A real twin process that can be killed and started again on the same directory."""

    def __init__(self, directory: Path, *program: str) -> None:
        self.directory = directory
        self.program = program or ("-m", "boatyard.twin")
        self.socket = directory / "s"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, *options: str) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, *self.program, "--state", str(self.directory / "state")),
            *("--socket", str(self.socket), "--delays", "instant", *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert await self.process.stdout.readline() == b"ready\n"

    async def end(self, how: signal.Signals) -> int:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode


@pytest.fixture
async def twin(directory: Path) -> AsyncIterator[Process]:
    process = Process(directory)
    await process.start()
    yield process
    await process.end(signal.SIGKILL)


@contextlib.asynccontextmanager
async def served(directory: Path, **options: Any) -> AsyncIterator[TwinClient]:
    """The same server on this test's own loop."""
    stop, ready = asyncio.Event(), asyncio.Event()
    path = directory / "s"
    async with asyncio.TaskGroup() as tasks:
        start = {"delays": "instant", "stop": stop, "on_ready": ready.set, **options}
        tasks.create_task(serve_twin(directory / "state", path, **start))
        await ready.wait()
        client = TwinClient(path, timeout=60)
        try:
            yield client
        finally:
            await client.close()
            stop.set()


async def make(client: TwinClient, number: int) -> Any:
    name = f"n{number}.boston.example"
    args = {"hub": HUB, "key": f"o{number}/name", "name": name, "address": "192.0.2.1"}
    return await client.call("dns.ensure_record", **args)


async def drop(client: TwinClient, number: int) -> Any:
    return await client.call("dns.release_record", hub=HUB, key=f"o{number}/name")


@dataclass
class TwinAnswers:
    """What callers were told before the twin was killed."""

    made: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    asked_to_drop: set[int] = field(default_factory=set)
    enough: asyncio.Event = field(default_factory=asyncio.Event)


async def make_and_drop(client: TwinClient, numbers: Iterator[int], told: TwinAnswers) -> None:
    """Works until the twin is gone; what was asked then may have happened or not."""
    with contextlib.suppress(Unavailable):
        for number in numbers:
            await make(client, number)
            told.made.add(number)
            if number % 3 == 0:
                told.asked_to_drop.add(number)
                await drop(client, number)
                told.dropped.add(number)
            if number % 300 == 0:
                told.enough.set()


async def check_that_kills_lose_nothing(twin: Process, lives: int) -> None:
    told, numbers = TwinAnswers(), itertools.count(1)
    for _ in range(lives):
        client = TwinClient(twin.socket, timeout=20)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(make_and_drop(client, numbers, told))
            await told.enough.wait()
            assert await twin.end(signal.SIGKILL) == -signal.SIGKILL
        await client.close()
        told.enough.clear()
        await twin.start()

    client = TwinClient(twin.socket, timeout=20)
    held = set((await client.call("twin.truth"))[HUB]["record"])
    effects = await client.call("twin.effects")
    history = await client.call("twin.history", limit=50_000)
    await client.close()

    assert len(told.made) > 200 * lives
    assert {f"o{number}/name" for number in told.made - told.asked_to_drop} <= held
    assert {f"o{number}/name" for number in told.dropped}.isdisjoint(held)
    assert all(effect["applied"] <= 1 for effect in effects)
    seen = [happening["number"] for happening in history["happenings"]]
    assert seen == list(range(1, history["newest"] + 1))


async def test_no_answered_effect_is_lost_by_sigkill(twin: Process) -> None:
    await check_that_kills_lose_nothing(twin, lives=4)


ANSWERS_TOO_EARLY = """
from boatyard.twin.journal import Journal
append, kept = Journal.append, []
def late(self, entries):
    kept.extend(entries)
    if len(kept) > 50:
        append(self, list(kept))
        kept.clear()
Journal.append = late
from boatyard.twin.__main__ import main
main()
"""


async def test_a_twin_that_answers_before_it_writes_is_found(directory: Path) -> None:
    twin = Process(directory, "-c", ANSWERS_TOO_EARLY)
    await twin.start()
    try:
        with pytest.raises(AssertionError):
            await check_that_kills_lose_nothing(twin, lives=2)
    finally:
        await twin.end(signal.SIGKILL)


async def test_an_effect_asked_again_after_a_kill_is_still_one(twin: Process) -> None:
    client = TwinClient(twin.socket)
    await make(client, 1)
    await twin.end(signal.SIGKILL)
    with pytest.raises(Unavailable):
        await make(client, 1)
    await twin.start()

    assert isinstance(await make(client, 1), Done)
    (effect,) = await client.call("twin.effects")
    await client.close()

    assert (effect["applied"], effect["removed"]) == (1, 0)


async def test_sigterm_is_clean(twin: Process) -> None:
    client = TwinClient(twin.socket)
    await make(client, 1)

    assert await twin.end(signal.SIGTERM) == 0

    assert not twin.socket.exists()
    await client.close()


async def test_it_ends_with_its_parent(directory: Path) -> None:
    twin = Process(directory)
    await twin.start("--with-parent")
    assert twin.process is not None
    assert twin.process.stdin is not None

    twin.process.stdin.close()
    async with asyncio.timeout(20):
        await twin.process.communicate()

    assert twin.process.returncode == 0


async def test_a_second_twin_on_the_same_directory_is_refused(twin: Process) -> None:
    second = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "boatyard.twin", "--state", str(twin.directory / "state")),
        *("--socket", str(twin.directory / "other")),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await second.communicate()

    assert second.returncode == 4
    assert b"another twin is running" in said


async def test_every_kind_of_answer_crosses_the_socket(directory: Path) -> None:
    async with served(directory) as client:
        await client.call("twin.set_delays", profile="instant", overrides={"host": 60.0})
        hold = {"hub": HUB, "key": "o/host/a", "host": "r1-n1"}

        assert await client.call("dns.zone", hub=HUB) == "boston.example"
        assert await make(client, 1) == Done({"name": "n1.boston.example"})
        waiting = await client.call("inventory.ensure_held", **hold)
        assert isinstance(waiting, Waiting)
        assert waiting.why == "A host is starting its agent."
        with pytest.raises(Refused) as refused:
            await client.call("inventory.ensure_held", **{**hold, "key": "p/host/a"})
        assert refused.value.reason == "HeldByAnother"
        with pytest.raises(NotFound):
            await client.call("platform.access", hub=HUB, cluster_key="o/cluster")
        bind = {"hub": HUB, "key": "o/port/a", "network_key": "o/l2", "host": "r1-n1"}
        with pytest.raises(Unavailable) as unavailable:
            await client.call("l2.ensure_port", **bind)
        assert unavailable.value.reason == "NoNetwork"


async def test_calls_overlap_and_slow_ones_hold_up_nobody(directory: Path) -> None:
    async with served(directory) as client:
        await client.call("twin.set_fault", hub=HUB, service="l3", profile="slow", seconds=0.05)
        assert len(await client.call("l3.subnets", hub=HUB)) == 256

        await client.call("twin.set_fault", hub=HUB, service="l2", profile="slow", seconds=600)
        slow = asyncio.create_task(client.call("l2.vlans", hub=HUB))

        answers = await asyncio.gather(*(make(client, number) for number in range(500)))

        assert len(answers) == 500
        assert not slow.done()
        slow.cancel()


async def test_a_silent_service_is_unavailable_after_the_timeout(directory: Path) -> None:
    async with served(directory) as client:
        args = {"hub": HUB, "service": "dns", "profile": "dead", "silent": True}
        await client.call("twin.set_fault", **args)
        impatient = TwinClient(directory / "s", timeout=0.05)
        with pytest.raises(Unavailable, match="did not answer"):
            await make(impatient, 1)
        await impatient.close()
        assert await client.call("l2.ping", hub=HUB)


async def test_a_twin_that_is_not_there_is_unavailable(directory: Path) -> None:
    client = TwinClient(directory / "nobody")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await client.call("twin.ping")
    await client.close()


async def test_the_journal_is_replaced_by_snapshots_and_nothing_is_lost(directory: Path) -> None:
    async with served(directory, replace_journal_at=2_000) as client:
        await asyncio.gather(*(churn(client, number) for number in range(200)))
        truth = await client.call("twin.truth")
        effects = await client.call("twin.effects")
    assert len(list((directory / "state").glob("snapshot-*"))) == 1

    async with served(directory) as client:
        assert await client.call("twin.truth") == truth
        again = await client.call("twin.effects")

    def made(found: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
        return [(effect["key"], effect["applied"], effect["removed"]) for effect in found]

    assert made(again) == made(effects)
    assert len(truth[HUB]["record"]) == 100


async def churn(client: TwinClient, number: int) -> None:
    for _ in range(2):
        await make(client, number)
        await drop(client, number)
    if number % 2:
        await make(client, number)


async def test_a_client_that_speaks_something_else_is_cut_off_and_others_live_on(
    directory: Path,
) -> None:
    async with served(directory) as client:
        for nonsense in (b"\xff" * 64, b"\0\0\0\3abc", b"\0\0\0\1\xc0"):
            reader, writer = await asyncio.open_unix_connection(directory / "s")
            writer.write(nonsense)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert await client.call("twin.ping")


async def test_a_disk_that_fails_ends_the_twin_without_an_answer(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    async def fill_the_disk() -> None:
        async with served(directory) as client:
            await make(client, 1)
            monkeypatch.setattr(os, "fdatasync", full)
            with contextlib.suppress(Unavailable):
                assert await make(client, 2) is None, "answered without being on disk"

    with pytest.raises(ExceptionGroup) as ended:
        await fill_the_disk()
    assert ended.group_contains(OSError)
    monkeypatch.undo()

    async with served(directory) as client:
        assert "o1/name" in (await client.call("twin.truth"))[HUB]["record"]


def test_a_socket_path_the_kernel_cannot_take_is_refused() -> None:
    with pytest.raises(Refused, match="shorter"):
        TwinClient(Path("/" + "x" * LONGEST_SOCKET_PATH))


async def test_the_socket_is_for_its_owner_only(directory: Path) -> None:
    async with served(directory):
        assert (directory / "s").stat().st_mode & 0o777 == 0o600
        assert (directory / "state").stat().st_mode & 0o777 == 0o700
