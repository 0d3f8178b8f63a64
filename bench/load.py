"""The client of bench/api, a process of its own: the same calls to whichever server it is pointed at.

Reads one JSON object per line (see `Round`) and answers one per round. Answers of the server are
counted, not read: the client should cost as little as it can.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import grpc
import msgspec

from boatyard.model.wire import message

SERVICE = "osac.public.v1.Clusters"
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0))


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """So many calls at once to one server for some seconds."""

    address: str
    token: str
    call: str
    seconds: float
    at_once: int
    ids: list[str] = []  # for get and update
    template: str = ""  # for create
    prefix: str = ""  # for create: names are made from it
    filter: str = ""  # for list
    limit: int = 100


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    calls: int
    seconds: float
    p50: float  # milliseconds
    p99: float

    @property
    def rate(self) -> float:
        return self.calls / self.seconds


def _requests(asked: Round) -> Callable[[], bytes]:
    """The next request, ready to be sent."""
    numbers = itertools.count()
    if asked.call == "List":
        request = message("osac.public.v1.ClustersListRequest")(
            limit=asked.limit, filter=asked.filter
        )
        always = request.SerializeToString()
        return lambda: always
    if asked.call == "Get":
        get = message("osac.public.v1.ClustersGetRequest")
        ready = itertools.cycle([get(id=id).SerializeToString() for id in asked.ids])
        return lambda: next(ready)
    if asked.call == "Update":
        update = message("osac.public.v1.ClustersUpdateRequest")
        mask = {"paths": ["spec.node_sets.compute.size"]}

        def change() -> bytes:
            n = next(numbers)
            node_sets = {"compute": {"size": 1 + n % 97}}
            body = {"id": asked.ids[n % len(asked.ids)], "spec": {"node_sets": node_sets}}
            return update(object=body, update_mask=mask).SerializeToString()

        return change
    create = message("osac.public.v1.ClustersCreateRequest")

    def order() -> bytes:
        name = f"{asked.prefix}-{next(numbers)}"
        body = {
            "metadata": {"name": name, "labels": {"team": "web", "stage": "test"}},
            "spec": {"template": {"id": asked.template}},
        }
        return create(object=body).SerializeToString()

    return order


async def run(asked: Round, channel: grpc.aio.Channel) -> Answer:
    invoke = channel.unary_unary(f"/{SERVICE}/{asked.call}")
    metadata = (("authorization", f"Bearer {asked.token}"),)
    next_request = _requests(asked)
    times: list[float] = []
    started = time.perf_counter()
    end = started + asked.seconds

    async def lane() -> None:
        while (begun := time.perf_counter()) < end:
            await invoke(next_request(), metadata=metadata)
            times.append(time.perf_counter() - begun)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(asked.at_once):
            tasks.create_task(lane())
    seconds = time.perf_counter() - started
    times.sort()
    return Answer(
        calls=len(times),
        seconds=seconds,
        p50=1000 * times[len(times) // 2],
        p99=1000 * times[min(len(times) - 1, int(len(times) * 0.99))],
    )


async def main() -> None:
    channels: dict[str, Any] = {}
    loop = asyncio.get_running_loop()
    print(json.dumps("ready"), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = msgspec.json.decode(line, type=Round)
        if asked.address not in channels:
            channels[asked.address] = grpc.aio.insecure_channel(asked.address, options=OPTIONS)
        found = await run(asked, channels[asked.address])
        print(msgspec.json.encode(found).decode(), flush=True)
    for channel in channels.values():
        await channel.close()


if __name__ == "__main__":
    asyncio.run(main())
