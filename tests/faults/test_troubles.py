"""An API server that is slow, busy, broken or forgetful: an order becomes ready and is taken back all the same.

Nothing heals here: the fault lasts for the whole of the order's life.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.fault_environment import BACK, PATIENCE, FaultyHubEnvironment, until
from tests.support.soak import soak

SLOW = 300.0
DEAF = "watches whose connection died without a word"
# Every request waits for it, one after another: `make soak` takes the time for five seconds, half of what one may take.
LATENCY = soak(short=2.0, long=5.0)
TROUBLES: dict[str, dict[str, Any]] = {
    f"{LATENCY:g} seconds of latency": {"latency": LATENCY},
    "429, one in three": {"code": 429, "share": 0.33, "retry_after": 1},
    "500, one in four, half of them after it was done": {"code": 500, "share": 0.25, "late": True},
    "every watch closed after a moment": {"watch_seconds": 0.3},
    "410 to every watch": {"gone": True},
    DEAF: {},
}


@pytest.mark.timeout(400)
async def test_an_order_becomes_ready_and_goes_in_spite_of_all_these(plane: ControlPlane) -> None:
    """All of them side by side, each on a hub of its own: most of the time is waiting."""
    found = await asyncio.gather(*(troubled(plane, name) for name in TROUBLES))
    wrong = {name: what for name, what in zip(TROUBLES, found, strict=True) if what}
    assert wrong == {}


async def troubled(plane: ControlPlane, name: str) -> str:
    """What went wrong; empty is well. Its operator ends with it and does not load the others."""
    async with FaultyHubEnvironment.open_faulty(plane) as hub:
        return await went_wrong(hub, name)


async def went_wrong(hub: FaultyHubEnvironment, name: str) -> str:
    try:
        await hub.start()
        await until_working(hub)
        hub.proxy.set(**TROUBLES[name])
        if name == DEAF:
            hub.proxy.silence_watches()
        slow = "latency" in TROUBLES[name]  # then every step of a node costs half a minute
        size = 0 if slow else 2
        await hub.put("c-1", size)
        ready = await hub.until_ready("c-1", size, seconds=BACK if name == DEAF else SLOW)
        await hub.delete("c-1")
        gone = await hub.until_deleted("c-1", seconds=SLOW)
        await hub.until_nothing_is_left()
        print(f"{name}: {ready:.0f} s to ready, {gone:.0f} s to its end")
        assert name == DEAF or hub.proxy.faulted > 3, "the fault never came"
        assert await hub.doubled("c-1") == []
    except AssertionError as error:
        return f"{error}\n{hub.log()[-2000:]}"
    return ""


async def until_working(hub: FaultyHubEnvironment) -> None:
    """Until a leader has seen the hub: what is wrong from the first moment on is another case."""
    await hub.put("first", 0)
    await hub.until_ready("first", 0)
    await hub.delete("first")
    await hub.until_deleted("first")


@pytest.mark.timeout(300)
async def test_the_api_server_is_restarted_in_the_middle(plane: ControlPlane) -> None:
    """In create, in scale and in delete; it is away for some seconds each time."""
    async with FaultyHubEnvironment.open_faulty(plane) as hub:
        await hub.start()
        await until_working(hub)
        await hub.put("c-1", 2)
        await amid(hub, "c-1")
        assert await hub.until_ready("c-1", 2, seconds=BACK) < BACK
        await hub.put("c-1", 4, generation=2)
        await amid(hub, "c-1")
        assert await hub.until_ready("c-1", 4, generation=2, seconds=BACK) < BACK
        await hub.delete("c-1")
        await amid(hub, "c-1")
        assert await hub.until_deleted("c-1", seconds=BACK) < BACK
        await hub.until_nothing_is_left()
        assert await hub.doubled("c-1") == []


async def amid(hub: FaultyHubEnvironment, order_id: str) -> None:
    """Waits until something of what is wanted was done, and restarts the API server then."""
    before = len(await hub.outside.call("twin.effects", prefix=f"{order_id}/"))
    removed = await removals(hub, order_id)

    async def begun() -> bool:
        made = len(await hub.outside.call("twin.effects", prefix=f"{order_id}/")) > before
        return made or await removals(hub, order_id) > removed

    await until(begun, "it has begun", seconds=PATIENCE)
    # Started by this very thread: it ends with whoever started it.
    hub.plane.restart("kube-apiserver")
    await asyncio.to_thread(hub.plane.until_ready)


async def removals(hub: FaultyHubEnvironment, order_id: str) -> int:
    rows = await hub.outside.call("twin.effects", prefix=f"{order_id}/")
    return sum(int(row["removed"]) for row in rows)
