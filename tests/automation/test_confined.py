"""A run that behaves badly hurts itself only, and sees nothing of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.limits import RunLimits
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.port import RUN_FAILED
from boatyard.model.errors import Refused
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
    whole_story,
)

KEY, OTHER = "order-1/post_install", "order-2/post_install"
MARKER = f"8321.{os.getpid()}"  # of a sleep that is only ours
NAMESPACES = pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "bare"])


def bare(namespaces: bool) -> dict[str, bool]:
    """Without namespaces, and as ourselves: the way to the interpreter may be closed to others."""
    return {} if namespaces else {"namespaces": False, "users": False}


@NAMESPACES
async def test_one_that_sleeps_for_ever_is_ended_in_time(
    role_environment: RoleEnvironment, namespaces: bool
) -> None:
    wanted = role_environment.role("sleeper", post_install=[shell(f"sleep {MARKER}", "sleep")])
    driver = role_environment.driver(**bare(namespaces))

    with pytest.raises(Refused, match="longer than 6 s") as refused:
        await ended(driver, KEY, again(wanted, time_limit=6))

    assert refused.value.reason == RUN_FAILED
    assert processes_with("sleep", MARKER) == {}


@NAMESPACES
async def test_what_it_has_started_ends_with_it(
    role_environment: RoleEnvironment, namespaces: bool
) -> None:
    task = f"for n in 1 2 3; do setsid nohup sleep {MARKER} > /dev/null 2>&1 & done; sleep 0.2"
    wanted = role_environment.role("daemons", post_install=[shell(task, "fork"), facts(done="yes")])

    done = await ended(role_environment.driver(**bare(namespaces)), KEY, wanted)

    assert done.facts == {"done": "yes"}
    assert processes_with("sleep", MARKER) == {}


@NAMESPACES
async def test_cancelled_in_the_middle_nobody_is_left(
    role_environment: RoleEnvironment, namespaces: bool
) -> None:
    task = f"setsid nohup sleep {MARKER} > /dev/null 2>&1 & trap '' TERM; sleep {MARKER}"
    wanted = role_environment.role("stubborn", post_install=[shell(task, "resist")])
    driver = role_environment.driver(**bare(namespaces))
    await at_task(driver, KEY, wanted, "resist")

    await released(driver, KEY)

    assert processes_with("sleep", MARKER) == {}
    assert list((role_environment.data / "runs").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="processes are counted by user")
async def test_one_that_forks_without_end_reaches_its_bound(
    role_environment: RoleEnvironment,
) -> None:
    bomb = "n=0; while [ $n -lt 400 ]; do sleep 300 & n=$((n+1)); done; echo all"
    wanted = role_environment.role("bomb", post_install=[shell(bomb, "fork")])
    driver = role_environment.driver(limits=RunLimits(processes=60))

    with pytest.raises(Refused, match=r"fork|Resource temporarily unavailable"):
        await ended(driver, KEY, again(wanted, time_limit=60))


async def test_one_that_prints_a_gigabyte_is_cut(role_environment: RoleEnvironment) -> None:
    # By Ansible itself, which looks at names: what a module prints is kept in memory, which has a bound.
    plugin = """
import os

def shout(text):
    for _ in range(10_000):
        os.write(1, (b"x" * 99 + b"\\n") * 1000)
    return text

class FilterModule:
    def filters(self):
        return {"shout": shout}
