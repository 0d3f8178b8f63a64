"""What every sim driver does the same way: ask the twin, then look whether it is so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Outcome, Owned
from boatyard.twin.calls import TwinCalls

Seen = Mapping[str, Any] | None


class TwinDriver:
    """Speaks to one service of one hub. The connection is shared and belongs to whoever gave it."""

    service = ""

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub

    async def check_ready(self) -> None:
        await self.ask("ping")

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        rows = await self.ask("list_owned", prefix=prefix)
        return [Owned(key=key, kind=kind, name=name) for key, kind, name in rows]

    async def close(self) -> None:
        return None

    async def ask(self, verb: str, **args: Any) -> Any:
        return await self._twin.call(f"{self.service}.{verb}", hub=self._hub, **args)

    async def act(
        self, verb: str, *, kind: str, id: str, so: Callable[[Seen], bool], **args: Any
    ) -> Outcome:
        """Carries out a verb and believes Done only when what is there looks `so`.

        A back-end may say that it is done when it is not; that is Unavailable, and asked again.
        """
        outcome: Outcome = await self.ask(verb, **args)
        if isinstance(outcome, Done) and not so(await self.ask("look", kind=kind, id=id)):
            raise Unavailable(
                f"the {self.service} service confirmed {verb.replace('_', ' ')}, but it is not so",
                reason="NotConfirmed",
            )
        return outcome


def has(key: str, **fields: Any) -> Callable[[Seen], bool]:
    """Looks whether something of that key, with these fields, is there, ready, and to stay."""

    def is_so(thing: Seen) -> bool:
        if thing is None or thing["key"] != key or thing["leaving"] or not thing["ready"]:
            return False
        return all(thing[name] == value for name, value in fields.items())

    return is_so


def lacks(key: str) -> Callable[[Seen], bool]:
    """Looks whether nothing of that key is there."""
    return lambda thing: thing is None or thing["key"] != key
