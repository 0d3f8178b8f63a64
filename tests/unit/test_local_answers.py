"""An API server that does not answer is begun anew; one that only does not know us is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.platforms.drivers.local.api_probe import (
    FIRST_FAILURE_LIMIT,
    ProbeResult,
    probe_listening,
    probe_ready,
)
from boatyard.platforms.drivers.local.control_plane import ControlPlane
from boatyard.platforms.drivers.local.records import ClusterRecord, ClusterRecords
from boatyard.platforms.drivers.local.startup_throttle import StartupThrottle
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
        ("200 OK", ProbeResult.YES),
        ("401 Unauthorized", ProbeResult.UNAUTHORIZED),
        ("403 Forbidden", ProbeResult.NO),
        ("500 Internal Server Error", ProbeResult.NO),
    ],
)
async def test_what_is_heard(answering: list[str], status: str, expected: ProbeResult) -> None:
    answering[1] = status
    client = KubeClient(KubeConfig(server=answering[0]), patience=0.1)
    try:
        assert await probe_ready(client) is expected
        assert await probe_listening(client) is expected
    finally:
        await client.close()


@pytest.mark.parametrize(
    "heard, ended", [(ProbeResult.NO, True), (ProbeResult.UNAUTHORIZED, False)]
)
async def test_only_a_silent_api_server_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: ProbeResult, ended: bool
) -> None:
    mine, plane, stopped = old_plane(tmp_path, monkeypatch)
    plane.set_status(available=True, message="")
    for _ in range(3 * FIRST_FAILURE_LIMIT):
        assert not await plane._handle_probe(mine, heard)
    assert bool(stopped) == ended
    assert not plane.available


async def test_each_new_beginning_is_given_twice_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full machine it needs more than a minute to start: ended each time, it never would."""
    mine, plane, stopped = old_plane(tmp_path, monkeypatch)
    looks = await looks_until_ended(plane, mine, stopped, times=7)
    assert [count // FIRST_FAILURE_LIMIT for count in looks] == [1, 2, 4, 8, 16, 16, 16]

    assert await plane._handle_probe(mine, ProbeResult.YES)
    assert await looks_until_ended(plane, mine, stopped, times=1) == [FIRST_FAILURE_LIMIT]


async def looks_until_ended(
    plane: ControlPlane, mine: ClusterRecord, stopped: list[str], *, times: int
) -> list[int]:
    looks = []
    for _ in range(times):
        stopped.clear()
        count = 0
        while not stopped:
            assert not await plane._handle_probe(mine, ProbeResult.NO)
            count += 1
        looks.append(count)
    return looks


def old_plane(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[ClusterRecord, ControlPlane, list[str]]:
    """One whose API servers have run for hours, and who of them was stopped."""
    records = ClusterRecords(folder)
    mine = records.save(record())
    plane = ControlPlane(
        mine.slug,
        records,
        mark="test",
        program=lambda version, name: Path("/nonexistent"),
        backup_place=Path,
        throttle=StartupThrottle(),
    )
    stopped: list[str] = []

    async def stop(names: Iterable[str], *, kill: bool = False) -> None:
        stopped.extend(names)

    monkeypatch.setattr(plane.supervisor, "stop", stop)
    monkeypatch.setattr(plane.supervisor, "age", lambda name, now: 9999.0)
    plane.set_status(available=False, message="")
    return mine, plane, stopped
