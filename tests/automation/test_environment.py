"""Ansible's environment is made once, with progress; what cannot be made says why and is tried again."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.ansible_environment import (
    AnsibleEnvironment,
    default_directory,
)
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.runner import PREPARING, LocalRunner
from boatyard.automation.port import RunSpec
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Waiting


def test_it_is_made_once_with_progress_in_place_of_what_was_half_made(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("")
    environment = AnsibleEnvironment(tmp_path / "ansible", lock=lock)
    (environment.venv_directory / "bin").mkdir(parents=True)
    (environment.venv_directory / "bin" / "python").write_text("half")
    assert not environment.is_ready()
    lines: list[str] = []

    threads = [threading.Thread(target=environment.ensure, args=(lines.append,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert environment.is_ready()
    assert lines.count("making an environment for Ansible") == 1
    assert environment.python.read_bytes()[:4] == b"\x7fELF"


def test_another_lock_is_another_environment(tmp_path: Path) -> None:
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("a")
    other.write_text("b")
    assert (
        AnsibleEnvironment(tmp_path, lock=one).venv_directory
        != AnsibleEnvironment(tmp_path, lock=other).venv_directory
    )


def test_the_place_can_be_named() -> None:
    assert default_directory({"BOATYARD_ANSIBLE": "/srv/x"}) == Path("/srv/x")
    assert default_directory({"BOATYARD_CACHE": "/c"}) == Path("/c/ansible")


async def test_the_first_run_waits_for_it_and_a_failure_says_why(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    # No file has this hash: pip refuses it whatever the index says.
    lock.write_text(f"no-such-package-of-boatyard==1.0 --hash=sha256:{'0' * 64}\n")
    environment = AnsibleEnvironment(tmp_path / "ansible", lock=lock)
    shop = LocalRunner(tmp_path / "data", lambda _: tmp_path, environment=environment)
    driver = LocalAutomation(shop, "hub")
    wanted = RunSpec(action="post_install", template="t", digest="d")
    await driver.check_ready()

    outcome = await driver.ensure_run("one", wanted)

    assert isinstance(outcome, Waiting)
    assert outcome.reason == PREPARING
    with pytest.raises(Unavailable, match="cannot be made"):
        await ready_for_ever(driver)
    with pytest.raises(Unavailable) as unavailable:
        await driver.ensure_run("one", wanted)
    assert unavailable.value.reason == "NoAnsible"
    await driver.close()
    assert shop._setup_thread is not None
    await asyncio.to_thread(shop._setup_thread.join)


async def ready_for_ever(driver: LocalAutomation) -> None:
    end = time.monotonic() + 100
    while time.monotonic() < end:
        await driver.check_ready()
        await asyncio.sleep(0.05)
