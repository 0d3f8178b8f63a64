"""Gives every journey its yards, and looks after each whether the promises were kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from boatyard.app import invariants
from tests.support.yard import Yard, open_yard

NewYard = Callable[..., Awaitable[Yard]]


@pytest.fixture
async def new_yard(database_url: str) -> AsyncIterator[NewYard]:
    """Opens the test's yard: `await new_yard(delays="real")`."""
    async with AsyncExitStack() as stack:
        yards: list[Yard] = []

        async def make(**how: Any) -> Yard:
            yards.append(await stack.enter_async_context(open_yard(database_url, **how)))
            return yards[0]

        yield make
        for yard in yards:
            await check_promises(yard)


@pytest.fixture
async def yard(new_yard: NewYard) -> Yard:
    """Two hubs of eight hosts; nothing takes any time."""
    return await new_yard()


async def check_promises(yard: Yard) -> None:
    """Scarce things once, every order with a next action, no acknowledged write lost, nothing left unlisted."""
    breaches = await invariants.check(yard.ledger, yard.twin, acknowledged=yard.acknowledged)
    assert breaches == [], "\n".join(str(breach) for breach in breaches)
