"""What a benchmark says at its end: a bound that is missed, or cannot be measured, is never a success."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Load]:
    """Programs of `bench/` import each other by their bare names; afterwards nobody knows these any more."""
    monkeypatch.syspath_prepend(str(BENCH))
    for path in BENCH.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    before = set(sys.modules)
    monkeypatch.setattr(importlib.import_module("report"), "FOLDER", tmp_path)
    yield importlib.import_module
    for name in {path.stem for path in BENCH.glob("*.py")} & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.mark.parametrize(
    "measured, at_least, judge, code",
    [
        pytest.param(0.4, False, True, 0, id="kept"),
        pytest.param(0.6, False, True, 1, id="missed"),
        pytest.param(0.4, True, True, 1, id="too little"),
        pytest.param(0.6, False, False, 0, id="missed, and not judged"),
    ],
)
def test_a_missed_bound_ends_with_1(
    load: Load, measured: float, at_least: bool, judge: bool, code: int
) -> None:
    report = load("report").Report("any")
    report.promise("one that is kept", 1.0, 1.0, "s")
    report.promise("this one", measured, 0.5, "s", at_least=at_least)

    assert report.end(judge=judge) == code


@pytest.fixture
def automation(load: Load, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark of roles with nothing to run them."""
    found = load("automation")
    nothing = SimpleNamespace(ensure=lambda _: None)
    monkeypatch.setattr(found, "AnsibleEnvironment", lambda: nothing)
    monkeypatch.setattr(sys, "argv", ["bench/automation.py"])
    return found


@pytest.mark.parametrize(
    "accepted, code", [pytest.param(0.4, 0, id="in time"), pytest.param(0.6, 1, id="late")]
)
def test_the_first_line_is_judged_from_the_accepted_order(
    automation: ModuleType, monkeypatch: pytest.MonkeyPatch, accepted: float, code: int
) -> None:
    async def first_line(rounds: int) -> tuple[float, float]:
        return accepted, 0.1

    async def side_by_side(*_: Any) -> tuple[float, float]:
        return 1.0, 0.1

    async def many(*_: Any) -> float:
        return 50.0

    async def run(name: str) -> float:
        return 0.1

    ours = SimpleNamespace(
        warm_up=lambda: 0.1, run=run, first_words=_Words([0.1]), close=lambda: None
    )
    monkeypatch.setattr(automation, "Ours", lambda site: ours)
    monkeypatch.setattr(automation, "first_line", first_line)
    monkeypatch.setattr(automation, "side_by_side", side_by_side)
    monkeypatch.setattr(automation, "many", many)
    monkeypatch.setattr(automation, "many_command_lines", lambda *_: 1.0)

    assert automation.main() == code


class _Words(list[float]):
    def clear(self) -> None:
        """What was heard before the clock started is as good as any here."""


def test_a_command_line_that_fails_is_not_counted_as_a_quick_one(
    automation: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def measure(report: Any, site: Any, **_: Any) -> None:
        automation.many_command_lines(site, "noop", 1)

    def fails(site: Any, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(4)"])

    monkeypatch.setattr(automation, "measure", measure)
    monkeypatch.setattr(automation.Site, "command_line", fails)

    assert automation.main() == 1
    assert "ended with 4" in capsys.readouterr().err


async def test_a_story_without_a_task_is_no_quick_one(load: Load) -> None:
    first_line, broken = load("first_line"), load("yard").Broken

    class Client:
        async def read_logs(self, id: str, **_: Any) -> AsyncIterator[Any]:
            yield 3
            yield SimpleNamespace(kind="end")

    with pytest.raises(broken):
        await first_line._task_seen(Client(), "c-1")
