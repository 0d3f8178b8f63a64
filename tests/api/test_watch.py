"""Watches: in order, nothing lost, nothing twice, nothing of strangers; over gRPC, NDJSON and SSE."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from boatyard.api import watch
from boatyard.api.authentication import TokenIssuer
from boatyard.api.kinds import KINDS
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.caller import CallerRole
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Failed, running
from tests.api.watching import take, watching
from tests.support.postgres import KEY

together = pytest.mark.asyncio(loop_scope="module")
DOORS = ("grpc", "ndjson", "sse")


async def _cluster(environment: ApiEnvironment, tenant: str = "acme", **more: Any) -> Any:
    sample = next(sample for sample in samples.SAMPLES if sample.kind == "Cluster").fresh()
    del sample["metadata"]["tenant"]
    sample["spec"] |= more
    token = environment.token("member", tenant)
    return await environment.grpc.call(
        f"{PUBLIC}.Clusters", "Create", {"object": sample}, token=token
    )


async def _label(environment: ApiEnvironment, id: str, value: str, tenant: str = "acme") -> Any:
    body = {
        "object": {"id": id, "metadata": {"labels": {"n": value}}},
        "update_mask": "metadata.labels",
    }
    token = environment.token("member", tenant)
    return await environment.grpc.call(f"{PUBLIC}.Clusters", "Update", body, token=token)


@pytest.mark.parametrize("door", DOORS)
@together
async def test_a_watch_shows_what_happens_from_now_on(
    environment: ApiEnvironment, door: str
) -> None:
    await _cluster(environment)
    async with watching(environment, door, token=environment.token("viewer")) as events:
        made = await _cluster(environment)
        await _label(environment, made["id"], "1")
        await environment.grpc.call(
            f"{PUBLIC}.Clusters", "Delete", {"id": made["id"]}, token=environment.token("member")
        )
        seen = await take(events, 3)
    assert [event["type"] for event in seen] == [
        "EVENT_TYPE_OBJECT_CREATED",
        "EVENT_TYPE_OBJECT_UPDATED",
        "EVENT_TYPE_OBJECT_UPDATED",
    ]
    assert [event["cluster"]["id"] for event in seen] == [made["id"]] * 3
    assert seen[0]["cluster"] == made
    assert len({event["id"] for event in seen}) == 3
    assert seen[0]["reason"] == "Created"
    assert seen[0]["message"] == "Created by member-of-acme"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "text, count",
    [
        ("has(event.cluster)", 2),
        (
            'has(event.cluster) && (event.cluster.id == "ID" || event.cluster.metadata.name == "ID")',
            2,
        ),
        ("event.type == EVENT_TYPE_OBJECT_UPDATED", 1),
        ("event.type == 1 && has(event.cluster)", 1),
        ('event.cluster.metadata.labels["n"] == "1"', 1),
        ("has(event.host_type)", 0),
        ("has(event.compute_instance)", 0),  # a kind of the contract that is not served
        ('has(event.secret) && event.secret.metadata.name == "x"', 0),
    ],
)
@together
async def test_filters_of_watches(
    environment: ApiEnvironment, door: str, text: str, count: int
) -> None:
    """Forms that the contract's command line sends, among others."""
    made = await _cluster(environment)
    async with watching(
        environment, door, token=environment.token("viewer"), filter=text.replace("ID", made["id"])
    ) as events:
        other = await _cluster(environment) if "ID" in text else made
        await _label(environment, made["id"], "0" if other is made else "1")
        if other is made:
            created = await _cluster(environment)
            await _label(environment, created["id"], "1")
        else:
            await _label(environment, made["id"], "2")
        expected = count + (1 if text in ("has(event.cluster)",) else 0)
        expected += 1 if "UPDATED" in text else 0
        assert len(await take(events, expected)) == expected
        if not count:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await anext(events)


@pytest.mark.parametrize("door", DOORS)
@together
async def test_a_bad_filter_or_place_is_refused_at_once(
    environment: ApiEnvironment, door: str
) -> None:
    for asked in (
        {"filter": "event.nonsense == 1"},
        {"filter": "event.type =="},
        {"filter": "event.cluster.status.hub == 'x'"},
        {"filter": "event.cluster.spec.pull_secret.startsWith('a')"},
        {"filter": "has(event.hub)"},
        {"after": "not-an-event"},
        {"after": "00" * 16},
        {"after": environment.ledger.seal.event_id(10**12)},
    ):
        with pytest.raises(Failed) as failed:
            async with watching(
                environment, door, token=environment.token("viewer"), **asked
            ) as events:
                await take(events, 1)
        assert failed.value.code == "INVALID_ARGUMENT", asked


