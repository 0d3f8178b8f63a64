"""A cluster's processes are bounded together, and the bound goes with them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boatyard.platforms.drivers.local import cgroup_limits
from boatyard.platforms.drivers.local.cgroup_limits import CgroupLimits

NAME = f"test-{os.getpid()}"
# Waits for a word, then starts threads until it may not, and says how many it got.
GREEDY = """
import sys, threading
sys.stdin.readline()
count, hold = 0, threading.Event()
try:
    for _ in range(200):
        threading.Thread(target=hold.wait, daemon=True).start()
        count += 1
except RuntimeError:
    pass
print(count, flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can bound others; run as root")
def test_who_joins_gets_no_more_threads_than_allowed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", GREEDY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert cgroup_limits.add_process(
            NAME, process.pid, CgroupLimits(memory=1024**3, threads=20)
        )
        assert f"boatyard-{NAME}" in Path(f"/proc/{process.pid}/cgroup").read_text()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert 0 < int(process.stdout.readline()) < 20
        process.kill()
    cgroup_limits.remove_groups(NAME)
    assert not list(cgroup_limits.CGROUP_ROOT.glob(f"**/boatyard-{NAME}"))


BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can bound others; run as root")
def test_a_cluster_gives_way_to_others_when_processors_are_few() -> None:
    """On one and the same processor, both wanting all of it."""
    ours, theirs = (
        subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) for _ in range(2)
    )
    try:
        assert cgroup_limits.add_process(NAME, ours.pid, CgroupLimits())
        before = [_processor_time(process.pid) for process in (ours, theirs)]
        end = time.monotonic() + 10
        used = [0, 0]
        while used[1] < 40 and time.monotonic() < end:
            time.sleep(0.1)
            used = [
                _processor_time(process.pid) - begin
                for process, begin in zip((ours, theirs), before, strict=True)
            ]
        assert used[1] > 2 * used[0], used
    finally:
        ours.kill()
        theirs.kill()
        ours.wait()
        theirs.wait()
        cgroup_limits.remove_groups(NAME)


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture
def log_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], Any]:
    """Why, of each warning."""
    monkeypatch.setattr(cgroup_limits, "_logged_reasons", set())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return lambda: [getattr(record, "why", "") for record in caplog.records]


def test_limits_that_cannot_be_set_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: Callable[[], Any]
) -> None:
    monkeypatch.setattr(cgroup_limits, "CGROUP_ROOT", tmp_path)  # no hierarchy is mounted there
    for _ in range(3):
        assert not cgroup_limits.add_process(NAME, os.getpid(), CgroupLimits())
    assert log_lines() == [f"{tmp_path}/memory: No such file or directory"]


def test_without_root_it_is_told_once(
    monkeypatch: pytest.MonkeyPatch, log_lines: Callable[[], Any]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for _ in range(3):
        assert not cgroup_limits.add_process(NAME, os.getpid(), CgroupLimits())
    assert log_lines() == ["not run as root"]


def test_a_group_that_does_not_go_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cgroup_limits, "CGROUP_ROOT", tmp_path)
    monkeypatch.setattr(cgroup_limits, "_REMOVE_SECONDS", 0.05)
    group = tmp_path / "pids" / f"boatyard-{NAME}"
    (group / "somebody").mkdir(parents=True)  # is in it: it cannot be removed
    cgroup_limits.remove_groups(NAME)
    assert [getattr(record, "group", "") for record in caplog.records] == [str(group)]


def test_removing_nothing_is_fine() -> None:
    cgroup_limits.remove_groups("nobody")


def test_somebody_who_is_not_there_cannot_join(log_lines: Callable[[], Any]) -> None:
    assert not cgroup_limits.add_process(NAME, 2**22 + 1, CgroupLimits())
    cgroup_limits.remove_groups(NAME)


@pytest.mark.parametrize("unified", [False, True], ids=["one tree each", "one tree for all"])
def test_memory_threads_and_share_are_bounded_in_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unified: bool
) -> None:
    monkeypatch.setattr(cgroup_limits, "CGROUP_ROOT", tmp_path)
    if unified:
        (tmp_path / "cgroup.controllers").touch()

    settings = cgroup_limits._settings(CgroupLimits(memory=7, threads=5, cpu_shares=512))

    written = {file: value for _, files in settings for file, value in files.items()}
    if unified:
        assert written == {"memory.max": "7", "pids.max": "5", "cpu.weight": "50"}
    else:
        assert written == {"memory.limit_in_bytes": "7", "pids.max": "5", "cpu.shares": "512"}
