"""`boatyard demo` walks the whole road and leaves nothing behind, also when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.assets import needs_assets

DEMO = (sys.executable, "-m", "boatyard.app.main", "demo")


@pytest.fixture
def place(tmp_path_factory):
    """Where the demo makes its temporary directory; short, because sockets live there."""
    return tmp_path_factory.mktemp("d")


def environment(place: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(place)}


def processes_at(place: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            inside = os.readlink(entry / "cwd").startswith(f"{place}/")
        except OSError:
            continue
        if str(place) in words or inside:
            found.append(words)
    return found


@pytest.mark.timeout(180)
def test_two_demos_beside_each_other_go_from_order_to_receipt(place, tmp_path_factory):
    """One ends by itself; what the other says, which is kept, can be typed, and Ctrl-C ends it well."""
    other = tmp_path_factory.mktemp("k")
    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(keep, other)
        done = subprocess.run(
            DEMO, env=environment(place), capture_output=True, text=True, timeout=170, check=False
        )
        rest = kept.result()
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    typed = [line for line in lines if line.startswith("$ boatyard ")]
    assert [line.split()[2] for line in typed] == [
        *("get", "get", "create", "explain", "kubeconfig", "scale", "scale", "get", "events"),
        *("delete", "get"),
    ]
    assert lines.count("web-1: ready") == 3
    assert any(
        line.startswith("receipt: web-1 deleted") and line.endswith("nothing left")
        for line in lines
    )
    assert "--template small" in rest
    for where in (place, other):
        assert list(where.iterdir()) == []
        assert processes_at(where) == []


def keep(place: Path) -> str:
    """A demo that is kept, to its end by Ctrl-C; what it says after that."""
    with subprocess.Popen(
        [*DEMO, "--keep"],
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line.strip())
            if line.startswith("Ctrl-C ends it"):
                break
        there = next(line for line in said if line.startswith("export XDG"))
        typed = next(line for line in said if line.endswith("get clusters"))
        answer = subprocess.run(
            ["sh", "-c", f"{there}; {typed}"], capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait(60) == 0, rest
    return rest


@pytest.mark.real
@pytest.mark.timeout(300)
def test_with_the_programs_at_hand_the_demo_ends_with_a_real_cluster(place):
    assets = needs_assets()
    done = subprocess.run(
        DEMO, env=environment(place), capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert f"The clusters are real: Kubernetes {assets.versions()[-1]}" in said
    nodes = said[said.index("# A real API server answers") :].splitlines()[3:5]
    assert [line.split()[1] for line in nodes] == ["Ready", "Ready"]
    assert 'deployment "hello" successfully rolled out' in said
    assert said.count("1/1     Running") == 3
    assert "--template kubernetes_small\n" in said[said.index("What to try next") :]
    assert list(place.iterdir()) == []
    assert processes_at(place) == []


@pytest.mark.real
@pytest.mark.timeout(120)
def test_an_interrupted_demo_of_real_clusters_cleans_up(place):
    needs_assets()
    interrupt(place, signal.SIGINT)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_demo_cleans_up(place, number):
    interrupt(place, number)


def interrupt(place: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        DEMO,
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("Ordered cluster"):
                break
        os.killpg(demo.pid, number)  # as a terminal does
        said = demo.stdout.read()
        assert demo.wait(60) == 130, said
    assert "everything is stopped and removed" in said
    assert list(place.iterdir()) == []
    assert processes_at(place) == []
