"""Bugs for the crash proof of roles, planted in its workers. Each must be found."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from boatyard.automation.port import RunWanted
from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done, Outcome
from boatyard.resources.orders import steps
from boatyard.resources.orders.steps import role
from boatyard.resources.orders.steps.context import Context


def runs_forgotten() -> None:
    """What is kept of a run stays when its order goes."""

    async def careless(context: Context, item: Item) -> Outcome:
        return Done()

    steps.RELEASE = {**steps.RELEASE, "post_install": careless}  # type: ignore[misc]
    from boatyard.resources.orders import acting

    acting.RELEASE = steps.RELEASE  # type: ignore[attr-defined]


def begun_by_everybody() -> None:
    """Whoever comes begins every run anew."""
    wanted = role._wanted

    async def forgetful(context: Context, item: Item) -> RunWanted:
        return replace(await wanted(context, item), attempt=os.getpid())

    role._wanted = forgetful


PLANTS: tuple[Any, ...] = (runs_forgotten, begun_by_everybody)
