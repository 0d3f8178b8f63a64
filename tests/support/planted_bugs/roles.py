"""Bugs for the crash proof of roles, planted in its workers. Each must be found."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from boatyard.automation.drivers.local.run_plan import process_mark
from boatyard.automation.port import RunSpec
from boatyard.model.generated.boatyard import Item
from boatyard.model.outcome import Done, Outcome
from boatyard.processes.marked_processes import MARK_VARIABLE
from boatyard.resources.orders import item_execution, steps
from boatyard.resources.orders.steps import role
from boatyard.resources.orders.steps.context import StepContext

LEFT = "120.25"  # seconds that a process lives on which nobody knows of


def runs_forgotten() -> None:
    """What is kept of a run stays when its order goes."""
    _release_with("post_install", _forgotten)


def decisions_forgotten() -> None:
    """The same of a run that decides."""
    _release_with("role", _forgotten)


def begun_by_everybody() -> None:
    """Whoever comes begins every run anew."""
    wanted = role._make_run_spec

    async def forgetful(context: StepContext, item: Item) -> RunSpec:
        return replace(await wanted(context, item), attempt=os.getpid())

    role._make_run_spec = forgetful


def processes_left() -> None:
    """Somebody of a run of the last check lives on when nothing is kept of it any more."""

    async def careless(context: StepContext, item: Item) -> Outcome:
        outcome = await role.release_run(context, item)
        watched: Any = context.drivers.automation
        place = watched._automation._runner.records.run_directory(context.key(item.key))
        environ = {"PATH": os.environ["PATH"], MARK_VARIABLE: process_mark(place)}
        await asyncio.create_subprocess_exec("sleep", LEFT, env=environ)
        return outcome

    _release_with("acceptance", careless)


async def _forgotten(context: StepContext, item: Item) -> Outcome:
    return Done()


def _release_with(kind: str, release: Callable[[StepContext, Item], Awaitable[Outcome]]) -> None:
    steps.RELEASE_ACTIONS = {**steps.RELEASE_ACTIONS, kind: release}  # type: ignore[misc]
    item_execution.RELEASE_ACTIONS = steps.RELEASE_ACTIONS  # type: ignore[attr-defined]
