"""`boatyard assets install` as a process: killed, terminated, out of room; the next run goes on."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from boatyard.assets import DEFAULT_VERSION, Assets
from boatyard.assets.cache import prune_builds
from boatyard.assets.go_build import COMPILER_WRAPPER
from tests.support.assets import put, without_boatyard
from tests.support.build_machine import BuildMachine
from tests.support.mirror import Mirror, run_mirror
from tests.support.processes import BOATYARD, wait_until_dead

SIZE = 900_000
HALF = 400_000


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with run_mirror() as mirror:
        mirror.offer(DEFAULT_VERSION, size=SIZE)
        yield mirror


def command(mirror: Mirror, directory: Path, *words: str) -> list[str]:
    # The machine's own architecture is not the mirror's: the words are the mirror's.
    program = (
        "import platform, sys\n"
        "platform.machine = lambda: 'x86_64'\n"
        "from boatyard.app.main import main\n"
        "sys.exit(main())\n"
    )
    return [
        *(sys.executable, "-c", program, "assets", "install", "--dir", str(directory)),
        *("--kubernetes-mirror", mirror.mirrors.kubernetes),
        *("--etcd-mirror", mirror.mirrors.etcd),
        *words,
    ]


def own_environment(folder: Path) -> dict[str, str]:
    """Ours, with nothing of Boatyard's in it but a cache in `folder`."""
    return without_boatyard() | {"BOATYARD_CACHE": str(folder / "cache")}


