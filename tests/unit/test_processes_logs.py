"""Logs of processes that run for years: bounded while they are written, and nothing is torn."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

from boatyard.processes.logs import BoundedHandler, shorten


def test_a_log_that_is_too_long_begins_anew_under_its_writer(tmp_path: Path) -> None:
    log = tmp_path / "etcd-0.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"begin" + 100 * b"x" + b"end")
        shorten(log, 50)
        assert log.read_bytes() == b""
        writer.write(b"and on")
    assert log.read_bytes() == b"and on", "no hole, no old words"
    kept = tmp_path / "etcd-0.log.1"
    assert kept.read_bytes() == 47 * b"x" + b"end"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_short_log_or_none_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "etcd-0.log"
    shorten(log, 50)
    log.write_bytes(50 * b"x")
    shorten(log, 50)
    assert [path.name for path in tmp_path.iterdir()] == ["etcd-0.log"]
    assert log.stat().st_size == 50


def say(path: Path, mode: str, times: int) -> None:
    with path.open(mode) as stream:
        handler = BoundedHandler(stream, 1000)
        for _ in range(times):
            handler.emit(logging.makeLogRecord({"msg": 99 * "x"}))


def test_our_own_words_are_bounded_too(tmp_path: Path) -> None:
    log = tmp_path / "keeper.log"
    say(log, "a", 95)
    assert log.stat().st_size <= 1000
    assert (tmp_path / "keeper.log.1").stat().st_size <= 1000


def test_a_file_that_is_not_appended_to_is_not_cut(tmp_path: Path) -> None:
    """It would have a hole as long as what was cut."""
    log = tmp_path / "keeper.log"
    say(log, "w", 20)
    assert log.stat().st_size == 2000
