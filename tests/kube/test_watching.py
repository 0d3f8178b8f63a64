"""Watches and informers against a real API server, with a real etcd that forgets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.errors import Expired
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.kube.watch_stream import WatchEvent
from tests.support.control_plane import ControlPlane


async def put(client: KubeClient, namespace: str, name: str, value: str = "") -> str:
    """The resourceVersion after it."""
    seen = await client.apply(CONFIG_MAPS, name, {"data": {"v": value}}, namespace)
    return str(seen["metadata"]["resourceVersion"])


@asynccontextmanager
async def informing(client: KubeClient, namespace: str, **more: object) -> AsyncIterator[Informer]:
    informer = Informer(client, CONFIG_MAPS, namespace, first_pause=0.05, **more)  # type: ignore[arg-type]
    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        running = group.create_task(informer.run())
        await informer.synced.wait()
        yield informer
        running.cancel()


def values(informer: Informer) -> dict[str, str]:
    return {key.partition("/")[2]: item["data"]["v"] for key, item in informer.items()}


async def until_seen(informer: Informer, wanted: dict[str, str]) -> None:
    while values(informer) != wanted:
        await informer.next_key()


async def test_a_watch_tells_what_happens_after_a_list(client: KubeClient, namespace: str) -> None:
    await put(client, namespace, "before")
    listed = await client.list(CONFIG_MAPS, namespace)
    await put(client, namespace, "a", "1")
    await put(client, namespace, "a", "2")
    await client.delete(CONFIG_MAPS, "a", namespace)

    watch = client.watch(CONFIG_MAPS, namespace, resource_version=listed.resource_version)
    async with asyncio.timeout(20), aclosing(watch) as stream:
        events = [(await anext(stream)) for _ in range(3)]

    assert [(seen.type, seen.object["metadata"]["name"]) for seen in events] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


async def test_a_watch_ends_in_good_order_with_a_bookmark(
    client: KubeClient, namespace: str
) -> None:
    version = (await client.list(CONFIG_MAPS, namespace)).resource_version
    elsewhere = await put(client, "default", "moves-the-version-on", namespace)

    events: list[WatchEvent] = []
    async with asyncio.timeout(100):
        while not events:  # a busy server may miss the moment shortly before the end
            watch = client.watch(CONFIG_MAPS, namespace, resource_version=version, seconds=12)
            events = [seen async for seen in watch]

    # Nothing happened here, and yet the place to resume from has moved beyond what happened elsewhere.
    assert {seen.type for seen in events} == {"BOOKMARK"}
    assert int(events[-1].resource_version) >= int(elsewhere)


async def test_one_request_can_list_and_watch(client: KubeClient, namespace: str) -> None:
    await put(client, namespace, "a", "1")
    watch = client.watch(CONFIG_MAPS, namespace, resource_version="", initial=True)
    async with asyncio.timeout(20), aclosing(watch) as stream:
        seen = await anext(stream)
        assert (seen.type, seen.object["metadata"]["name"]) == ("ADDED", "a")
        assert (await anext(stream)).is_initial_end


async def test_a_watch_from_what_was_compacted_is_expired(
    client: KubeClient, namespace: str, plane: ControlPlane
) -> None:
    old = (await client.list(CONFIG_MAPS, namespace)).resource_version
    last = await put(client, namespace, "a")
    plane.compact(last)
    # Within its own window the server tells from memory; a new one has only what etcd still knows.
    plane.restart("kube-apiserver")
    plane.until_ready()

    watch = client.watch(CONFIG_MAPS, namespace, resource_version=old)
    with pytest.raises(Expired):
        async with asyncio.timeout(30), aclosing(watch) as stream:
            await anext(stream)


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_informer_that_was_cut_off_for_too_long_lists_again(
    client: KubeClient,
    namespace: str,
    plane: ControlPlane,
    streaming: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="boatyard.kube.informer")
    await put(client, namespace, "stays", "1")
    await put(client, namespace, "goes", "1")
    async with gate(plane.port) as between:
        afar = KubeClient(replace(client.config, server=f"https://127.0.0.1:{between.port}"))
        async with informing(afar, namespace, streaming=streaming) as informer:
            await until_seen(informer, {"stays": "1", "goes": "1"})
            between.shut()
            await put(client, namespace, "comes", "2")
            await client.delete(CONFIG_MAPS, "goes", namespace)
            plane.compact(await put(client, namespace, "stays", "2"))
            plane.restart("kube-apiserver")
            plane.until_ready()
            assert values(informer) == {"stays": "1", "goes": "1"}
            between.open()

            await until_seen(informer, {"stays": "2", "comes": "2"})
            assert "watch expired, objects are listed again" in caplog.messages
            await put(client, namespace, "comes", "3")
            await until_seen(informer, {"stays": "2", "comes": "3"})
        await afar.close()


async def test_an_informer_that_was_cut_off_briefly_resumes(
    client: KubeClient, namespace: str, plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="boatyard.kube.informer")
    await put(client, namespace, "goes", "1")
    async with gate(plane.port) as between:
        afar = KubeClient(replace(client.config, server=f"https://127.0.0.1:{between.port}"))
        async with informing(afar, namespace) as informer:
            await until_seen(informer, {"goes": "1"})
            between.shut()
            await client.delete(CONFIG_MAPS, "goes", namespace)
            await put(client, namespace, "comes", "2")
            between.open()

            await until_seen(informer, {"comes": "2"})
            assert "watch expired, objects are listed again" not in caplog.messages
        await afar.close()


class Gate:
    """Between a client and the server; shut, all connections are cut and none is let through."""

    def __init__(self, server: int) -> None:
        self.port = 0
        self._server = server
        self._is_open = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None] | None] = set()

    def open(self) -> None:
        self._is_open = True

    def shut(self) -> None:
        self._is_open = False
        for writer in self._writers:
            writer.transport.abort()

    async def pass_through(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._passing.add(task := asyncio.current_task())
        there, back = await asyncio.open_connection("127.0.0.1", self._server)
        self._writers |= {writer, back}
        if not self._is_open:
            self.shut()
        async with asyncio.TaskGroup() as group:
            group.create_task(_pipe(reader, back))
            group.create_task(_pipe(there, writer))
        self._writers -= {writer, back}
        self._passing.discard(task)

    async def until_left(self) -> None:
        while self._passing:
            await asyncio.wait([task for task in self._passing if task], timeout=10)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def gate(port: int) -> AsyncIterator[Gate]:
    between = Gate(port)
    server = await asyncio.start_server(between.pass_through, "127.0.0.1", 0)
    between.port = server.sockets[0].getsockname()[1]
    async with server:
        yield between
        between.shut()
        await between.until_left()
