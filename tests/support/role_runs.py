"""Roles written by a test, and a workshop that runs them for real."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.run_records import run_slug
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.drivers.local.warm_starter import WarmStarter
from boatyard.automation.port import RunEvent, RunSpec
from boatyard.model.errors import NotFound
from boatyard.model.outcome import Done, Outcome, Waiting

PATIENCE = 90.0  # seconds; the machine may be busy

Tasks = list[dict[str, Any]]


class RoleEnvironment:
    """A folder of content and a data directory. Every workshop made of it is a Boatyard started anew."""

    def __init__(self, directory: Path, environment: AnsibleEnvironment) -> None:
        self.content = directory / "content"
        self.data = directory / "data"
        self.environment = environment
        self.content.mkdir()
        self.shops: list[LocalRunner] = []

    def shop(self, **options: Any) -> LocalRunner:
        shop = LocalRunner(self.data, self.find, environment=self.environment, **options)
        self.shops.append(shop)
        return shop

    def driver(self, hub: str = "hub", **options: Any) -> LocalAutomation:
        """Started the plain way unless it is asked for: a warm server costs its time."""
        return LocalAutomation(self.shop(**{"warm": False, **options}), hub)

    def warm_driver(self, **options: Any) -> LocalAutomation:
        """One whose runs are forked; its server is up."""
        shop = self.shop(**options)
        assert isinstance(shop.starter, WarmStarter)
        assert shop.starter.warm_up(shop.get_capabilities()), (self.data / "warm.log").read_text()
        return LocalAutomation(shop, "hub")

    def driver_of(self, shop: LocalRunner) -> LocalAutomation:
        return LocalAutomation(shop, "hub")

    def find(self, digest: str) -> Path:
        place = self.content / digest
        if not place.is_dir():
            raise NotFound(f"no content {digest}")
        return place

    def role(self, name: str, files: Mapping[str, str] | None = None, **phases: Tasks) -> RunSpec:
        """A template that is one role; its content is known by its name. The run of its first phase."""
        for phase, tasks in phases.items():
            self.write(f"{name}/tasks/{phase}.yaml", yaml.safe_dump(tasks))
        for path, text in (files or {}).items():
            self.write(f"{name}/{path}", text)
        return RunSpec(action=next(iter(phases)), template=name, digest=name)

    def write(self, path: str, text: str) -> None:
        place = self.content / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def place(self, key: str) -> Path:
        return self.data / "runs" / run_slug(key)

    def everything(self) -> Iterator[Path]:
        """Every file of the data directory."""
        return (path for path in self.data.rglob("*") if path.is_file())


async def ended(driver: LocalAutomation, key: str, wanted: RunSpec) -> Done:
    """Asks until the run has come to its end."""
    end = time.monotonic() + PATIENCE
    while True:
        outcome = await driver.ensure_run(key, wanted)
        if isinstance(outcome, Done):
            return outcome
        assert time.monotonic() < end, f"still: {outcome}"
        await asyncio.sleep(0.05)


async def released(driver: LocalAutomation, key: str) -> None:
    await until(lambda: driver.release_run(key), lambda outcome: isinstance(outcome, Done))


async def at_task(driver: LocalAutomation, key: str, wanted: RunSpec, task: str) -> None:
    """Until the run is at this task."""
    outcome: Outcome = await driver.ensure_run(key, wanted)
    end = time.monotonic() + PATIENCE
    while not (isinstance(outcome, Waiting) and f"'{task}'" in outcome.why):
        assert time.monotonic() < end, f"still: {outcome}"
        assert isinstance(outcome, Waiting), outcome
        await asyncio.sleep(0.02)
        outcome = await driver.ensure_run(key, wanted)


async def until(ask: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + PATIENCE
    while True:
        answer = await ask()
        if good(answer):
            return answer
        assert time.monotonic() < end, f"still: {answer}"
        await asyncio.sleep(0.02)


async def whole_story(driver: LocalAutomation, key: str) -> list[RunEvent]:
    """Page by page."""
    found: list[RunEvent] = []
    while page := await driver.events(key, after=found[-1].number if found else 0):
        found += page
    return found


def processes_with(*words: str) -> dict[int, str]:
    """Command lines of all processes that hold all of the words."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if all(word in line for word in words):
                found[int(name)] = line
    return found


def again(wanted: RunSpec, **changes: Any) -> RunSpec:
    return dataclasses.replace(wanted, **changes)


def event_texts(events: list[RunEvent] | tuple[RunEvent, ...], kind: str) -> list[str]:
    return [event.task or event.text for event in events if event.kind == kind]


def debug(text: str) -> dict[str, Any]:
    return {"name": "say", "ansible.builtin.debug": {"msg": text}}


def shell(text: str, name: str = "do", **more: Any) -> dict[str, Any]:
    return {"name": name, "ansible.builtin.shell": text, **more}


def facts(**found: Any) -> dict[str, Any]:
    return {"name": "report", "boatyard.service.facts": found}