"""
    wanted = role_environment.role(
        "loud",
        {"filter_plugins/shout.py": plugin},
        post_install=[{"name": "{{ 'x' | shout }}", "ansible.builtin.debug": {"msg": "done"}}],
    )
    driver = role_environment.driver()

    with pytest.raises(Refused, match="printed more than") as refused:
        await ended(driver, KEY, wanted)

    assert refused.value.reason == RUN_FAILED
    events = await whole_story(driver, KEY)
    assert any("the rest is left out" in event.text for event in events)
    assert events[-1].kind == "end"
    assert sum(path.stat().st_size for path in role_environment.everything()) < 4 * 1024 * 1024


async def test_a_module_that_prints_a_gigabyte_fails_alone(
    role_environment: RoleEnvironment,
) -> None:
    wanted = role_environment.role(
        "verbose", post_install=[shell("head -c 1000000000 /dev/zero | tr '\\0' x", "shout")]
    )

    with pytest.raises(Refused):
        await ended(
            role_environment.driver(limits=RunLimits(address_space=400 * 2**20)),
            KEY,
            again(wanted, time_limit=10),  # it reads on until its memory or its time is used up
        )


async def test_it_cannot_fill_the_disk(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "hoarder", post_install=[shell("head -c 90M /dev/zero > $HOME/big", "fill")]
    )

    with pytest.raises(Refused, match="No space left"):
        await ended(
            role_environment.driver(limits=RunLimits(directory_bytes=64 * 2**20)), KEY, wanted
        )


async def test_it_sees_nothing_of_others(role_environment: RoleEnvironment, tmp_path: Path) -> None:
    """The directory, the values and the secrets of another run, our environment, our files, other processes."""
    held = role_environment.role("holder", post_install=[shell(f"sleep {MARKER}", "hold")])
    driver = role_environment.driver()
    await at_task(
        driver,
        OTHER,
        again(held, secrets={"password": "planted-secret"}, files={"kubeconfig": "planted-config"}),
        "hold",
    )
    planted = tmp_path / "planted"
    planted.write_text("planted-file")
    planted.chmod(0o644)
    look = (
        f"cat {planted} /etc/shadow; ls -R {role_environment.data} /root /home /work; "
        "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '; env; "
        "find / -xdev -type f -size -100k -not -path '/usr/*' -not -path '/proc/*' -not -path '/dev/*' "
        f"-not -path '{role_environment.environment.venv_directory}/*' -exec grep -l planted- {{}} + ; "
        "ls /run/boatyard/files; echo uid $(id -u); true"
    )
    spy = role_environment.role(
        "spy",
        post_install=[
            shell(look, "look", register="seen"),
            facts(seen="{{ seen.stdout[:50000] }}", errors="{{ seen.stderr[:3000] }}"),
        ],
    )

    done = await ended(driver, KEY, spy)

    seen = done.facts["seen"]
    for secret in ("planted-", MARKER, "PYTEST", str(role_environment.place(OTHER))):
        assert secret not in seen.replace("grep -l planted-", "").replace(look, ""), secret
    if os.geteuid() == 0:
        assert "uid 0\n" not in seen + "\n"


async def test_the_environment_is_cleared(
    role_environment: RoleEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "planted-variable")
    monkeypatch.setenv("ANSIBLE_FORCE_COLOR", "1")
    wanted = role_environment.role(
        "environ", post_install=[shell("env", "env", register="e"), facts(e="{{ e.stdout }}")]
    )

    done = await ended(role_environment.driver(), KEY, again(wanted, files={"kubeconfig": "{}"}))

    names = {line.partition("=")[0] for line in done.facts["e"].splitlines()}
    assert "PLANTED" not in names
    assert "ANSIBLE_FORCE_COLOR" not in names
    assert {"HOME", "PATH", "KUBECONFIG"} <= names


async def test_its_files_are_its_own_alone(role_environment: RoleEnvironment) -> None:
    look = "stat -c '%a %U %n' $HOME $HOME/files/* $HOME/project/play.yml; cat $KUBECONFIG"
    wanted = role_environment.role(
        "files", post_install=[shell(look, "look", register="r"), facts(r="{{ r.stdout }}")]
    )

    done = await ended(
        role_environment.driver(), KEY, again(wanted, files={"kubeconfig": "apiVersion: v1"})
    )

    lines = done.facts["r"].splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["700", "600", "600"]
    assert lines[-1] == "apiVersion: v1"


async def test_the_story_is_bounded(role_environment: RoleEnvironment) -> None:
    wanted = role_environment.role(
        "talker",
        post_install=[
            {"name": "talk", "ansible.builtin.debug": {"msg": "{{ 'x' * 3000 }}"}},
            *([debug("{{ 'y' * 3000 }}")] * 12),
            {"name": "give up", "ansible.builtin.fail": {"msg": "at the end"}},
        ],
    )
    driver = role_environment.driver(limits=RunLimits(log_bytes=32 * 1024))

    with pytest.raises(Refused, match="at the end"):
        await ended(driver, KEY, wanted)

    events = list(await driver.events(KEY))
    assert (role_environment.place(KEY) / "events.jsonl").stat().st_size < 33 * 1024
    assert event_texts(events, "failed") == ["give up"], "how it ended is told in any case"
    assert events[-1].kind == "end"
    assert [event.number for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    "options, words",
    [
        pytest.param({"namespaces": False, "users": False}, "keys and tokens", id="not at all"),
        pytest.param({}, "", id="as it should be"),
    ],
)
async def test_runs_that_are_not_set_apart_are_told_once_and_whenever_asked(
    role_environment: RoleEnvironment,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, bool],
    words: str,
) -> None:
    driver = role_environment.driver(**options)

    said = [await driver.get_isolation_warning() for _ in range(2)]

    assert said[0] == said[1]
    assert words in said[0]
    assert bool(said[0]) == bool(words)
    assert caplog.text.count("runs of roles are not isolated") == (1 if words else 0)
    await driver.check_ready()


async def test_before_there_is_ansible_nothing_is_said_of_its_runs(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("")
    environment = AnsibleEnvironment(tmp_path / "ansible", lock=lock)
    shop = LocalRunner(tmp_path / "data", lambda _: tmp_path, environment=environment)

    assert shop.get_isolation_warning() == ""

    assert not environment.is_ready(), "asking makes nothing"
    shop.close()