def start(mirror: Mirror, directory: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(mirror, directory, *words),
        env=own_environment(directory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def to_the_end(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_ended_download_goes_on_where_it_was(
    tmp_path: Path, mirror: Mirror, number: signal.Signals
) -> None:
    path = mirror.path_of(DEFAULT_VERSION, "kubelet")
    part = tmp_path / DEFAULT_VERSION / ".download" / "kubelet.part"
    mirror.holds[path] = HALF
    process = start(mirror, tmp_path, "--by", "download")
    assert mirror.held.wait(timeout=60)
    while not part.exists() or part.stat().st_size < HALF:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    code, said = to_the_end(process)
    assert code == (-number if number is signal.SIGKILL else 130)
    assert number is signal.SIGKILL or "goes on where this one stopped" in said
    assert not (tmp_path / DEFAULT_VERSION / "kubelet").exists()

    mirror.holds.clear()
    mirror.served.clear()
    code, said = to_the_end(start(mirror, tmp_path, "--by", "download"))
    assert code == 0, said
    (only,) = mirror.requests(path)
    assert (only.range, only.sent) == (f"bytes={HALF}-", SIZE - HALF)
    assert Assets(tmp_path, path="").missing(DEFAULT_VERSION) == ()


def test_two_at_once_download_once(tmp_path: Path, mirror: Mirror) -> None:
    both = [start(mirror, tmp_path, "--by", "download") for _ in range(2)]
    for code, said in [to_the_end(one) for one in both]:
        assert code == 0, said
    assert len(mirror.requests(mirror.path_of(DEFAULT_VERSION, "kubelet"))) == 1
    assert Assets(tmp_path, path="").missing(DEFAULT_VERSION) == ()


def test_no_room_is_said_in_one_line(tmp_path: Path, mirror: Mirror) -> None:
    done = subprocess.run(
        command(mirror, tmp_path, "--by", "download"),
        env=own_environment(tmp_path) | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, HALF)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"boatyard: there is no room in {tmp_path}" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_ended_build_takes_the_compiler_with_it(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "bin").mkdir()
    script = (
        "#!/bin/sh\n"
        '[ "$1" = env ] && { echo go1.26.9; exit; }\n'
        "[ $1 = list ] && exit\n"
        f"echo $$ > {tmp_path}/pid\n"
        "exec sleep 600\n"
    )
    put(tmp_path / "bin" / "go", script.encode())
    environ = own_environment(tmp_path)
    environ["PATH"] = f"{tmp_path / 'bin'}:{environ['PATH']}"
    process = subprocess.Popen(
        [*BOATYARD, "assets", "install", "--by", "build", "--dir", str(tmp_path / "assets")],
        env=environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid = tmp_path / "pid"
    while not pid.exists() or not pid.read_text().strip():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(timeout=60) == (-number if number is signal.SIGKILL else 130)
    wait_until_dead(int(pid.read_text()))
    assert number is signal.SIGKILL or not list(tmp_path.glob("cache/built/*.work"))


# A fork hook is the one place where a signal can be made to arrive while a process is being started.
INTERRUPTED_START = """
import os, pathlib, signal, subprocess, sys
from boatyard.app.main import main

arrived = pathlib.Path(sys.argv.pop(1))
hooks = sys.argv.pop(1) == "hooks"

def interrupt():
    if not arrived.exists():
        arrived.touch()
        os.kill(os.getpid(), signal.SIGTERM)

os.register_at_fork(after_in_parent=interrupt)
start = subprocess.Popen.__init__
if hooks:  # Python runs fork hooks only for those who want something done between fork and exec
    subprocess.Popen.__init__ = lambda *words, **options: start(
        *words, **options, preexec_fn=os.getpid
    )
sys.exit(main())
"""


@pytest.mark.parametrize("hooks", [False, True], ids=["as it is", "with fork hooks"])
def test_a_sigterm_while_the_compiler_is_started_is_obeyed(tmp_path: Path, hooks: bool) -> None:
    (tmp_path / "bin").mkdir()
    script = (
        f"#!/bin/sh\n[ $1 = env ] && echo go1.26.9\n[ $1 = list ] && touch {tmp_path}/started\n"
    )
    put(tmp_path / "bin" / "go", script.encode())
    environ = own_environment(tmp_path) | {"PATH": f"{tmp_path / 'bin'}:{os.defpath}"}
    arrived = tmp_path / "arrived"
    done = subprocess.run(
        [
            *(sys.executable, "-c", INTERRUPTED_START, arrived, "hooks" if hooks else "none"),
            *("assets", "install", "--by", "build", "--dir", tmp_path / "assets"),
        ],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (tmp_path / "started").exists() or arrived.exists()
    assert arrived.exists() or not hooks
    assert (done.returncode == 130) is arrived.exists(), done.stderr


def test_a_compiler_whose_parent_has_ended_is_not_started() -> None:
    elsewhere = str(os.getppid())
    for parent, words in ((elsewhere, ""), (str(os.getpid()), "started\n")):
        done = subprocess.run(
            [sys.executable, "-c", COMPILER_WRAPPER, parent, "/bin/echo", "started"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == words


CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.utime", "open"}


def install_killed(machine: BuildMachine, deadly: int) -> int:
    """Installs in a process that kills itself at that change to the cache, counted from when it begins to store.

    Its exit code, or the signal that ended it as a negative number.
    """
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    changes = itertools.count(1)
    storing = False

    def strike(event: str, words: tuple[object, ...]) -> None:
        nonlocal storing
        if event not in CHANGES or (event == "open" and not cast("int", words[2]) & os.O_ACCMODE):
            return
        begins = event == "os.mkdir" and Path(str(words[0])).name == machine.cached().key
        storing = storing or begins
        inside = any(str(machine.cache) in str(word) for word in words)
        if storing and inside and next(changes) == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(strike)
        machine.build()
        os._exit(0)
    finally:
        os._exit(1)


def test_killed_while_storing_nothing_counts_that_is_not_whole(tmp_path: Path) -> None:
    machine = BuildMachine(tmp_path)
    outcomes = set()
    for deadly in itertools.count(1):
        code = install_killed(machine, deadly)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        machine.calls()

        clone = machine.directory(f"clone-{deadly}")
        machine.build(clone)

        outcomes.add("built" if machine.calls() else "taken")
        assert clone.missing(DEFAULT_VERSION) == ()
        assert (clone.folder(DEFAULT_VERSION) / "kube").read_bytes().endswith(b"esac\n")
        (machine.cached().directory / "kube").write_bytes(b"damaged")  # to be replaced
        shutil.rmtree(machine.assets.directory)
    assert outcomes == {"built", "taken"}, "killed before it counts, and after"
    list(prune_builds(machine.cache, keep=(), before=0))
    assert machine.left() == []
