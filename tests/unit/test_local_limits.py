"""A cluster's processes are bounded together, and the bound goes with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from boatyard.platforms.drivers.local import limits
from boatyard.platforms.drivers.local.limits import Limits

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
        assert limits.join(NAME, process.pid, Limits(memory=1024**3, threads=20))
        assert f"boatyard-{NAME}" in Path(f"/proc/{process.pid}/cgroup").read_text()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert 0 < int(process.stdout.readline()) < 20
        process.kill()
    limits.remove(NAME)
    assert not list(limits.ROOT.glob(f"**/boatyard-{NAME}"))


def test_removing_nothing_is_fine() -> None:
    limits.remove("nobody")


def test_somebody_who_is_not_there_cannot_join() -> None:
    assert not limits.join(NAME, 2**22 + 1, Limits())
    limits.remove(NAME)
