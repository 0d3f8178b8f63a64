"""What the proof sees of runs: those that are kept, and processes of those that nothing is kept of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.planning import mark_of
from boatyard.automation.drivers.local.records import Record, Records
from boatyard.model.generated.boatyard import Item
from boatyard.processes.marked import MARK
from boatyard.proof.role_runs import LaneRuns, runs_of
from tests.support.orders import an_order


@contextmanager
def running(records: Records, key: str) -> Iterator[None]:
    """Somebody who carries the mark of a run."""
    environ = {"PATH": os.environ["PATH"], MARK: mark_of(records.place(key))}
    process = subprocess.Popen(("sleep", "60"), env=environ)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("item", ["role", "pre_install", "scale/2", "acceptance/1", "farewell"])
def test_processes_of_any_run_that_the_order_had_are_strays(tmp_path: Path, item: str) -> None:
    records = Records(tmp_path / "automation" / "runs")
    with running(records, f"c-1/{item}"):
        assert LaneRuns(tmp_path).look("c-1", {item}) == ({}, [f"processes of run {item}"])
        assert LaneRuns(tmp_path).look("c-2", {item}) == ({}, []), "another cluster's"

    assert LaneRuns(tmp_path).look("c-1", {item}) == ({}, [])


def test_a_run_that_something_is_kept_of_is_no_stray(tmp_path: Path) -> None:
    records = Records(tmp_path / "automation" / "runs")
    records.save(
        Record(
            key="c-1/role", hub="h", template="t", action="install", digest="d", attempt=1, start=1
        )
    )
    with running(records, "c-1/role"):
        kept, strays = LaneRuns(tmp_path).look("c-1", {"role"})

    assert kept == {"run role": {"attempt": 1, "state": "under way"}}
    assert strays == []


def test_the_runs_of_an_order_are_told_by_its_items() -> None:
    items = [
        Item(key=key, kind=kind)
        for key, kind in (
            ("role", "role"),
            ("host/compute-0", "host"),
            ("scale/2", "scale"),
            ("check/api@2", "check"),
            ("acceptance/2", "acceptance"),
            ("farewell", "farewell"),
        )
    ]

    assert runs_of(an_order(items=items)) == {"role", "scale/2", "acceptance/2", "farewell"}
