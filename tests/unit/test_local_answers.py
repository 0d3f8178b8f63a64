"""An API server that does not answer is begun anew; one that only does not know us is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.first_words import HUNG_AFTER, Heard, is_ready, listens
from boatyard.platforms.drivers.local.records import Record, Records
from boatyard.platforms.drivers.local.rush import Rush
from tests.unit.test_local_records import record


@pytest.fixture
async def answering() -> AsyncIterator[list[str]]:
    """What the server says to whoever asks, last; its address first."""
    said = ["", "401 Unauthorized"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {said[1]}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        writer.write(head.encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    said[0] = "http://{}:{}".format(*server.sockets[0].getsockname())
    yield said
    server.close()


@pytest.mark.parametrize(
    "status, expected",
    [
        ("200 OK", Heard.YES),
        ("401 Unauthorized", Heard.STRANGER),
        ("403 Forbidden", Heard.NO),
        ("500 Internal Server Error", Heard.NO),
    ],
)
async def test_what_is_heard(answering: list[str], status: str, expected: Heard) -> None:
    answering[1] = status
    client = KubeClient(KubeConfig(server=answering[0]), patience=0.1)
    try:
        assert await is_ready(client) is expected
        assert await listens(client) is expected
    finally:
        await client.close()


@pytest.mark.parametrize("heard, ended", [(Heard.NO, True), (Heard.STRANGER, False)])
async def test_only_a_silent_api_server_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Heard, ended: bool
) -> None:
    mine, plane, stopped = old_plane(tmp_path, monkeypatch)
    plane.say(available=True, message="")
    for _ in range(3 * HUNG_AFTER):
        assert not await plane._noted(mine, heard)
    assert bool(stopped) == ended
    assert not plane.available


async def test_each_new_beginning_is_given_twice_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full machine it needs more than a minute to start: ended each time, it never would."""
    mine, plane, stopped = old_plane(tmp_path, monkeypatch)
    looks = await looks_until_ended(plane, mine, stopped, times=7)
    assert [count // HUNG_AFTER for count in looks] == [1, 2, 4, 8, 16, 16, 16]

    assert await plane._noted(mine, Heard.YES)
    assert await looks_until_ended(plane, mine, stopped, times=1) == [HUNG_AFTER]


async def looks_until_ended(
    plane: ControlPlane, mine: Record, stopped: list[str], *, times: int
) -> list[int]:
    looks = []
    for _ in range(times):
        stopped.clear()
        count = 0
        while not stopped:
            assert not await plane._noted(mine, Heard.NO)
            count += 1
        looks.append(count)
    return looks


def old_plane(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Record, ControlPlane, list[str]]:
    """One whose API servers have run for hours, and who of them was stopped."""
    records = Records(folder)
    mine = records.save(record())
    plane = ControlPlane(
        mine.slug,
        records,
        mark="test",
        program=lambda version, name: Path("/nonexistent"),
        backup_place=Path,
        rush=Rush(),
    )
    stopped: list[str] = []

    async def stop(names: Iterable[str], *, kill: bool = False) -> None:
        stopped.extend(names)

    monkeypatch.setattr(plane.crew, "stop", stop)
    monkeypatch.setattr(plane.crew, "age", lambda name, now: 9999.0)
    plane.say(available=False, message="")
    return mine, plane, stopped
