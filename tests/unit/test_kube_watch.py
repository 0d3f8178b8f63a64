"""A watch tells everything once and in order, and says plainly how it ended."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.errors import Expired
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.kube.watch_stream import WatchEvent
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from tests.support.scripted_kube import (
    Says,
    Silence,
    Watches,
    bookmark,
    connected,
    event,
    failure,
    gone,
)


async def answered_by(
    client: KubeClient, **more: float
) -> tuple[list[WatchEvent], BoatyardError | None]:
    """All events until the end, and what the end was."""
    events: list[WatchEvent] = []
    watch = client.watch(CONFIG_MAPS, "ns", resource_version="5", **more)  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(5), aclosing(watch) as stream:
            async for seen in stream:
                events.append(seen)
    except BoatyardError as error:
        return events, error
    return events, None


async def test_events_come_in_order_and_bookmarks_with_them() -> None:
    big = "x" * 300_000  # more than any buffer on the way
    async with connected() as (told, client):
        told.tell(Watches((event("ADDED", "a", 6, data={"x": big}), b"\n", bookmark(9))))
        told.tell(Watches((event("DELETED", "a", 10),)))

        events, end = await answered_by(client)

        assert [(seen.type, seen.resource_version) for seen in events] == [
            ("ADDED", "6"),
            ("BOOKMARK", "9"),
        ]
        assert events[0].object["data"]["x"] == big
        assert end is None


async def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    async with connected() as (told, client):
        told.tell(Watches())

        await answered_by(client, seconds=77)

        query = told.asked[0].query
        assert query["watch"] == query["allowWatchBookmarks"] == "true"
        assert (query["resourceVersion"], query["timeoutSeconds"]) == ("5", "77")


async def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    async with connected() as (told, client):
        told.tell(Watches((event("ADDED", "a", 6), bookmark(7, initial=True), bookmark(8))))

        watch = client.watch(CONFIG_MAPS, "ns", resource_version="", initial=True)
        ends = [seen.is_initial_end async for seen in watch]

        assert ends == [False, True, False]
        assert told.asked[0].query["sendInitialEvents"] == "true"
        assert told.asked[0].query["resourceVersionMatch"] == "NotOlderThan"
        assert "resourceVersion" not in told.asked[0].query


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Watches((gone(),), then="hang"), id="by an event"),
        pytest.param(failure(410, "Expired"), id="by the code"),
    ],
)
async def test_a_version_no_longer_kept_is_expired(answer: Watches | Says) -> None:
    async with connected() as (told, client):
        told.tell(answer)

        events, end = await answered_by(client)

        assert isinstance(end, Expired)
        assert events == []


@pytest.mark.parametrize(
    "answer, reason",
    [
        pytest.param(Watches((event("ADDED", "a", 6),), then="cut"), "Cut", id="cut"),
        pytest.param(
            Watches((event("ADDED", "a", 6), b'{"type": "ADDED", "obj')),
            "Cut",
            id="ended within an event",
        ),
        pytest.param(
            Watches((event("ADDED", "a", 6), b"not json\n")), "NotJson", id="malformed JSON"
        ),
        pytest.param(
            Watches((event("ADDED", "a", 6), b'{"type": "ADDED"}\n')), "NotJson", id="no object"
        ),
        pytest.param(
            Watches((event("ADDED", "a", 6), b'{"type": "ADDED", "object": {}}\n')),
            "NotJson",
            id="an object without a version",
        ),
        pytest.param(
            Watches((event("ADDED", "a", 6),), then="hang"), "Timeout", id="without a sign"
        ),
    ],
)
async def test_an_end_out_of_order_is_unavailable(answer: Watches, reason: str) -> None:
    async with connected() as (told, client):
        told.tell(answer)

        events, end = await answered_by(client, silence=0.2)

        assert [seen.resource_version for seen in events] == ["6"]
        assert isinstance(end, Unavailable)
        assert end.reason == reason


async def test_any_sign_keeps_a_watch_alive() -> None:
    # Each event within the bound, all of them far beyond it.
    class Slowly(Watches):
        async def give(self, request):  # type: ignore[no-untyped-def]
            from aiohttp import web

            response = web.StreamResponse()
            await response.prepare(request)
            for number in range(8):
                await asyncio.sleep(0.1)
                await response.write(json.dumps(bookmark(number)).encode() + b"\n")
            return response

    async with connected() as (told, client):
        told.tell(Slowly())

        events, end = await answered_by(client, silence=0.5)

        assert (len(events), end) == (8, None)


@pytest.mark.parametrize(
    "answer, kind",
    [
        pytest.param(failure(403, "Forbidden"), Refused, id="forbidden"),
        pytest.param(failure(500), Unavailable, id="broken"),
        pytest.param(Silence(), Unavailable, id="no answer"),
        pytest.param(
            Watches(({"type": "ERROR", "object": {"kind": "Status", "code": 500}},)),
            Unavailable,
            id="an error event",
        ),
    ],
)
async def test_what_goes_wrong_has_its_kind(
    answer: Says | Silence | Watches, kind: type[BoatyardError]
) -> None:
    async with connected(timeout=0.3) as (told, client):
        told.tell(answer)

        _, end = await answered_by(client)

        assert isinstance(end, kind)
        assert not isinstance(end, Expired)


async def test_closing_the_client_ends_a_watch() -> None:
    async with connected() as (told, client):
        told.tell(Watches((bookmark(6),), then="hang"))
        watch = client.watch(CONFIG_MAPS, "ns", resource_version="5")
        async with aclosing(watch) as stream:
            await anext(stream)
            await client.close()

            with pytest.raises(Unavailable):
                async with asyncio.timeout(5):
                    await anext(stream)


async def test_closing_the_client_ends_a_watch_that_waits() -> None:
    async with connected() as (told, client):
        told.tell(Watches((bookmark(6),), then="hang"))
        watch = client.watch(CONFIG_MAPS, "ns", resource_version="5")
        async with aclosing(watch) as stream:
            await anext(stream)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)

            await client.close()

            with pytest.raises(Unavailable) as raised:
                await asyncio.wait_for(waiting, timeout=5)
            assert raised.value.reason == "Closed"


async def test_leaving_a_watch_early_gives_its_connection_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("boatyard.kube.transport.MOST_WATCHES", 1)
    async with connected(timeout=2) as (told, client):
        for _ in range(3):
            told.tell(Watches((bookmark(6),), then="hang"))
            watch = client.watch(CONFIG_MAPS, "ns", resource_version="5")
            async with aclosing(watch) as stream:
                await anext(stream)

        assert len(told.asked) == 3
