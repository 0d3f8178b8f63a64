"""The processes of one cluster: who is replaced when, and how long their logs become."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from boatyard.platforms.drivers.local.cgroup_limits import CgroupLimits
from boatyard.platforms.drivers.local.components import ControlPlaneComponent
from boatyard.platforms.drivers.local.process_supervisor import (
    STEADY_SECONDS,
    DesiredProcess,
    ProcessSupervisor,
)
from boatyard.processes.marked_processes import ProcessSpec, start_process

STEADY = STEADY_SECONDS + 1


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[ProcessSupervisor]:
    run = tmp_path / "run"
    run.mkdir()
    crew = ProcessSupervisor(
        f"test-{os.getpid()}-{time.monotonic_ns()}/abc",
        run,
        user=None,
        bounds=CgroupLimits(),
        program=lambda version, name: Path("/bin/sleep"),
        on_exit=lambda: None,
    )
    yield crew
    await crew.stop_all(kill=True)


def wanted(*names: str, version: str = "1", reads: str = "") -> list[DesiredProcess]:
    return [
        DesiredProcess(ControlPlaneComponent(name, "sleep", ("600",), {}), version, "", reads)
        for name in names
    ]


async def test_whose_file_was_renewed_is_started_anew_one_at_a_time(
    crew: ProcessSupervisor,
) -> None:
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
    crew: ProcessSupervisor,
) -> None:
    await crew.ensure(wanted("manager-0"), 0.0)
    before = crew.pids()
    await crew.ensure(wanted("manager-0", reads="new"), 1.0)
    assert crew.pids() == before
    await crew.ensure(wanted("manager-0", reads="new"), STEADY)
    assert crew.pids() != before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody as another user")
async def test_a_strangers_process_with_the_mark_does_not_stand_for_ours(
    crew: ProcessSupervisor, tmp_path: Path
) -> None:
    (one,) = wanted("manager-0")
    mark = crew.make_command_mark("manager-0").replace("once", one.digest)
    spec = ProcessSpec(
        mark=mark,
        argv=("sleep", "600"),
        executable=Path("/bin/sleep"),
        directory=Path("/"),
        log=tmp_path / "stranger.log",
        user=1_500_000_002,
    )
    stranger = start_process(spec)
    try:
        await crew.ensure([one], 0.0)
        assert crew.pids().keys() == {"manager-0"}
        assert crew.pids()["manager-0"] != stranger.pid
        assert stranger.is_alive, "it is not ours to end"
    finally:
        stranger.signal(signal.SIGKILL)
        stranger.close()


async def test_another_version_is_not_waited_for(crew: ProcessSupervisor) -> None:
    names = ("manager-0", "manager-1")
    await crew.ensure(wanted(*names, reads="old"), 0.0)
    before = crew.pids()
    await crew.ensure(wanted(*names, reads="new", version="2"), 1.0)
    assert not set(crew.pids().values()) & set(before.values())