@pytest.mark.parametrize("door", DOORS)
@together
async def test_strangers_hubs_signals_and_orders_are_not_shown(
    environment: ApiEnvironment, door: str
) -> None:
    operator = environment.token("operator")
    async with watching(environment, door, token=environment.token("admin", "globex")) as events:
        theirs = await _cluster(environment, "acme", pull_secret="very-secret")
        hub = next(sample for sample in samples.SAMPLES if sample.kind == "Hub").fresh()
        await environment.grpc.call(f"{PRIVATE}.Hubs", "Create", {"object": hub}, token=operator)
        mine = await _cluster(environment, "globex", pull_secret="very-secret")
        signal = {"id": mine["id"]}
        await environment.grpc.call(f"{PRIVATE}.Clusters", "Signal", signal, token=operator)
        await _label(environment, mine["id"], "last", "globex")
        seen = await take(events, 2)
    assert {event["cluster"]["id"] for event in seen} == {mine["id"]}
    assert [event["type"][18:] for event in seen] == ["CREATED", "UPDATED"]
    assert theirs["id"] not in str(seen)
    assert "very-secret" not in str(seen)
    assert seen[0]["cluster"]["spec"]["pull_secret"] == "***"
    assert "finalizers" not in str(seen)


@pytest.mark.parametrize("sample", samples.SAMPLES, ids=str)
@together
async def test_what_happens_to_any_kind_is_shown(
    environment: ApiEnvironment, sample: samples.Sample
) -> None:
    service, operator = f"{PRIVATE}.{sample.service}", environment.token("operator")
    payload = KINDS[sample.kind].field
    async with watching(environment, "grpc", token=operator, package=PRIVATE) as events:
        body = {"object": sample.fresh()}
        made = await environment.grpc.call(service, "Create", body, token=operator)
        changed = {"id": made["id"], **sample.fresh_change()}
        body = {"object": changed, "update_mask": sample.mask}
        await environment.grpc.call(service, "Update", body, token=operator)
        await environment.grpc.call(service, "Delete", {"id": made["id"]}, token=operator)
        seen = await take(events, 3)
    assert [event[payload]["id"] for event in seen] == [made["id"]] * 3
    assert seen[0][payload] == made
    assert [event["type"] for event in seen[:2]] == [
        "EVENT_TYPE_OBJECT_CREATED",
        "EVENT_TYPE_OBJECT_UPDATED",
    ]


@together
async def test_operators_see_everything_in_their_package(environment: ApiEnvironment) -> None:
    operator = environment.token("operator")
    async with watching(environment, "grpc", token=operator, package=PRIVATE) as events:
        hub = next(sample for sample in samples.SAMPLES if sample.kind == "Hub").fresh()
        made = await environment.grpc.call(
            f"{PRIVATE}.Hubs", "Create", {"object": hub}, token=operator
        )
        await environment.grpc.call(f"{PRIVATE}.Hubs", "Signal", {"id": made["id"]}, token=operator)
        await _cluster(environment, "globex")
        seen = await take(events, 3)
    assert seen[0]["hub"]["spec"]["kubeconfig"] == "Kioq"  # *** in base64
    assert seen[1]["type"] == "EVENT_TYPE_OBJECT_SIGNALED"
    assert seen[1]["hub"]["id"] == made["id"]
    assert seen[2]["cluster"]["metadata"]["tenant"] == "globex"
    with pytest.raises(Failed) as failed:
        async with watching(
            environment, "grpc", token=environment.token("admin"), package=PRIVATE
        ) as events:
            await take(events, 1)
    assert failed.value.code == "PERMISSION_DENIED"


