"""Watching across two `serve` processes, cut a hundred times: nothing lost, nothing repeated, in order."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from boatyard.client.client import Client
from boatyard.client.connection import StreamStarted
from tests.support.distributed import ANY_PORT, Distributed

pytestmark = pytest.mark.timeout(240)

CUTS = 100
FILTER = "has(event.host_type)"


async def write(client: Client, stop: asyncio.Event) -> list[tuple[str, int]]:
    """Makes and changes host types, one after another; what was acknowledged, in that order."""
    done: list[tuple[str, int]] = []
    number = 0
    while not stop.is_set():
        made = await client.call(
            "osac.private.v1.HostTypes/Create",
            object={"id": f"type-{number}", "metadata": {"name": f"type-{number}"}},
        )
        done.append((made.object.id, made.object.metadata.version))
        for title in ("first", "second"):
            changed = await client.call(
                "osac.private.v1.HostTypes/Update",
                object={"id": made.object.id, "title": title},
                update_mask={"paths": ["title"]},
            )
            done.append((changed.object.id, changed.object.metadata.version))
        number += 1
    return done


async def read_some(client: Client, after: str, count: int) -> list[tuple[str, str, int]]:
    """Opens a watch, reads up to so many events, and hangs up in the middle of things."""
    seen: list[tuple[str, str, int]] = []
    fields = {"after": after} if after else {}
    watch = client.stream("osac.private.v1.Events/Watch", filter=FILTER, **fields)
    try:
        async for answer in watch:
            if isinstance(answer, StreamStarted):
                if not after:
                    seen.append((answer.start, "", 0))
                    return seen
                continue
            if answer.event.bookmark:
                continue
            host_type = answer.event.host_type
            seen.append((answer.event.id, host_type.id, host_type.metadata.version))
            if len(seen) >= count:
                return seen
    finally:
        await watch.aclose()
    return seen


async def test_a_hundred_cuts_across_two_processes_lose_and_repeat_nothing(home: Path) -> None:
    chance = random.Random(7202)
    async with Distributed(home) as environment:
        lines = [environment.start("serve", *ANY_PORT).ready() for _ in range(2)]
        async with environment.client(lines[0]) as one, environment.client(lines[1]) as other:
            doors = (one, other)
            ((after, _, _),) = await read_some(one, "", 1)
            stop = asyncio.Event()
            writing = asyncio.create_task(write(one, stop))
            seen: list[tuple[str, str, int]] = []
            for cut in range(CUTS):
                seen += await read_some(doors[cut % 2], after, chance.randint(1, 4))
                after = seen[-1][0]
            stop.set()
            done = await writing
            while len(seen) < len(done):
                seen += await read_some(other, after, len(done) - len(seen))
                after = seen[-1][0]
    assert [(id, version) for _, id, version in seen] == done
    assert len({event for event, _, _ in seen}) == len(seen)
