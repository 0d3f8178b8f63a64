"""The server that keeps Ansible warm may die at any moment, and nobody but it is the worse for it."""

from __future__ import annotations

import os
import signal

import pytest

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.warm_starter import WarmStarter
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.support.role_runs import (
    RoleEnvironment,
    again,
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

KEY, OTHER = "order-1/post_install", "order-2/post_install"
GO = "/run/template/go"
MARKER = f"8322.{os.getpid()}"


def starter_of(role_environment: RoleEnvironment) -> WarmStarter:
    starter = role_environment.shops[-1].starter
    assert isinstance(starter, WarmStarter)
    return starter


async def test_the_server_killed_runs_go_on_and_the_next_is_started_the_plain_way(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "waiting",
        post_install=[shell(f"until test -e {GO}; do sleep 0.05; done", "wait"), facts(done="yes")],
    )
    short = role_environment.role("short", post_install=[facts(done="too")])
    driver = role_environment.warm_driver()
    starter = starter_of(role_environment)
    await at_task(driver, KEY, wanted, "wait")
    assert starter.server_pid is not None
    os.kill(starter.server_pid, signal.SIGKILL)

    assert await ended(driver, OTHER, short) == Done({"done": "too"})
    (role_environment.content / "waiting" / "go").touch()
    assert await ended(driver, KEY, wanted) == Done({"done": "yes"})

    assert event_texts(list(await driver.events(KEY)), "task") == ["wait", "report"], "it ran once"
    assert starter.forked_runs == 1


async def test_the_server_ends_with_boatyard_and_runs_go_on(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "waiting",
        post_install=[shell(f"until test -e {GO}; do sleep 0.05; done", "wait"), facts(done="yes")],
    )
    driver = role_environment.warm_driver()
    server = starter_of(role_environment).server_pid
    await at_task(driver, KEY, wanted, "wait")

    role_environment.shops[-1].close()

    async def servers() -> set[int]:
        return {server} & set(processes_with("boatyard_inside serve"))

    # Those it has forked bear the same command line; it itself is gone.
    await until(servers, lambda found: not found)
    (role_environment.content / "waiting" / "go").touch()
    assert await ended(role_environment.driver(), KEY, wanted) == Done({"done": "yes"})


async def test_a_server_that_does_not_come_up_is_done_without(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role("short", post_install=[facts(done="yes")])
    shop = role_environment.shop()
    python = shop.get_capabilities().python
    starter = shop.starter
    assert isinstance(starter, WarmStarter)
    broken = type(shop.get_capabilities())(
        python=python.with_name("false"), playbook=python, namespaces=True, users=True
    )

    assert starter.warm_up(broken) is False
    assert await ended(LocalAutomation(shop, "hub"), KEY, wanted) == Done({"done": "yes"})
    assert starter.forked_runs == 0


async def test_a_forked_run_is_ended_in_time_and_cancelled(
    role_environment: RoleEnvironment,
) -> None:
    task = f"setsid nohup sleep {MARKER} > /dev/null 2>&1 & sleep {MARKER}"
    wanted = role_environment.role("sleeper", post_install=[shell(task, "sleep")])
    driver = role_environment.warm_driver()

    with pytest.raises(Refused, match="longer than 6 s"):
        await ended(driver, KEY, again(wanted, time_limit=6))
    assert processes_with("sleep", MARKER) == {}

    await at_task(driver, OTHER, wanted, "sleep")
    await released(driver, OTHER)
    assert processes_with("sleep", MARKER) == {}
    assert starter_of(role_environment).forked_runs == 2


async def test_a_forked_run_has_nothing_of_the_server(role_environment: RoleEnvironment) -> None:
    """Neither its descriptors nor its rights, its environment or its directory."""
    look = (
        "id -u; grep -h Cap /proc/self/status | sort -u; grep NoNewPrivs /proc/self/status; "
        "for fd in /proc/[0-9]*/fd/*; do readlink $fd; done | sort | uniq; env | cut -d= -f1 | sort"
    )
    wanted = role_environment.role(
        "spy", post_install=[shell(look, "look", register="seen"), facts(seen="{{ seen.stdout }}")]
    )
    driver = role_environment.warm_driver()

    done = await ended(driver, KEY, wanted)

    lines = done.facts["seen"].splitlines()
    assert starter_of(role_environment).forked_runs == 1
    assert not [line for line in lines if line.startswith(("socket:", str(role_environment.data)))]
    assert {line.split()[1] for line in lines if line.startswith(("CapEff", "CapPrm"))} == {
        "0" * 16
    }
    assert "NoNewPrivs:\t1" in lines
    if os.geteuid() == 0:
        assert lines[0] != "0"


async def test_many_at_once(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role("many", post_install=[debug("hello"), facts(name="{{ name }}")])
    driver = role_environment.warm_driver()
    keys = [f"order-{n}/post_install" for n in range(8)]
    runs = {key: again(wanted, values={"name": key}) for key in keys}

    for key, run in runs.items():
        await driver.ensure_run(key, run)
    for key, run in runs.items():
        assert (await ended(driver, key, run)).facts == {"name": key}

    assert starter_of(role_environment).forked_runs == 8
