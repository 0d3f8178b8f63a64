"""Small words for contract rules. They fail with AssertionError, so that a broken driver can be shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.outcome import Done, OwnedObject

Rule = Callable[[Any], Awaitable[None]]  # asked of the harness of its port


def rules_of(namespace: Mapping[str, Any]) -> list[Rule]:
    """Every function of a suite whose name does not begin with an underscore or `test`."""
    return [
        value
        for name, value in namespace.items()
        if callable(value)
        and getattr(value, "__module__", "") == namespace["__name__"]
        and not name.startswith(("_", "test"))
    ]


async def refuses(asked: Awaitable[Any], reason: str = "") -> None:
    error = await _fails(asked, Refused)
    assert not reason or getattr(error, "reason", "") == reason


async def unavailable(asked: Awaitable[Any]) -> None:
    await _fails(asked, Unavailable)


async def not_confirmed(asked: Awaitable[Any]) -> None:
    """A back-end that lies must not make the driver say Done."""
    try:
        answer = await asked
    except Unavailable:
        return
    assert not isinstance(answer, Done), "the driver believed what is not so"


async def _fails(asked: Awaitable[Any], kind: type[BoatyardError]) -> BoatyardError:
    try:
        answer = await asked
    except kind as error:
        return error
    except BoatyardError as error:
        raise AssertionError(f"{kind.__name__} expected, not {error!r}") from error
    raise AssertionError(f"{kind.__name__} expected, not {answer}")


def keys(owned: Iterable[OwnedObject]) -> list[str]:
    return sorted(thing.key for thing in owned)
