"""Reads watch events from the lines of one long response. Called by the client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from boatyard.kube.errors import make_error, parse_status
from boatyard.kube.transport import KubeRequest, Transport
from boatyard.model.errors import Unavailable

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_LONGEST_LINE = 64 * 1024 * 1024  # an object has at most a few MB; a longer line is no event


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED or DELETED with the object, or BOOKMARK, which carries only a resourceVersion."""

    type: str
    object: dict[str, Any] = field(repr=False)

    @property
    def resource_version(self) -> str:
        """A watch that resumes from this version misses no event."""
        return str(self.object["metadata"]["resourceVersion"])

    @property
    def is_initial_end(self) -> bool:
        """Whether this bookmark ends the initial events: all existing objects have been sent."""
        annotations = self.object["metadata"].get("annotations") or {}
        return self.type == BOOKMARK and annotations.get(_INITIAL_EVENTS_END) == "true"


async def watch_events(
    transport: Transport, request: KubeRequest, *, silence: float
) -> AsyncGenerator[WatchEvent, None]:
    async with transport.stream(request, silence=silence) as (code, pieces):
        if code != 200:
            body = b"".join([piece async for piece in pieces])
            status = parse_status(body)
            raise make_error(
                code, status, operation=f"watch {request.path}", secret=request.is_secret
            )
        async for line in _split_lines(pieces, request):
            yield _parse_event(line, request)


async def _split_lines(pieces: AsyncIterator[bytes], request: KubeRequest) -> AsyncIterator[bytes]:
    unfinished: list[bytes] = []
    length = 0
    async for piece in pieces:
        *whole, last = piece.split(b"\n")
        for part in whole:
            line = b"".join([*unfinished, part])
            unfinished, length = [], 0
            if line:
                yield line
        unfinished.append(last)
        length += len(last)
        if length > _LONGEST_LINE:
            raise Unavailable(f"watch {request.path}: a line without an end", reason="NotJson")
    if any(part.strip() for part in unfinished):
        raise Unavailable(f"watch {request.path}: it ended within an event", reason="Cut")


def _parse_event(line: bytes, request: KubeRequest) -> WatchEvent:
    operation = f"watch {request.path}"
    try:
        decoded = msgspec.json.decode(line)
        event = WatchEvent(decoded["type"], decoded["object"])
        if event.type == "ERROR":
            code = int(event.object.get("code") or 500)
            raise make_error(code, event.object, operation=operation, secret=request.is_secret)
        _ = event.resource_version
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ):
        raise Unavailable(f"{operation}: an event that is none", reason="NotJson") from None
    return event
