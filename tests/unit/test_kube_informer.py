"""An informer's copy becomes what the server has, whatever happens on the way, and asks for no more than needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from boatyard.kube.informer import Informer, split_key
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.model.errors import Unavailable
from tests.support.scripted_kube import (
    Says,
    ScriptedKube,
    Watches,
    bookmark,
    connected,
    event,
    failure,
    gone,
    listing,
    thing,
    until,
)


@asynccontextmanager
async def informed(*answers: Any, **more: Any) -> AsyncIterator[tuple[ScriptedKube, Informer]]:
    """An informer at work on a server that gives these answers, then nothing any more."""
    async with connected() as (told, client):
        told.tell(*answers)
        informer = Informer(client, CONFIG_MAPS, first_pause=0.01, longest_pause=0.04, **more)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            try:
                yield told, informer
            finally:
                running.cancel()


async def keys(informer: Informer, count: int) -> list[str]:
    return [await informer.next_key() for _ in range(count)]


def versions_asked(told: ScriptedKube) -> list[str]:
    """Per request "list", or the version a watch was asked from."""
    return [
        asked.query.get("resourceVersion", "-") if "watch" in asked.query else "list"
        for asked in told.asked
    ]


async def test_what_is_there_is_told_and_then_what_happens() -> None:
    async with informed(
        listing(5, thing("a", 1), thing("b", 2)),
        Watches((event("MODIFIED", "b", 6), event("ADDED", "c", 7), event("DELETED", "a", 8))),
    ) as (told, informer):
        await informer.synced.wait()
        await told.until_asked(3)

        assert await keys(informer, 3) == ["ns/a", "ns/b", "ns/c"]
        assert informer.get("ns/a") is None
        assert sorted(key for key, _ in informer.items()) == ["ns/b", "ns/c"]
        assert versions_asked(told) == ["list", "5", "8"]


async def test_many_changes_of_one_object_are_one_with_the_last_state() -> None:
    changes = [event("MODIFIED", "a", version, data={"n": version}) for version in range(6, 60)]
    async with informed(listing(5, thing("a", 1)), Watches(tuple(changes))) as (told, informer):
        await told.until_asked(3)

        assert informer.pending_count == 1
        assert await informer.next_key() == "ns/a"
        seen = informer.get("ns/a")
        assert seen is not None
        assert seen["data"] == {"n": 59}
        assert informer.pending_count == 0


async def test_a_watch_that_ends_is_resumed_from_the_last_event() -> None:
    async with informed(
        listing(5),
        Watches((event("ADDED", "a", 6),)),
        Watches((event("ADDED", "b", 7),), then="cut"),
    ) as (told, informer):
        await told.until_asked(4)

        assert versions_asked(told) == ["list", "5", "6", "7"]
        assert len(informer) == 2


async def test_bookmarks_alone_move_the_place_to_resume_from() -> None:
    async with informed(listing(5), Watches((bookmark(40), bookmark(90)))) as (told, informer):
        await told.until_asked(3)

        assert versions_asked(told) == ["list", "5", "90"]
        assert informer.pending_count == 0


async def test_a_watch_without_a_sign_is_resumed() -> None:
    async with informed(
        listing(5), Watches((event("ADDED", "a", 6),), then="hang"), silence=0.2
    ) as (told, _):
        await told.until_asked(3)

        assert versions_asked(told) == ["list", "5", "6"]


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param(Watches((gone(),)), id="event"),
        pytest.param(failure(410, "Expired"), id="code"),
    ],
)
async def test_after_410_it_lists_again_and_finds_what_was_deleted_meanwhile(
    expired: Says | Watches,
) -> None:
    async with informed(
        listing(5, thing("stays", 1), thing("goes", 2), thing("changes", 3)),
        expired,
        listing(50, thing("stays", 1), thing("changes", 44), thing("comes", 45)),
        Watches((event("ADDED", "later", 51),)),
    ) as (told, informer):
        assert sorted(await keys(informer, 3)) == ["ns/changes", "ns/goes", "ns/stays"]
        await told.until_asked(5)

        # What is the same as before is not told again.
        assert sorted(await keys(informer, 4)) == ["ns/changes", "ns/comes", "ns/goes", "ns/later"]
        assert informer.get("ns/goes") is None
        assert versions_asked(told) == ["list", "5", "list", "50", "51"]


async def test_an_object_made_anew_under_its_name_is_told() -> None:
    again = thing("a", 1)
    again["metadata"]["uid"] = "another"
    async with informed(listing(5, thing("a", 1)), Watches((gone(),)), listing(9, again)) as (
        _,
        informer,
    ):
        assert await keys(informer, 2) == ["ns/a", "ns/a"]
        seen = informer.get("ns/a")
        assert seen is not None
        assert seen["metadata"]["uid"] == "another"


async def test_a_server_that_is_away_is_asked_ever_more_slowly_and_the_copy_stays() -> None:
    async with informed(
        listing(5, thing("a", 1)),
        Watches((), then="cut"),
        *[failure(500, message="etcd is away")] * 6,
        Watches((bookmark(6),), then="hang"),
    ) as (told, informer):
        rests: list[float] = []
        rest = informer._wait_before_retry

        async def counted() -> None:
            if informer._failures:
                rests.append(informer.retry_delay)
                assert informer.problem
            await rest()

        informer._wait_before_retry = counted  # type: ignore[method-assign]
        await told.until_asked(9)

        assert rests == [0.01, 0.02, 0.04, 0.04, 0.04, 0.04, 0.04]
        assert set(versions_asked(told)[1:]) == {"5"}
        assert len(informer) == 1
        await until(lambda: not informer.problem)


async def test_a_watch_that_ends_at_once_again_and_again_is_no_hot_loop() -> None:
    async with informed(listing(5), *[Watches()] * 3) as (told, informer):
        await told.until_asked(5)

        assert "at once" in informer.problem


async def test_what_is_not_allowed_is_tried_again_and_said() -> None:
    async with informed(failure(403, "Forbidden", "may not list"), listing(5)) as (told, informer):
        await informer.synced.wait()

        assert versions_asked(told)[:2] == ["list", "list"]


async def test_expired_over_and_over_is_no_hot_loop() -> None:
    answers = [answer for n in range(4) for answer in (listing(n), Watches((gone(),)))]
    async with informed(*answers) as (told, informer):
        await told.until_asked(6)

        assert informer._failures > 0


async def test_one_request_can_list_and_watch() -> None:
    async with informed(
        Watches((event("ADDED", "a", 3), event("ADDED", "b", 5), bookmark(6, initial=True))),
        Watches((gone(),)),
        Watches((event("ADDED", "b", 5), bookmark(9, initial=True)), then="hang"),
        streaming=True,
    ) as (told, informer):
        assert await keys(informer, 3) == ["ns/a", "ns/b", "ns/a"]
        assert informer.get("ns/a") is None
        assert versions_asked(told) == ["-", "6", "-"]


async def test_initial_events_that_are_cut_begin_anew() -> None:
    async with informed(
        Watches((event("ADDED", "a", 9),), then="cut"),
        Watches((event("ADDED", "a", 9), event("ADDED", "b", 5), bookmark(10, initial=True))),
        streaming=True,
    ) as (told, informer):
        await informer.synced.wait()
        await told.until_asked(3)

        assert versions_asked(told) == ["-", "-", "10"]
        assert len(informer) == 2


async def test_a_server_without_initial_events_is_listed() -> None:
    async with informed(failure(422, "Invalid"), listing(5, thing("a", 1)), streaming=True) as (
        told,
        informer,
    ):
        assert await informer.next_key() == "ns/a"
        await told.until_asked(3)
        assert versions_asked(told) == ["-", "list", "5"]


async def test_callbacks_see_what_was_and_what_is() -> None:
    seen: list[tuple[str, bool, bool]] = []
    async with informed(
        listing(5, thing("a", 1)),
        Watches((event("MODIFIED", "a", 6), event("DELETED", "a", 7))),
        on_change=lambda key, old, new: seen.append((key, old is not None, new is not None)),
    ) as (told, informer):
        await told.until_asked(3)

        assert seen == [("ns/a", False, True), ("ns/a", True, True), ("ns/a", True, False)]
        assert informer.pending_count == 0, "nobody asks for keys, so none are kept"


async def test_managed_fields_are_not_kept() -> None:
    item = thing("a", 1)
    item["metadata"]["managedFields"] = [{"manager": "x"}]
    async with informed(listing(5, item)) as (_, informer):
        key = await informer.next_key()

        kept = informer.get(key)
        assert kept is not None
        assert "managedFields" not in kept["metadata"]


async def test_closing_the_client_ends_the_informer_and_who_waits_for_it() -> None:
    async with connected() as (told, client):
        told.tell(failure(500))
        informer = Informer(client, CONFIG_MAPS, first_pause=3600, longest_pause=3600)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await until(lambda: informer.problem)  # and now it rests for an hour
            await client.close()
            await running

        with pytest.raises(Unavailable):
            await informer.next_key()


async def test_a_marked_key_is_given_again() -> None:
    async with informed(listing(5, thing("a", 1))) as (_, informer):
        key = await informer.next_key()
        informer.mark_changed(key)
        assert await informer.next_key() == key
        assert split_key(key) == ("ns", "a")
