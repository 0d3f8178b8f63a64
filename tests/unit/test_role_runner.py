"""The runner of roles as a process of ours has it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from boatyard.automation.drivers.local.run_slots import RunSlot
from boatyard.automation.port import RunSpec
from boatyard.model.outcome import Waiting
from boatyard.roles.content import RoleFileContent, pack_files
from boatyard.wiring.role_runner import RoleRunner
from boatyard.wiring.run_tokens import ApiEndpoint
from boatyard.wiring.settings import Settings
from boatyard.wiring.worker import make_role_runner


def runner(directory: Path, **settings: Any) -> RoleRunner:
    ledger: Any = SimpleNamespace(contents=SimpleNamespace(get=None))
    return RoleRunner(ledger, Settings(data=str(directory), **settings))


async def test_runs_are_bounded_by_the_settings(tmp_path: Path) -> None:
    turns = runner(tmp_path, runs_at_once=3, runs_per_hub=2, runs_per_template=1).local_runner.slots

    def take(name: str, hub: str, template: str) -> str:
        return turns.take(name, RunSlot(hub, template), lambda _: False)

    assert take("one", "lyon", "small") == ""
    assert take("two", "lyon", "small") == "other runs of this template are under way"
    assert take("two", "lyon", "large") == ""
    assert take("three", "lyon", "huge") == "other runs of this hub are under way"
    assert take("three", "boston", "huge") == ""
    assert take("four", "oslo", "tiny") == "other runs are under way on this machine"


async def test_starts_are_bounded_by_the_settings(tmp_path: Path) -> None:
    turns = runner(tmp_path, run_starts_per_minute=1).local_runner.slots
    assert turns.take("one", RunSlot("lyon", "small"), lambda _: True) == ""
    assert "no faster" in turns.take("two", RunSlot("lyon", "large"), lambda _: True)


async def test_a_hub_has_one_runner_and_all_share_the_machine(tmp_path: Path) -> None:
    made = runner(tmp_path)
    assert made.for_hub("lyon") is made.for_hub("lyon")
    assert made.for_hub("lyon") is not made.for_hub("boston")
    await made.close()


async def test_many_that_start_at_once_all_get_their_content(tmp_path: Path) -> None:
    """Each waits in a thread for what is looked at in other threads: they must not be the same ones."""
    digest, packed = pack_files(
        {"tasks/post_install.yaml": RoleFileContent(b"- debug: {msg: a}\n")}
    )

    async def get(_: str) -> bytes:
        return packed

    ledger: Any = SimpleNamespace(contents=SimpleNamespace(get=get))
    made = RoleRunner(ledger, Settings(data=str(tmp_path)))
    shared = ThreadPoolExecutor(2)
    asyncio.get_running_loop().set_default_executor(shared)
    hub = made.for_hub("lyon")

    async with asyncio.timeout(10):
        found = await asyncio.gather(
            *(hub._call_in_thread(lambda: made.local_runner.content(digest)) for _ in range(12))
        )

    assert {(place / "tasks/post_install.yaml").is_file() for place in found} == {True}
    await made.close()


async def test_a_worker_that_shall_run_none_leaves_roles_to_another_machine(tmp_path: Path) -> None:
    """It starts nothing a second time, and calls no run ended that may go on elsewhere."""
    ledger: Any = SimpleNamespace(contents=None, clock=SimpleNamespace(now=None))
    roles = make_role_runner(
        ledger, Settings(data=str(tmp_path), runs_at_once=0), ApiEndpoint(url="")
    )
    automation = roles.for_hub("lyon")

    asked = await automation.ensure_run("o-1/post_install", RunSpec("post_install", "small"))
    released = await automation.release_run("o-1/post_install")

    assert isinstance(asked, Waiting)
    assert isinstance(released, Waiting)
    assert (asked.reason, released.reason) == ("Elsewhere", "Elsewhere")
    assert list(await automation.list_owned()) == []
    await roles.close()


async def test_a_worker_that_may_runs_them_itself(tmp_path: Path) -> None:
    ledger: Any = SimpleNamespace(
        contents=SimpleNamespace(get=None), clock=SimpleNamespace(now=None)
    )
    roles = make_role_runner(ledger, Settings(data=str(tmp_path)), ApiEndpoint(url=""))
    assert isinstance(roles, RoleRunner)
    await roles.close()
