"""Questions to a hub that may be answered by "no such thing" or "not for you". Used by `survey` and `reviewing`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import Kind
from boatyard.model.errors import NotFound, Refused


async def maybe(asking: Awaitable[Any]) -> Any:
    """The answer, None when there is no such thing, the refusal when we may not know."""
    try:
        return await asking
    except NotFound:
        return None
    except Refused as error:
        return error


async def listed(client: KubeClient, kind: Kind, fields: str = "") -> list[Any] | None:
    """None when we may not see them."""
    try:
        return (await client.list(kind, fields=fields)).items
    except (Refused, NotFound):
        return None


async def nothing() -> None:
    return None


async def together(*asked: Awaitable[Any]) -> list[Any]:
    """The answers of all, asked at once; the first that fails ends the others."""

    async def one(asking: Awaitable[Any]) -> Any:
        return await asking

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(asking)) for asking in asked]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
