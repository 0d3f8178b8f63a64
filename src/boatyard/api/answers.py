"""What a service of the API publishes: the functions that answer its calls. Collected by calls.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from google.protobuf.message import Message

from boatyard.api.crud import Call


@dataclass(frozen=True)
class Part:
    """One serialized message of a stream; `id` is the event id to resume after, where there is one."""

    data: bytes
    id: str = ""


# The request is a message of the class that the method of the service has; see requests.py.
Unary = Callable[[Any, Call], Awaitable[Message]]
OnStart = Callable[[str], Awaitable[None]]
Stream = Callable[[Any, Call, OnStart], AsyncIterator[Part]]


@dataclass(frozen=True)
class Answers:
    """The functions that answer the calls of one service, by the name of the call."""

    unary: Mapping[str, Unary] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)


class Publisher(Protocol):
    """A part of the API that answers calls of some services."""

    def answers(self) -> Mapping[str, Answers]:
        """What it answers, by the full name of the service; several publishers may answer calls of one service."""
        ...
