"""A watcher that does not read is cut, and stops nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Any

import grpc
import pytest

from boatyard.api import grpc as grpc_door
from boatyard.api import rest as rest_door
from tests.api import samples
from tests.api.doors import PUBLIC, ApiEnvironment, Failed
from tests.api.watching import take, watching

pytestmark = pytest.mark.asyncio(loop_scope="module")

BIG = {f"a{number}": "x" * 2000 for number in range(100)}


async def _cluster(environment: ApiEnvironment) -> Any:
    sample = next(sample for sample in samples.SAMPLES if sample.kind == "Cluster").fresh()
    del sample["metadata"]["tenant"]
    return await environment.grpc.call(
        f"{PUBLIC}.Clusters", "Create", {"object": sample}, token=environment.token("member")
    )


async def _grow(environment: ApiEnvironment, id: str, number: int) -> None:
    """A change whose event is large."""
    body = {"id": id, "metadata": {"annotations": {**BIG, "n": str(number)}}}
    await environment.grpc.call(
        f"{PUBLIC}.Clusters",
        "Update",
        {"object": body, "update_mask": "metadata.annotations"},
        token=environment.token("member"),
    )


async def test_one_who_does_not_read_does_not_stop_the_others(
    environment: ApiEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is cut with a code that says what to do."""
    monkeypatch.setattr(grpc_door, "WRITE_SECONDS", 0.5)
    token = environment.token("viewer")
    made = await _cluster(environment)
    # A client that takes no more than it is asked for: no growing windows in between.
    options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65536)]
    address = f"127.0.0.1:{environment.server.grpc_port}"
    async with (
        grpc.aio.insecure_channel(address, options=options) as channel,
        watching(dataclasses.replace(environment, channel=channel), "grpc", token=token) as unread,
        watching(environment, "grpc", token=token) as reads,
    ):
        for number in range(20):
            await _grow(environment, made["id"], number)
            assert len(await take(reads, 1)) == 1
        await asyncio.sleep(1.0)  # the bound on how long an event may lie unread
        with pytest.raises(Failed) as failed:
            await take(unread, 21)
    assert failed.value.code == "ABORTED"
    assert "resume" in failed.value.message


async def test_a_rest_watcher_that_does_not_read_is_cut(
    environment: ApiEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_door, "WRITE_SECONDS", 0.5)
    made = await _cluster(environment)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", environment.server.rest_port, limit=1024
    )
    writer.write(
        b"GET /api/events/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Authorization: Bearer " + environment.token("viewer").encode() + b"\r\n\r\n"
    )
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    for number in range(60):  # more than the buffers of both sides hold together
        await _grow(environment, made["id"], number)
    await asyncio.sleep(1.0)  # the bound on how long an event may lie unread
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass  # what was sent before; then the end, because the server hung up
    writer.close()
