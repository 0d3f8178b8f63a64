"""What the proof sees of runs: those that are kept, and processes of those that nothing is kept of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.run_plan import process_mark
from boatyard.automation.drivers.local.run_records import RunRecord, RunRecords
from boatyard.model.generated.boatyard import Item
from boatyard.processes.marked_processes import MARK_VARIABLE
from boatyard.proof.role_runs import EnvironmentRuns, find_run_keys
from tests.support.orders import an_order


@contextmanager
def running(records: RunRecords, key: str) -> Iterator[None]:
    """Somebody who carries the mark of a run."""
    environ = {"PATH": os.environ["PATH"], MARK_VARIABLE: process_mark(records.run_directory(key))}
    process = subprocess.Popen(("sleep", "60"), env=environ)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("item", ["role", "pre_install", "scale/2", "acceptance/1", "farewell"])
def test_processes_of_any_run_that_the_order_had_are_strays(tmp_path: Path, item: str) -> None:
    records = RunRecords(tmp_path / "automation" / "runs")
    with running(records, f"c-1/{item}"):
        assert EnvironmentRuns(tmp_path).read_runs("c-1", {item}) == (
            {},
            [f"processes of run {item}"],
        )
        assert EnvironmentRuns(tmp_path).read_runs("c-2", {item}) == ({}, []), "another cluster's"

    assert EnvironmentRuns(tmp_path).read_runs("c-1", {item}) == ({}, [])


def test_a_run_that_something_is_kept_of_is_no_stray(tmp_path: Path) -> None:
    records = RunRecords(tmp_path / "automation" / "runs")
    records.save(
        RunRecord(
            key="c-1/role", hub="h", template="t", action="install", digest="d", attempt=1, start=1
        )
    )
    with running(records, "c-1/role"):
        kept, strays = EnvironmentRuns(tmp_path).read_runs("c-1", {"role"})

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

    assert find_run_keys(an_order(items=items)) == {"role", "scale/2", "acceptance/2", "farewell"}
