"""Marked processes: found by their mark alone, never confused with a stranger, gone when told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boatyard.model.errors import Unavailable
from boatyard.processes.marked_processes import (
    MARK_VARIABLE,
    MarkedProcess,
    ProcessSpec,
    find_processes,
    start_process,
)

SLEEP = ("-c", "import time; time.sleep(600)")


@pytest.fixture
def mark() -> Iterator[str]:
    name = f"test-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    for processes in find_processes(name).values():
        for process in processes:
            process.signal(signal.SIGKILL)
            process.close()


def spec(mark: str, directory: Path, *arguments: str, **fields: object) -> ProcessSpec:
    return ProcessSpec(
        mark=mark,
        argv=("python", *(arguments or SLEEP)),
        executable=Path(sys.executable),
        directory=directory,
        log=directory / "log",
        **fields,  # type: ignore[arg-type]
    )


def wait_until_gone(process: MarkedProcess) -> None:
    deadline = time.monotonic() + 10
    while process.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_is_found_by_its_mark_without_any_file(mark: str, tmp_path: Path) -> None:
    started = start_process(spec(f"{mark}/etcd", tmp_path))
    found = find_processes(f"{mark}/")
    assert [one.pid for one in found[f"{mark}/etcd"]] == [started.pid]
    assert find_processes(f"{mark}/other") == {}


def test_one_that_was_started_by_a_process_that_died_is_found_too(
    mark: str, tmp_path: Path
) -> None:
    """The starter is killed with SIGKILL right after the start; nothing was written down."""
    program = (
        "import os, signal; from pathlib import Path;"
        "from boatyard.processes.marked_processes import ProcessSpec, start_process;"
        f"start_process(ProcessSpec(mark={mark!r}, argv=('sleep', '600'), executable=Path('/bin/sleep'),"
        f"directory=Path({str(tmp_path)!r}), log=Path({str(tmp_path / 'log')!r})));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    (process,) = find_processes(mark)[mark]
    assert process.is_alive


def test_a_process_that_has_ended_is_not_found_and_not_signalled(mark: str, tmp_path: Path) -> None:
    started = start_process(spec(mark, tmp_path, "-c", "pass"))
    wait_until_gone(started)
    started.signal(signal.SIGKILL)  # nobody is hurt
    assert find_processes(mark) == {}


def test_a_stranger_without_the_mark_is_never_found(mark: str, tmp_path: Path) -> None:
    """Its command line names the mark; only the environment counts."""
    with subprocess.Popen([sys.executable, *SLEEP, f"{MARK_VARIABLE}={mark}"]) as stranger:
        assert find_processes(mark) == {}
        stranger.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody as another user")
def test_a_mark_counts_only_from_users_that_can_be_ours(mark: str, tmp_path: Path) -> None:
    """A stranger on this machine may give its own process any environment."""
    cluster, stranger = 1_500_000_001, 1_500_000_002
    tmp_path.chmod(0o755)
    for user in (None, cluster, stranger):
        environ = {"PATH": "/usr/bin:/bin"}
        sleep = ProcessSpec(
            mark=mark,
            argv=("sleep", "600"),
            executable=Path("/bin/sleep"),
            directory=tmp_path,
            log=tmp_path / "log",
            user=user,
            environ=environ,
        )
        start_process(sleep).close()

    def users(*ours: int) -> list[int]:
        pids = [one.pid for one in find_processes(mark, ours)[mark]]
        return sorted(os.stat(f"/proc/{pid}").st_uid for pid in pids)

    assert users() == [os.geteuid()]
    assert users(cluster) == [os.geteuid(), cluster]
    assert len(find_processes(mark)[mark]) == 3, "who does not ask gets all"


def test_a_process_that_stands_still_is_alive_and_goes_on(mark: str, tmp_path: Path) -> None:
    started = start_process(spec(mark, tmp_path))
    started.signal(signal.SIGSTOP)
    assert started.is_alive
    assert mark in find_processes(mark)
    started.signal(signal.SIGCONT)
    started.signal(signal.SIGTERM)
    wait_until_gone(started)


def test_a_process_stands_still_only_when_each_of_its_threads_does(
    mark: str, tmp_path: Path
) -> None:
    busy = (
        "import threading\n"
        "def turn():\n    while True: pass\n"
        "[threading.Thread(target=turn).start() for _ in range(4)]\n"
    )
    process = start_process(spec(mark, tmp_path, "-c", busy))
    while len(os.listdir(f"/proc/{process.pid}/task")) < 5:
        time.sleep(0.01)
    assert not process.is_stopped
    process.signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while not process.is_stopped:
        assert time.monotonic() < deadline
    for _ in range(3):
        used = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        time.sleep(0.02)
        assert (
            used == Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        )
    process.signal(signal.SIGKILL)
    wait_until_gone(process)
    assert process.is_stopped


def test_its_words_are_in_the_log(mark: str, tmp_path: Path) -> None:
    started = start_process(spec(mark, tmp_path, "-c", "print('I could not', flush=True)"))
    wait_until_gone(started)
    assert (tmp_path / "log").read_text() == "I could not\n"


def test_a_program_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    wrong = ProcessSpec(
        mark="x",
        argv=("none",),
        executable=tmp_path / "none",
        directory=tmp_path,
        log=tmp_path / "log",
    )
    with pytest.raises(Unavailable, match="none cannot be started"):
        start_process(wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody as another user")
def test_another_user_reaches_its_directory_through_closed_ones(mark: str, tmp_path: Path) -> None:
    """Neither the program's path nor the directory's is open to that user."""
    user = 1_500_000_000
    closed = tmp_path / "closed"
    inside = closed / "inside"
    inside.mkdir(parents=True)
    closed.chmod(0o700)
    os.chown(inside, user, user)
    program = closed / "shell"
    program.write_bytes(Path("/bin/sh").read_bytes())
    program.chmod(0o755)
    words = ("-c", "id -u > /proc/self/cwd/who; cat " + str(closed / "log"))
    spec = ProcessSpec(
        mark=mark,
        argv=("sh", *words),
        executable=program,
        directory=inside,
        log=closed / "log",
        user=user,
        environ={"PATH": "/usr/bin:/bin"},
    )
    wait_until_gone(start_process(spec))
    assert (inside / "who").read_text().strip() == str(user)
    assert "Permission denied" in (closed / "log").read_text()


def test_a_mark_that_only_contains_the_name_is_a_strangers(mark: str, tmp_path: Path) -> None:
    """Cluster `a/b` must not find what cluster `x/a/b` has started."""
    started = start_process(spec(f"{mark}/a/b", tmp_path))

    assert find_processes("a/b") == {}
    assert [process.pid for process in find_processes(f"{mark}/a")[f"{mark}/a/b"]] == [started.pid]
