"""Hubs are read once for all who ask in a process, and never told older than promised."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from boatyard.ledger.changes import Archive, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.osac import Hub, HubSpec, Metadata
from boatyard.wiring import hub_cache
from boatyard.wiring.hub_cache import HubCache

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG = 1e9


@pytest.fixture
async def hub(ledger: Ledger) -> Hub:
    await ledger.commit(
        [Insert(Hub(id="h-1", metadata=Metadata(name="one"), spec=HubSpec(kubeconfig=b"secret")))],
        now=NOW,
    )
    hub = await ledger.documents.get(Hub, "h-1")
    assert hub is not None
    return hub


def cache_of(ledger: Ledger, fresh_seconds: float) -> HubCache:
    cache = HubCache(ledger)
    cache.fresh_seconds = fresh_seconds
    return cache


async def rename(ledger: Ledger, hub: Hub, name: str) -> Hub:
    renamed_hub = msgspec.structs.replace(
        hub, metadata=msgspec.structs.replace(hub.metadata, name=name)
    )
    await ledger.commit([Replace(renamed_hub)], now=NOW)
    stored_hub = await ledger.documents.get(Hub, hub.id)
    assert stored_hub is not None
    return stored_hub


async def test_a_fresh_hub_is_not_read_again_whoever_asks(ledger: Ledger, hub: Hub) -> None:
    cache = cache_of(ledger, LONG)
    assert await cache.registered("h-1") == hub
    renamed_hub = await rename(ledger, hub, "two")

    assert await cache.registered("h-1") == hub
    assert await cache.known("h-1") == hub

    assert await cache.read_all() == [renamed_hub], "a list is read now, and tells the others"
    assert await cache.known("h-1") == renamed_hub
    assert hub.spec.kubeconfig == b"secret", "in clear: clients are made from it"


async def test_a_hub_that_is_no_longer_fresh_is_read_again(ledger: Ledger, hub: Hub) -> None:
    cache = cache_of(ledger, 0.0)
    assert await cache.known("h-1") == hub

    renamed_hub = await rename(ledger, hub, "two")

    assert await cache.known("h-1") == renamed_hub
    assert await cache.registered("h-1") == renamed_hub


async def test_a_removed_hub_is_known_but_not_registered(ledger: Ledger, hub: Hub) -> None:
    await ledger.commit([Archive(hub)], now=NOW)
    cache = cache_of(ledger, LONG)

    known_hub = await cache.known("h-1")

    assert known_hub is not None
    assert known_hub.id == "h-1"
    assert await cache.registered("h-1") is None
    assert await cache.read_all() == []


async def test_a_hub_that_was_not_there_is_seen_as_soon_as_it_is(ledger: Ledger) -> None:
    cache = cache_of(ledger, LONG)
    assert await cache.known("h-2") is None
    assert await cache.registered("h-2") is None

    await ledger.commit([Insert(Hub(id="h-2"))], now=NOW)

    assert await cache.registered("h-2") is not None
    assert await cache.known("h-2") is not None


async def test_a_slow_list_does_not_bring_back_what_was_read_before_a_change(
    ledger: Ledger, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_of(ledger, LONG)
    list_hubs = ledger.documents.list
    listed, changed = asyncio.Event(), asyncio.Event()

    async def list_slowly(*args: Any, **options: Any) -> Any:
        page = await list_hubs(*args, **options)
        listed.set()
        await changed.wait()
        return page

    monkeypatch.setattr(ledger.documents, "list", list_slowly)
    slow_list = asyncio.create_task(cache.read_all())
    await listed.wait()
    renamed_hub = await rename(ledger, hub, "two")
    assert await cache.registered("h-1") == renamed_hub

    changed.set()
    await slow_list

    assert await cache.registered("h-1") == renamed_hub


async def test_a_hub_counts_as_old_from_the_begin_of_its_read(
    ledger: Ledger, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_of(ledger, 10.0)
    get, now = ledger.documents.get, 100.0
    monkeypatch.setattr(hub_cache, "_now", lambda: now)

    async def get_slowly(*args: Any, **options: Any) -> Any:
        nonlocal now
        now += 9.0
        return await get(*args, **options)

    monkeypatch.setattr(ledger.documents, "get", get_slowly)
    assert await cache.registered("h-1") == hub
    monkeypatch.setattr(ledger.documents, "get", get)
    renamed_hub = await rename(ledger, hub, "two")
    assert await cache.registered("h-1") == hub
    now += 1.0
    assert await cache.registered("h-1") == renamed_hub
