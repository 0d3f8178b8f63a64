"""Every call of the wire and what answers it. Made once per server; both doors call through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf.message import DecodeError, Message

from boatyard.api.crud import Call, Crud
from boatyard.api.errors import Unimplemented
from boatyard.api.kinds import KINDS, PRIVATE, PUBLIC, VIEWS, View
from boatyard.api.orders import Orders
from boatyard.api.updates import update
from boatyard.api.watch import Watches
from boatyard.model import wire
from boatyard.model.errors import Refused

Unary = Callable[[Any, Call], Awaitable[Message]]
# Streams answer serialized messages: one event goes to many watchers.
Stream = Callable[[Any, Call], AsyncIterator["Part"]]

# In the contract, and answered there by Unimplemented too.
_NOT_IN_PUBLIC = {("Tenants", rpc) for rpc in ("Create", "Update", "Delete")}
_ANONYMOUS = {(f"{PUBLIC}.Capabilities", "Get")}


@dataclass(frozen=True)
class Part:
    """One message of a stream; `id` is the event id to resume after, where there is one."""

    data: bytes
    id: str = ""


@dataclass(frozen=True)
class Method:
    """One call: its messages, and what runs it, if anything does."""

    service: str
    rpc: str
    request: type[Message]
    response: type[Message]
    unary: Unary | None = None
    stream: Stream | None = None
    streaming: bool = False

    @property
    def name(self) -> str:
        return f"{self.service}/{self.rpc}"

    @cached_property
    def anonymous(self) -> bool:
        return (self.service, self.rpc) in _ANONYMOUS

    def parse(self, data: bytes) -> Message:
        try:
            return self.request.FromString(data)
        except DecodeError as error:
            name = self.request.DESCRIPTOR.name
            raise Refused(f"the message cannot be read as a {name}") from error

    async def answer(self, request: Any, call: Call) -> Message:
        if self.unary is None:
            raise Unimplemented(f"{self.name} is not served")
        return await self.unary(request, call)
