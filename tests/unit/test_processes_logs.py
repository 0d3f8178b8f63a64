"""Logs of processes that run for years: bounded while they are written, and nothing is torn."""

from __future__ import annotations

import json
import logging
import stat
import sys
from pathlib import Path

from boatyard.processes.logs import JsonLines, RotatingStreamHandler, rotate_log


def test_a_log_that_is_too_long_begins_anew_under_its_writer(tmp_path: Path) -> None:
    log = tmp_path / "etcd-0.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"begin" + 100 * b"x" + b"end")
        rotate_log(log, 50)
        assert log.read_bytes() == b""
        writer.write(b"and on")
    assert log.read_bytes() == b"and on", "no hole, no old words"
    kept = tmp_path / "etcd-0.log.1"
    assert kept.read_bytes() == 47 * b"x" + b"end"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_short_log_or_none_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "etcd-0.log"
    rotate_log(log, 50)
    log.write_bytes(50 * b"x")
    rotate_log(log, 50)
    assert [path.name for path in tmp_path.iterdir()] == ["etcd-0.log"]
    assert log.stat().st_size == 50


def say(path: Path, mode: str, times: int) -> None:
    with path.open(mode) as stream:
        handler = RotatingStreamHandler(stream, 1000)
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


def test_a_record_is_one_line_of_json_with_its_fields_and_its_trace() -> None:
    try:
        raise ValueError("no\nsuch host")
    except ValueError:
        fields = {
            "msg": "hub %s lost",
            "args": ("h-1",),
            "levelname": "ERROR",
            "name": "boatyard.x",
        }
        record = logging.makeLogRecord({**fields, "order": "o-1", "exc_info": sys.exc_info()})

    line = JsonLines().format(record)

    values = json.loads(line)
    assert "\n" not in line
    assert values.pop("trace").endswith("no\nsuch host")
    assert values.pop("at").startswith("20")
    assert values == {
        "level": "error",
        "from": "boatyard.x",
        "message": "hub h-1 lost",
        "order": "o-1",
    }
