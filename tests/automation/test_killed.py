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

from boatyard.automation.drivers.local import holding
from boatyard.automation.port import RUN_FAILED, RunWanted
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.support import run_and_wait
from tests.support.automation import (
    Site,
    at_task,
    debug,
    ended,
    facts,
    processes_with,
    released,
    shell,
    told,
    until,
)

KEY = "order-1/post_install"
ANSIBLE = 2  # its number within its namespace
GO = "/run/template/go"  # the content is seen there: a test lets the run go on by making it


def waiting_role(site: Site) -> RunWanted:
    return site.role(
        "waiting",
        post_install=[
            debug("before"),
            shell(f"until test -e {GO}; do sleep 0.05; done", "wait"),
            facts(done="yes"),
        ],
    )


async def test_boatyard_killed_the_run_goes_on_and_its_result_is_found(site: Site) -> None:
    wanted = waiting_role(site)
    boatyard = ask_from_outside(site, "waiting")
    await until_at(site, "wait")
    boatyard.kill()
    boatyard.wait()

    (site.content / "waiting" / "go").touch()
    driver = site.driver()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    events = list(await driver.events(KEY))
    assert told(events, "task") == ["say", "wait", "report"], "it ran once"


async def test_boatyard_killed_at_any_moment_of_a_start(site: Site) -> None:
    wanted = site.role("short", post_install=[debug("hello"), facts(done="yes")])
    for number in range(5):
        boatyard = ask_from_outside(site, "short")
        while not site.place(KEY).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.04 * number)
        boatyard.kill()
        boatyard.wait()

        driver = site.driver()
        done = await ended(driver, KEY, wanted)

        assert done == Done({"done": "yes"})
        ends = told(list(await driver.events(KEY)), "end")
        assert ends.count("succeeded") == 1
        await released(driver, KEY)


async def test_the_supervisor_killed_takes_the_run_with_it_and_it_begins_again(site: Site) -> None:
    wanted = waiting_role(site)
    driver = site.driver()
    await at_task(driver, KEY, wanted, "wait")
    kill_supervisor(site)

    (site.content / "waiting" / "go").touch()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    events = list(await driver.events(KEY))
    assert told(events, "task") == ["say", "wait", "say", "wait", "report"]
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert told(events, "end") == ["succeeded"]


async def test_ansible_killed_begins_again(site: Site) -> None:
    wanted = waiting_role(site)
    driver = site.driver()
    await at_task(driver, KEY, wanted, "wait")
    pids = processes_of(site)
    (ansible,) = [pid for pid in pids if number_inside(pid) == ANSIBLE]
    os.kill(ansible, signal.SIGKILL)

    (site.content / "waiting" / "go").touch()
    done = await ended(driver, KEY, wanted)

    assert done == Done({"done": "yes"})
    assert told(list(await driver.events(KEY)), "task") == ["say", "wait", "say", "wait", "report"]
    assert not pids & processes_of(site)


async def test_a_run_that_is_killed_each_time_is_given_up(site: Site) -> None:
    wanted = site.role("poison", post_install=[shell(f"kill -9 {ANSIBLE}", "poison")])
    driver = site.driver()

    with pytest.raises(Refused) as refused:
        await ended(driver, KEY, wanted)

    assert refused.value.reason == RUN_FAILED
    assert "3 times" in str(refused.value)
    assert told(list(await driver.events(KEY)), "task") == ["poison"] * 3


async def test_a_torn_line_of_the_story_is_mended(site: Site) -> None:
    wanted = waiting_role(site)
    driver = site.driver()
    await at_task(driver, KEY, wanted, "wait")
    kill_supervisor(site)
    with (site.place(KEY) / "events.jsonl").open("ab") as file:
        file.write(b'{"number": 4, "at": "2026')
    assert len(await driver.events(KEY)) == 3

    (site.content / "waiting" / "go").touch()
    await ended(driver, KEY, wanted)

    numbers = [event.number for event in await driver.events(KEY)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_supervisor_that_comes_late_finds_nothing_to_do(site: Site) -> None:
    """Boatyard is killed after it has started one; the next Boatyard starts another."""
    wanted = site.role("short", post_install=[facts(done="yes")])
    driver = site.driver()
    await ended(driver, KEY, wanted)
    before = list(await driver.events(KEY))

    shop = site.shop()
    assert shop.starter.start(site.place(KEY), shop.ground()) is False

    assert await driver.events(KEY) == before


async def test_releasing_a_supervisor_that_stands_still(site: Site) -> None:
    wanted = waiting_role(site)
    driver = site.driver()
    await at_task(driver, KEY, wanted, "wait")
    held = holding.holder(site.place(KEY) / "lock")
    assert held is not None
    holding.send(held, signal.SIGSTOP)
    os.close(held)

    await released(driver, KEY)

    assert processes_with(str(site.data)) == {}


# --- helpers -------------------------------------------------------------------------------------


def ask_from_outside(site: Site, template: str) -> subprocess.Popen[bytes]:
    places = (site.content, site.data, site.environment.directory)
    return subprocess.Popen(
        [sys.executable, run_and_wait.__file__, *map(str, places), KEY, template],
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )


async def until_at(site: Site, task: str) -> None:
    records = site.shop().records

    async def ask() -> str:
        return records.last_task(KEY)

    await until(ask, lambda found: found == task)


def kill_supervisor(site: Site) -> None:
    held = holding.holder(site.place(KEY) / "lock")
    assert held is not None
    end = time.monotonic() + 30
    while len(pids := processes_of(site)) <= 3:  # a task is told before its process is started
        assert time.monotonic() < end
        time.sleep(0.01)
    holding.send(held, signal.SIGKILL)
    assert holding.wait_for_end(held, 10)
    os.close(held)
    end = time.monotonic() + 30  # the kernel ends a whole namespace, one after the other
    while any(parent(pid) >= 0 for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)


def processes_of(site: Site) -> set[int]:
    """The supervisor and everybody below it."""
    held = holding.holder(site.place(KEY) / "lock")
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
