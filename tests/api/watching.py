"""Watches over both doors as streams of plain events, for the suites in this folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf import json_format

from boatyard.model import wire
from tests.api.doors import PUBLIC, ApiEnvironment, answered, failed

Events = AsyncIterator[dict[str, Any]]


@contextlib.asynccontextmanager
async def watching(
    environment: ApiEnvironment, door: str, *, token: str, **asked: str
) -> AsyncIterator[Events]:
    """A watch that has begun; leaving it cuts the connection."""
    open_stream = _grpc_stream if door == "grpc" else _sse_stream if door == "sse" else _ndjson
    async with open_stream(environment, token, asked) as events:
        yield events


@contextlib.asynccontextmanager
async def _grpc_stream(
    environment: ApiEnvironment, token: str, asked: dict[str, str]
) -> AsyncIterator[Events]:
    package = asked.pop("package", PUBLIC)
    request = wire.message(f"{package}.EventsWatchRequest")(**asked)
    call = environment.channel.unary_stream(f"/{package}.Events/Watch")(
        request.SerializeToString(), metadata=(("authorization", f"Bearer {token}"),)
    )
    response = wire.message(f"{package}.EventsWatchResponse")

    async def events() -> Events:
        try:
            async for data in call:
                message: Any = response.FromString(data)
                yield json_format.MessageToDict(message.event, preserving_proto_field_name=True)
        except grpc.aio.AioRpcError as error:
            raise failed(error) from error

    try:
        await call.initial_metadata()
        yield events()
    finally:
        call.cancel()


@contextlib.asynccontextmanager
async def _ndjson(
    environment: ApiEnvironment, token: str, asked: dict[str, str]
) -> AsyncIterator[Events]:
    async with _http(environment, token, asked, {}) as lines:

        async def events() -> Events:
            async for line in lines:
                if line:
                    yield json.loads(line)["result"]["event"]

        yield events()


@contextlib.asynccontextmanager
async def _sse_stream(
    environment: ApiEnvironment, token: str, asked: dict[str, str]
) -> AsyncIterator[Events]:
    headers = {"accept": "text/event-stream"}
    if "after" in asked:
        headers["last-event-id"] = asked.pop("after")
    async with _http(environment, token, asked, headers) as lines:

        async def events() -> Events:
            id = ""
            async for line in lines:
                if line.startswith("id: "):
                    id = line.removeprefix("id: ")
                elif line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))["event"]
                    assert event["id"] == id
                    yield event

        yield events()


@contextlib.asynccontextmanager
async def _http(
    environment: ApiEnvironment, token: str, asked: dict[str, str], headers: dict[str, str]
) -> AsyncIterator[AsyncIterator[str]]:
    package = asked.pop("package", PUBLIC)
    path = "/api/events/v1/events" if package == PUBLIC else "/api/private/v1/events/watch"
    whole = {"authorization": f"Bearer {token}", **headers}
    async with environment.client.stream("GET", path, params=asked, headers=whole) as response:
        if response.status_code != 200:
            await response.aread()
            answered(response)
        yield response.aiter_lines()


async def take(events: Events, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            event = await anext(events)
            if not event.get("bookmark"):
                found.append(event)
    return found
