"""What all sim drivers have in common: they call the twin, then verify what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject
from boatyard.twin.calls import TwinCalls

ObservedThing = Mapping[str, Any] | None


class TwinDriver:
    """Calls one service of one hub. The connection is shared; its creator closes it."""

    service = ""

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub

    async def check_ready(self) -> None:
        await self.call_verb("ping")

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        rows = await self.call_verb("list_owned", prefix=prefix)
        return [OwnedObject(key=key, kind=kind, name=name) for key, kind, name in rows]

    async def close(self) -> None:
        return None

    async def call_verb(self, verb: str, **args: Any) -> Any:
        return await self._twin.call(f"{self.service}.{verb}", hub=self._hub, **args)

    async def call_and_verify(
        self, verb: str, *, kind: str, id: str, so: Callable[[ObservedThing], bool], **args: Any
    ) -> Outcome:
        """Calls a verb, and accepts Done only if `so` is true for what is really there.

        A back-end may answer Done although nothing happened; that is Unavailable, and is retried.
        """
        outcome: Outcome = await self.call_verb(verb, **args)
        if isinstance(outcome, Done) and not so(await self.call_verb("look", kind=kind, id=id)):
            raise Unavailable(
                f"the {self.service} service confirmed {verb.replace('_', ' ')}, but it is not so",
                reason="NotConfirmed",
            )
        return outcome


def expect_present(key: str, **fields: Any) -> Callable[[ObservedThing], bool]:
    """A test that a thing has that key and these fields, is ready, and is not being removed."""

    def is_so(thing: ObservedThing) -> bool:
        if thing is None or thing["key"] != key or thing["leaving"] or not thing["ready"]:
            return False
        return all(thing[name] == value for name, value in fields.items())

    return is_so


def expect_absent(key: str) -> Callable[[ObservedThing], bool]:
    """A test that there is no thing of that key."""
    return lambda thing: thing is None or thing["key"] != key
