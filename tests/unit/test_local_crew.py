"""The processes of one cluster: who is replaced when, and how long their logs become."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from boatyard.platforms.drivers.local.components import Component
from boatyard.platforms.drivers.local.crew import STEADY_SECONDS, Crew, Wanted
from boatyard.platforms.drivers.local.limits import Limits
from boatyard.processes.marked import ProcessSpec, start

STEADY = STEADY_SECONDS + 1


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[Crew]:
    run = tmp_path / "run"
    run.mkdir()
    crew = Crew(
        f"test-{os.getpid()}-{time.monotonic_ns()}/abc",
        run,
        user=None,
        bounds=Limits(),
        program=lambda version, name: Path("/bin/sleep"),
        on_exit=lambda: None,
    )
    yield crew
    await crew.stop_all(kill=True)


def wanted(*names: str, version: str = "1", reads: str = "") -> list[Wanted]:
    return [Wanted(Component(name, "sleep", ("600",), {}), version, "", reads) for name in names]


async def test_whose_file_was_renewed_is_started_anew_one_at_a_time(crew: Crew) -> None:
    names = ("manager-0", "manager-1", "scheduler-0")
    await crew.ensure(wanted(*names, reads="old"), 0.0)
    first = crew.pids()

    async def renewed(now: float) -> set[str]:
        assert await crew.ensure(wanted(*names, reads="new"), now) == 0.0
        pids = crew.pids()
        assert pids.keys() == set(names)
        return {name for name in names if pids[name] != first[name]}

    assert await renewed(1.0) == set(), "they have only just started"
    assert await renewed(STEADY) == {"manager-0"}
    assert await renewed(STEADY + 1) == {"manager-0"}, "the new one is not steady yet"
    assert await renewed(2 * STEADY + 1) == {"manager-0", "manager-1"}
    assert await renewed(3 * STEADY + 2) == set(names)


async def test_one_of_an_older_release_that_says_nothing_of_its_files_is_renewed_too(
    crew: Crew,
) -> None:
    await crew.ensure(wanted("manager-0"), 0.0)
    before = crew.pids()
    await crew.ensure(wanted("manager-0", reads="new"), 1.0)
    assert crew.pids() == before
    await crew.ensure(wanted("manager-0", reads="new"), STEADY)
    assert crew.pids() != before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody as another user")
async def test_a_strangers_process_with_the_mark_does_not_stand_for_ours(
    crew: Crew, tmp_path: Path
) -> None:
    (one,) = wanted("manager-0")
    mark = crew.mark_of("manager-0").replace("once", one.digest)
    spec = ProcessSpec(
        mark=mark,
        argv=("sleep", "600"),
        executable=Path("/bin/sleep"),
        directory=Path("/"),
        log=tmp_path / "stranger.log",
        user=1_500_000_002,
    )
    stranger = start(spec)
    try:
        await crew.ensure([one], 0.0)
        assert crew.pids().keys() == {"manager-0"}
        assert crew.pids()["manager-0"] != stranger.pid
        assert stranger.alive, "it is not ours to end"
    finally:
        stranger.signal(signal.SIGKILL)
        stranger.close()


async def test_another_version_is_not_waited_for(crew: Crew) -> None:
    names = ("manager-0", "manager-1")
    await crew.ensure(wanted(*names, reads="old"), 0.0)
    before = crew.pids()
    await crew.ensure(wanted(*names, reads="new", version="2"), 1.0)
    assert not set(crew.pids().values()) & set(before.values())
