"""Nothing is left behind, whenever whoever is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boatyard.netns.namespaces import list_pids
from boatyard.platforms.drivers.local import real
from tests.real import doing
from tests.real.cluster import NamespacedCluster, wait
from tests.real.leftovers import find_leftovers

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="real-"))
    yield folder
    shutil.rmtree(folder)


def test_after_a_kill_of_everything_and_of_who_cleans_up_nothing_is_left(programs: Path) -> None:
    cluster = NamespacedCluster(programs, "test2")
    try:
        cluster.start()
        cluster.deploy("web", 2)
        cluster.kubectl("scale", "deployment/web", "--replicas=8")
        cluster.kill()
        left = find_leftovers("test2", cluster.folder)
        for kind in ("network namespace", "control group", "process", "directory"):
            assert any(line.startswith(kind) for line in left), f"the search finds no {kind}"
        assert [line for line in left if is_visible(line)] == []
        for seconds in (0.005, 0.02, 0.04, 0.08, 0.16):
            run_and_kill(programs, "clean", "test2", cluster.folder, after=seconds)
    finally:
        cluster.close()
    assert find_leftovers("test2", cluster.folder) == []
    assert "test2" not in asyncio.run(real.list_segments())


@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.6, 1.0, 1.5])
def test_who_is_killed_while_making_a_node_leaves_what_can_be_cleaned(
    programs: Path, folder: Path, seconds: float
) -> None:
    run_and_kill(programs, "build", "test4", folder, after=seconds)
    asyncio.run(doing.clean("test4", folder))
    assert find_leftovers("test4", folder / "n1") == []


def test_who_was_killed_while_making_a_node_may_go_on(programs: Path, folder: Path) -> None:
    for seconds in (0.02, 0.05, 0.1, 0.2):
        run_and_kill(programs, "build", "test5", folder, after=seconds)
    try:
        assert run_and_kill(programs, "build", "test5", folder, after=60) == "done"
    finally:
        asyncio.run(doing.clean("test5", folder))
    assert find_leftovers("test5", folder / "n1") == []


def test_a_node_that_stands_still_can_be_cleaned(programs: Path, folder: Path) -> None:
    assert run_and_kill(programs, "build", "test6", folder, after=60) == "done"
    asyncio.run(real.freeze_node("test6", "n1", frozen=True))
    asyncio.run(doing.clean("test6", folder))
    assert find_leftovers("test6", folder / "n1") == []


def test_who_lives_in_a_segment_ends_with_it(machine: None) -> None:
    asyncio.run(real.prepare_segment("test7", "10.79.0.1/24"))
    inside = subprocess.Popen(["nsenter", "--net=/run/netns/by-test7", "sleep", "600"])
    wait("sleep", lambda: inside.pid in list_pids("by-test7"))
    asyncio.run(real.clean_segment("test7"))
    assert inside.wait(timeout=10) == -signal.SIGKILL
    assert find_leftovers("test7") == []


def test_cleaning_where_nothing_is_is_fine(machine: None, folder: Path) -> None:
    asyncio.run(real.clean_node("test6", "n1", folder / "n1"))
    asyncio.run(real.clean_segment("test6"))
    asyncio.run(real.clean_segment("test6"))


def test_mounts_that_somebody_made_where_all_can_see_them_go_too(
    machine: None, folder: Path
) -> None:
    place = folder / "n1" / "with blank"
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    assert find_leftovers("test7", folder)
    asyncio.run(real.clean_node("test7", "n1", folder / "n1"))
    assert find_leftovers("test7", folder / "n1") == []


def is_visible(line: str) -> bool:
    """Something of ours where others look, but for the names of our network namespaces."""
    return line.startswith(("mount", "veth", "bridge")) and not line.startswith("mount /run/netns/")


def run_and_kill(programs: Path, what: str, slug: str, folder: Path, *, after: float) -> str:
    """Kills it, and whatever it has just started to help it, some time after it has begun. What it said last."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.real.doing", what, slug, str(folder)],
        cwd=ROOT,
        env={**os.environ, "KUBELET": str(programs / "kubelet")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    end = time.monotonic() + after
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    said = "done" if process.poll() == 0 else ""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    return said