@pytest.mark.parametrize("door", DOORS)
@together
async def test_a_watch_ends_with_its_token(
    environment: ApiEnvironment, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = environment.issuer.create_token(
        tenant="acme",
        user="ann",
        role=CallerRole.VIEWER,
        ttl=timedelta(minutes=5),
        now=environment.ledger.clock.now(),
    )
    async with watching(environment, door, token=token) as events:
        await _cluster(environment)
        assert await take(events, 1)
        later = environment.ledger.clock.now() + timedelta(minutes=6)
        body = {"object": samples.cluster(f"late-{door}")}
        member = environment.token("member")
        monkeypatch.setattr(environment.server._grpc._callers._checker, "_now", lambda: later)
        await environment.grpc.call(f"{PUBLIC}.Clusters", "Create", body, token=member)
        if door == "grpc":
            with pytest.raises(Failed) as failed:
                await take(events, 1)
            assert failed.value.code == "UNAUTHENTICATED"
        else:
            with pytest.raises(KeyError):  # {"error": …} instead of a result
                await take(events, 1)


@together
async def test_event_ids_tell_nothing_about_strangers(environment: ApiEnvironment) -> None:
    async with watching(environment, "grpc", token=environment.token("viewer")) as events:
        for _ in range(3):
            await _cluster(environment)
        ids = [event["id"] for event in await take(events, 3)]
    assert all(len(id) == 32 for id in ids)
    assert len({id[:8] for id in ids}) == 3, "no shared beginning that would count up"


@together
async def test_where_a_watch_begins_does_not_tell_whether_strangers_were_at_work(
    environment: ApiEnvironment,
) -> None:
    begun = set()
    for _ in range(3):
        async with watching(
            environment, "grpc", token=environment.token("viewer"), after=""
        ) as events:
            begun.add((await anext(events))["id"])
    assert len(begun) == 3


@together
async def test_who_asks_for_bookmarks_has_a_place_to_resume_from_before_the_first_event(
    environment: ApiEnvironment,
) -> None:
    token = environment.token("viewer")
    async with watching(environment, "grpc", token=token, after="") as events:
        bookmark = await anext(events)
    assert bookmark["bookmark"] is True
    made = await _cluster(environment)
    async with watching(environment, "grpc", token=token, after=bookmark["id"]) as events:
        assert (await anext(events))["bookmark"] is True
        assert (await take(events, 1))[0]["cluster"]["id"] == made["id"]


@pytest.fixture
async def two_environments(
    ledger: Ledger, database_url: str, issuer: TokenIssuer
) -> AsyncIterator[list[ApiEnvironment]]:
    """Two servers, each with a ledger of its own, on one database."""
    other = await Ledger.open(database_url, seal=Seal.from_bytes(KEY), application="other")
    try:
        async with running(ledger, issuer) as first, running(other, issuer) as second:
            await samples.stock(first)
            yield [first, second]
    finally:
        await other.close()


@pytest.mark.parametrize("door", ["grpc", "sse"])
async def test_a_hundred_cuts_across_two_servers_lose_and_repeat_nothing(
    two_environments: list[ApiEnvironment], door: str
) -> None:
    chance = random.Random(7)
    ids = [(await _cluster(two_environments[0]))["id"] for _ in range(5)]
    strangers = (await _cluster(two_environments[0], "globex"))["id"]
    begin = await _last(two_environments[0].ledger)
    cuts, wanted = 100, 500
    seen: list[tuple[str, int]] = []
    token = two_environments[0].token("viewer")

    async def write(part: int) -> None:
        for number in range(wanted // 2):
            environment = two_environments[chance.randrange(2)]
            await _label(environment, chance.choice(ids), f"{part}-{number}")
            if number % 10 == 0:
                await _label(environment, strangers, f"{part}-{number}", "globex")

    async def read() -> None:
        after = two_environments[0].ledger.seal.event_id(begin)
        done = 0
        while len(seen) < wanted:
            environment = two_environments[done % 2]
            upto = chance.randrange(1, wanted // cuts) if done < cuts else wanted
            async with watching(environment, door, token=token, after=after) as events:
                for _ in range(min(upto, wanted - len(seen))):
                    event = (await take(events, 1))[0]
                    after = event["id"]
                    seen.append((event["cluster"]["id"], event["cluster"]["metadata"]["version"]))
            done += 1
        assert done >= cuts

    async with asyncio.timeout(100), asyncio.TaskGroup() as tasks:
        tasks.create_task(write(1))
        tasks.create_task(write(2))
        tasks.create_task(read())
    assert seen == await _logged(two_environments[0].ledger, begin, "acme")


async def test_a_watcher_far_behind_catches_up_and_goes_on(
    two_environments: list[ApiEnvironment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAGE_EVENTS", 50)  # so that a hundred events are three pages
    first, second = two_environments
    begin = await _last(first.ledger)
    id = (await _cluster(first))["id"]
    for number in range(100):
        await _label(first, id, str(number))
    token, after = first.token("viewer"), first.ledger.seal.event_id(begin)
    async with watching(second, "grpc", token=token, after=after) as events:
        behind = await take(events, 101)
        await _label(first, id, "live")
        live = await take(events, 1)
    versions = [event["cluster"]["metadata"].get("version", 0) for event in behind + live]
    assert versions == list(range(102))


async def test_a_stopping_server_ends_its_watches_and_they_resume_elsewhere(
    ledger: Ledger, database_url: str, issuer: TokenIssuer
) -> None:
    other = await Ledger.open(database_url, seal=Seal.from_bytes(KEY), application="other")
    async with running(ledger, issuer) as first:
        await samples.stock(first)
        async with running(other, issuer) as second:
            token = first.token("viewer")
            async with watching(second, "grpc", token=token) as events:
                made = await _cluster(first)
                last = (await take(events, 1))[0]["id"]
                await second.server.stop(grace=1)
                with pytest.raises(Failed) as failed:
                    await take(events, 1)
            assert failed.value.code in ("UNAVAILABLE", "CANCELLED")
        await _label(first, made["id"], "1")
        async with watching(first, "grpc", token=token, after=last) as events:
            assert (await take(events, 1))[0]["cluster"]["metadata"]["labels"] == {"n": "1"}
    with contextlib.suppress(Exception):
        await other.close()


async def _last(ledger: Ledger) -> int:
    await ledger.events.publish()
    return await ledger.events.last_seq()


async def _logged(ledger: Ledger, begin: int, tenant: str) -> list[tuple[str, int]]:
    rows = await ledger.events.list_after(begin, 10_000, tenants=[tenant])
    return [
        (row.id, msgspec.json.decode(row.doc)["metadata"]["version"]) for row in rows if row.doc
    ]
