"""Whoever is killed, at the end there is one result, and nobody is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boatyard.automation.drivers.local import run_lock
from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.support import run_and_wait
from tests.support.role_runs import (
    RoleEnvironment,
    at_task,
    debug,
    ended,
    event_texts,
    facts,
    processes_with,
    released,
    shell,
    until,
)

KEY = "order-1/post_install"
ANSIBLE = 2  # its number within its namespace
GO = "/run/template/go"  # the content is seen there: a test lets the run go on by making it


def waiting_role(role_environment: RoleEnvironment) -> RunSpec:
    return role_environment.role(
        "waiting",
        post_install=[
            debug("before"),
            shell(f"until test -e {GO}; do sleep 0.05; done", "wait"),
            facts(done="yes"),
        ],
    )


async def test_boatyard_killed_the_run_goes_on_and_its_result_is_found(
    role_environment: RoleEnvironment,
) -> None:
    wanted = waiting_role(role_environment)
    boatyard = ask_from_outside(role_environment, "waiting")
    await until_at(role_environment, "wait")
    boatyard.kill()
    boatyard.wait()

    (role_environment.content / "waiting" / "go").touch()
    driver = role_environment.driver()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    events = list(await driver.events(KEY))
    assert event_texts(events, "task") == ["say", "wait", "report"], "it ran once"


async def test_boatyard_killed_at_any_moment_of_a_start(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role("short", post_install=[debug("hello"), facts(done="yes")])
    for number in range(5):
        boatyard = ask_from_outside(role_environment, "short")
        while not role_environment.place(KEY).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.04 * number)
        boatyard.kill()
        boatyard.wait()

        driver = role_environment.driver()
        done = await ended(driver, KEY, wanted)

        assert done == Done({"done": "yes"})
        ends = event_texts(list(await driver.events(KEY)), "end")
        assert ends.count("succeeded") == 1
        await released(driver, KEY)


async def test_the_supervisor_killed_takes_the_run_with_it_and_it_begins_again(
    role_environment: RoleEnvironment,
) -> None:
    wanted = waiting_role(role_environment)
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")
    kill_supervisor(role_environment)

    (role_environment.content / "waiting" / "go").touch()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    events = list(await driver.events(KEY))
    assert event_texts(events, "task") == ["say", "wait", "say", "wait", "report"]
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert event_texts(events, "end") == ["succeeded"]


async def test_ansible_killed_begins_again(role_environment: RoleEnvironment) -> None:
    wanted = waiting_role(role_environment)
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")
    pids = processes_of(role_environment)
    (ansible,) = [pid for pid in pids if number_inside(pid) == ANSIBLE]
    os.kill(ansible, signal.SIGKILL)

    (role_environment.content / "waiting" / "go").touch()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    assert event_texts(list(await driver.events(KEY)), "task") == [
        "say",
        "wait",
        "say",
        "wait",
        "report",
    ]
    assert not pids & processes_of(role_environment)


async def test_a_run_that_is_killed_each_time_is_given_up(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role("poison", post_install=[shell(f"kill -9 {ANSIBLE}", "poison")])
    driver = role_environment.driver()

    with pytest.raises(Refused) as refused:
        await ended(driver, KEY, wanted)

    assert refused.value.reason == RUN_FAILED
    assert "3 times" in str(refused.value)
    assert event_texts(list(await driver.events(KEY)), "task") == ["poison"] * 3


async def test_a_torn_line_of_the_story_is_mended(role_environment: RoleEnvironment) -> None:
    wanted = waiting_role(role_environment)
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")
    kill_supervisor(role_environment)
    with (role_environment.place(KEY) / "events.jsonl").open("ab") as file:
        file.write(b'{"number": 4, "at": "2026')
    assert len(await driver.events(KEY)) == 3

    (role_environment.content / "waiting" / "go").touch()
    await ended(driver, KEY, wanted)

    numbers = [event.number for event in await driver.events(KEY)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_supervisor_that_comes_late_finds_nothing_to_do(
    role_environment: RoleEnvironment,
) -> None:
    """Boatyard is killed after it has started one; the next Boatyard starts another."""
    wanted = role_environment.role("short", post_install=[facts(done="yes")])
    driver = role_environment.driver()
    await ended(driver, KEY, wanted)
    before = list(await driver.events(KEY))

    shop = role_environment.shop()
    assert shop.starter.start(role_environment.place(KEY), shop.get_capabilities()) is False

    assert await driver.events(KEY) == before


async def test_releasing_a_supervisor_that_stands_still(role_environment: RoleEnvironment) -> None:
    wanted = waiting_role(role_environment)
    driver = role_environment.driver()
    await at_task(driver, KEY, wanted, "wait")
    held = run_lock.find_holder(role_environment.place(KEY) / "lock")
    assert held is not None
    run_lock.send_signal(held, signal.SIGSTOP)
    os.close(held)

    await released(driver, KEY)

    assert processes_with(str(role_environment.data)) == {}


# --- helpers -------------------------------------------------------------------------------------


def ask_from_outside(role_environment: RoleEnvironment, template: str) -> subprocess.Popen[bytes]:
    places = (
        role_environment.content,
        role_environment.data,
        role_environment.environment.directory,
    )
    return subprocess.Popen(
        [sys.executable, run_and_wait.__file__, *map(str, places), KEY, template],
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )


async def until_at(role_environment: RoleEnvironment, task: str) -> None:
    records = role_environment.shop().records

    async def ask() -> str:
        return records.find_last_task(KEY)

    await until(ask, lambda found: found == task)


def kill_supervisor(role_environment: RoleEnvironment) -> None:
    held = run_lock.find_holder(role_environment.place(KEY) / "lock")
    assert held is not None
    end = time.monotonic() + 30
    while (
        len(pids := processes_of(role_environment)) <= 3
    ):  # a task is told before its process is started
        assert time.monotonic() < end
        time.sleep(0.01)
    run_lock.send_signal(held, signal.SIGKILL)
    assert run_lock.wait_for_end(held, 10)
    os.close(held)
    end = time.monotonic() + 30  # the kernel ends a whole namespace, one after the other
    while any(parent(pid) >= 0 for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)


def processes_of(role_environment: RoleEnvironment) -> set[int]:
    """The supervisor and everybody below it."""
    held = run_lock.find_holder(role_environment.place(KEY) / "lock")
    if held is None:
        return set()
    info = Path(f"/proc/self/fdinfo/{held}").read_text()
    os.close(held)
    found = {int(line.split()[1]) for line in info.splitlines() if line.startswith("Pid:")}
    while True:
        more = {
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if parent(pid) in found
        }
        if more <= found:
            return found
        found |= more


def number_inside(pid: int) -> int:
    """Its number within the innermost namespace it is in; 0 when it has none but ours, or has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("NSpid:"):
            _, *numbers = line.split()
            return int(numbers[-1]) if len(numbers) > 1 else 0
    return 0


def parent(pid: int) -> int:
    """Of a process that lives; -1 when it does not."""
    try:
        state, number = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return -1
    return -1 if state == "Z" else int(number)
