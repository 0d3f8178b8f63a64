"""The guards are seen to work: with one of them taken out, the promise it keeps is broken and its test fails."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
from _pytest.outcomes import Failed

from boatyard.ledger import schema, work
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.errors import BoatyardError
from tests.ledger import test_claims, test_documents, test_events, test_run_logs, test_work
from tests.ledger.docs import at

ROUNDS = 20  # a race may end well by luck, but not every time

DATA, DELETE = "data = c -> 'data'", "delete from documents"
WHERE = "\n                        where kind = c ->> 'kind' and id = c ->> 'id'"
VERSION = " and version = (c ->> 'version')::integer"

Scenario = Callable[[Ledger, str], Awaitable[None]]


@pytest.fixture
async def database_url(empty_database_url: str) -> str:
    """A database of its own: what is broken here is not used again."""
    await schema.migrate(empty_database_url)
    return empty_database_url


@pytest.fixture
async def ledger(database_url: str, seal: Seal) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(database_url, seal=seal, application="test", pool_size=20)
    yield opened
    await opened.close()


async def plant(url: str, step: str, guard: str, instead: str) -> None:
    """Puts something else where the guard is, in every statement that has it."""
    (migration,) = (known for known in schema.read_migrations() if known.name == step)
    statements = re.split(r";\n\n(?=\S)", migration.sql)  # what is inside a function is indented
    guarded = [text for text in statements if guard in text]
    assert guarded, f"the guard is not written like this any more: {guard}"
    for text in guarded:
        broken = text.replace(guard, instead).replace(
            "create function", "create or replace function"
        )
        await execute(url, broken)


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def fails(scenario: Callable[[], Awaitable[None]], url: str) -> bool:
    """Whether the scenario fails, tried on an emptied database until it does."""
    for _ in range(ROUNDS):
        await execute(
            url,
            "truncate documents, archive, events, event_log, claims, reservations, pools, work, wakes,"
            " stories, story_lines; insert into event_log values (0, 0)",
        )
        try:
            await scenario()
        except (AssertionError, Failed, BoatyardError):
            return True
        except BaseExceptionGroup:
            return True
    return False


async def stale_version(ledger: Ledger, url: str) -> None:
    await test_documents.test_a_replace_of_a_stale_version_is_a_conflict_and_stores_nothing(ledger)


async def stale_archive(ledger: Ledger, url: str) -> None:
    await test_documents.test_an_archive_at_a_stale_version_is_a_conflict_and_the_newer_document_stays(
        ledger
    )


async def stale_token(ledger: Ledger, url: str) -> None:
    await test_work.test_a_stale_workers_write_is_thrown_away(ledger)


async def stale_claim(ledger: Ledger, url: str) -> None:
    await test_claims.test_a_stale_worker_claims_nothing(ledger)


async def poked(ledger: Ledger, url: str) -> None:
    await test_work.test_a_poke_during_a_lease_is_not_lost(ledger, at(60))


async def woken(ledger: Ledger, url: str) -> None:
    await test_work.test_a_wake_between_the_look_and_the_decision_to_wait_is_not_lost(ledger)


async def reserved(ledger: Ledger, url: str) -> None:
    await test_claims.test_reservations_never_pass_the_capacity_under_concurrency(ledger, url)


async def referred(ledger: Ledger, url: str) -> None:
    await test_claims.test_a_reference_and_a_deletion_racing_leave_no_dangling_reference(ledger)


async def published(ledger: Ledger, url: str) -> None:
    seal = ledger.seal
    await test_events.test_writers_and_two_publishers_at_once_leave_no_gap_and_keep_each_objects_order(
        ledger, url, seal
    )


async def told_again(ledger: Ledger, url: str) -> None:
    await test_run_logs.test_a_line_that_is_known_is_not_kept_twice(ledger)


async def told_at_once(ledger: Ledger, url: str) -> None:
    await test_run_logs.test_several_workers_at_once_lose_and_double_nothing(ledger)


async def told_much(ledger: Ledger, url: str) -> None:
    await test_run_logs.test_the_newest_lines_are_kept_and_the_reader_is_told_what_is_missing(
        ledger
    )


async def told_at_length(ledger: Ledger, url: str) -> None:
    await test_run_logs.test_bytes_are_bounded_too(ledger)


async def forgotten(ledger: Ledger, url: str) -> None:
    await test_run_logs.test_a_story_stays_with_its_order_and_is_forgotten_some_time_after_it(
        ledger
    )


@pytest.mark.parametrize(
    "scenario, step, guard, instead",
    [
        pytest.param(stale_version, "commit", f"{DATA}{WHERE}{VERSION}", f"{DATA}{WHERE}",
                     id="the version of a replace"),
        pytest.param(stale_archive, "commit", f"{DELETE}{WHERE}{VERSION}", f"{DELETE}{WHERE}",
                     id="the version of an archive"),
        pytest.param(
            stale_token, "commit", "if held is distinct from", "if null = ", id="the token"
        ),
        pytest.param(
            stale_claim, "claim", "if lease is not null", "if false", id="the token of a claim"
        ),
        pytest.param(poked, "commit", "least((finish ->> 'due')::timestamptz, poke)",
                     "(finish ->> 'due')::timestamptz", id="the poke"),
        pytest.param(woken, "commit", "next_due := least(next_due, moment)", "null", id="the wake"),
        pytest.param(reserved, "commit", "where pool = c ->> 'pool' for update",
                     "where pool = c ->> 'pool'", id="the pool's lock"),
        pytest.param(reserved, "commit", "if delta > 0 and total + delta >", "if null and 0 >",
                     id="the capacity"),
        pytest.param(referred, "commit",
                     "perform pg_advisory_xact_lock_shared(boatyard_key('document'",
                     "perform (boatyard_key('document'", id="the reference's lock"),
        pytest.param(published, "events",
                     "perform pg_advisory_xact_lock(boatyard_key('publisher', '', ''));", "",
                     id="the publisher's lock"),
        pytest.param(told_again, "stories", "and known.number = given.number", "and false",
                     id="the known line"),
        pytest.param(told_at_once, "stories", "where order_id = the_order for update",
                     "where order_id = the_order", id="the story's lock"),
        pytest.param(told_much, "stories", "head.last_seq - head.dropped > most_lines", "false",
                     id="the most lines"),
        pytest.param(told_at_length, "stories", "or head.bytes > most_bytes", "",
                     id="the most bytes"),
        pytest.param(forgotten, "stories", "d.kind = 'Order'", "false", id="the order of a story"),
        pytest.param(forgotten, "stories", "a.archived >= before", "false",
                     id="the time after an order"),
    ],
)  # fmt: skip
async def test_without_its_guard_a_promise_is_broken(
    ledger: Ledger, database_url: str, scenario: Scenario, step: str, guard: str, instead: str
) -> None:
    await scenario(ledger, database_url)
    await plant(database_url, step, guard, instead)

    assert await fails(lambda: scenario(ledger, database_url), database_url)


async def test_without_its_unique_key_one_thing_is_handed_out_twice(
    ledger: Ledger, database_url: str
) -> None:
    await execute(database_url, "alter table claims drop constraint claims_pkey")

    assert await fails(
        lambda: test_claims.test_twenty_claimers_at_once_get_twenty_different_things(ledger),
        database_url,
    )


async def test_without_ranks_a_crowd_keeps_others_waiting(
    ledger: Ledger, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        work, "_TAKE_QUERY", work._TAKE_QUERY.replace("order by place, due", "order by due")
    )
    monkeypatch.setattr(
        work, "_TAKE_QUERY", work._TAKE_QUERY.replace("order by c.place, c.due", "order by c.due")
    )

    assert await fails(
        lambda: test_work.test_a_crowd_of_one_tenant_does_not_keep_another_waiting(ledger),
        database_url,
    )
