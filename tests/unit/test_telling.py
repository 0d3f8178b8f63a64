"""What a run tells is copied once, whoever dies, restarts or begins anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from boatyard.automation.port import RUN_FAILED, RunEvent, RunSpec
from boatyard.ledger.run_logs import LastLogLine, StoredLogLine
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.boatyard import Item, ItemState, Order, OrderSpec
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.steps import role
from boatyard.resources.orders.steps.context import StepContext
from boatyard.resources.orders.steps.run_logs import NoRunLogSink, RunLogCopier
from tests.support.orders import NOW

RUN = Item(
    key="post_install",
    kind="post_install",
    step="post_install",
    state=ItemState.PLANNED,
    facts={"attempt": "1"},
)
HOST = Item(key="host/c-0", kind="host", step="hosts", facts={"host": "rack1-07"})
ORDER = Order(id="o-1", spec=OrderSpec(hub="boston-2", template="web", template_digest="d"))


@dataclass
class Kept:
    """A place for stories, in memory; may be told to break."""

    lines: list[StoredLogLine] = field(default_factory=list)
    error: Exception | None = None

    async def read_last_line(self, order_id: str, run: str) -> LastLogLine | None:
        found = [line for line in self.lines if line.run == run]
        return LastLogLine(found[-1].start, found[-1].number, found[-1].kind) if found else None

    async def store_lines(
        self, order_id: str, run: str, lines: Sequence[StoredLogLine], now: datetime
    ) -> int:
        if self.error is not None:
            raise self.error
        known = {(line.run, line.start, line.number) for line in self.lines}
        fresh = [line for line in lines if (run, line.start, line.number) not in known]
        self.lines += fresh
        return len(fresh)

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]


@dataclass
class Runs:
    """One run that tells what it is given to tell, in small pages, and answers as told."""

    told: list[RunEvent] = field(default_factory=list)
    answer: Outcome | Exception = field(default_factory=lambda: Waiting("it runs"))
    asked: list[int] = field(default_factory=list)

    def tell(self, *texts: str, kind: str = "ok", start: str = "a") -> None:
        for text in texts:
            number = len(self.told) + 1
            at = f"2026-01-01T00:00:{number % 60:02}Z"
            self.told.append(RunEvent(number, at, kind, "a task", text, start=start))

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def release_run(self, key: str) -> Outcome:
        self.told = []
        return Done()

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        assert key == "o-1/post_install"
        self.asked.append(after)
        return [event for event in self.told if event.number > after][:3]


@dataclass(frozen=True)
class RunsHub:
    automation: Any


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def look(runs: Runs, kept: Any) -> StepContext:
    hub: Any = RunsHub(runs)
    book: Any = None
    items = {item.key: item for item in (RUN, HOST)}
    return StepContext(order=ORDER, drivers=hub, book=book, now=NOW, items=items, run_logs=kept)


async def test_each_look_copies_what_is_new(runs: Runs, kept: Kept) -> None:
    for count in (2, 0, 7):
        runs.tell(*(f"line {len(runs.told) + n + 1}" for n in range(count)))
        assert isinstance(await role.ensure_run(look(runs, kept), RUN), Waiting)
    assert kept.texts == [f"line {number}" for number in range(1, 10)]
    assert kept.lines[0].part == "post_install"
    assert kept.lines[0].at == datetime.fromisoformat("2026-01-01T00:00:01Z")


async def test_only_what_may_be_new_is_read_again(runs: Runs, kept: Kept) -> None:
    runs.tell(*map(str, range(9)))
    await role.ensure_run(look(runs, kept), RUN)
    runs.asked.clear()
    await role.ensure_run(look(runs, kept), RUN)
    assert min(runs.asked) == 8, "the last one that is known, and what follows"


async def test_the_last_look_copies_too_and_counts(runs: Runs, kept: Kept) -> None:
    runs.tell("it begins", kind="task", start="killed")
    for kind in ("task", "ok", "task", "changed", "task", "changed", "end"):
        runs.tell(kind, kind=kind, start="b")
    runs.answer = Done({"vip": "10.0.0.1"})
    outcome = await role.ensure_run(look(runs, kept), RUN)
    assert outcome == Done({"role.vip": "10.0.0.1", "run.tasks": "3", "run.changed": "2"})
    assert kept.texts[-1] == "end"


async def test_a_failure_is_a_part_of_the_story(runs: Runs, kept: Kept) -> None:
    runs.tell("no such pool", kind="failed")
    runs.answer = Refused("no such pool", reason=RUN_FAILED)
    with pytest.raises(Refused):
        await role.ensure_run(look(runs, kept), RUN)
    assert kept.texts == ["no such pool"]


async def test_a_restarted_run_goes_on_in_the_story(runs: Runs, kept: Kept) -> None:
    runs.tell("one", "two")
    await role.ensure_run(look(runs, kept), RUN)
    runs.tell("three", start="b")
    await role.ensure_run(look(runs, kept), RUN)
    assert kept.texts == ["one", "two", "three"]


@pytest.mark.parametrize("length", [1, 2, 5])
async def test_a_story_that_begins_anew_is_copied_from_its_beginning(
    runs: Runs, kept: Kept, length: int
) -> None:
    """A farewell is said again when we die between its release and writing that down."""
    runs.tell("one", "two")
    await role.ensure_run(look(runs, kept), RUN)
    runs.told = []
    again = [f"again {number}" for number in range(length)]
    runs.tell(*again, start="b")
    await role.ensure_run(look(runs, kept), RUN)
    await role.ensure_run(look(runs, kept), RUN)
    assert kept.texts == ["one", "two", *again]


async def test_lines_lost_with_a_machines_power_do_not_hide_those_that_follow(
    runs: Runs, kept: Kept
) -> None:
    runs.tell("one", "two", "three")
    await role.ensure_run(look(runs, kept), RUN)
    del runs.told[1:]
    runs.tell("two again", start="b")
    await role.ensure_run(look(runs, kept), RUN)
    assert kept.texts == ["one", "two", "three", "two again"]


async def test_a_worker_that_dies_before_keeping_loses_nothing(runs: Runs, kept: Kept) -> None:
    runs.tell("one", "end")
    runs.answer = Done()
    kept.error = Unavailable("PostgreSQL did not answer")
    with pytest.raises(Unavailable):
        await role.ensure_run(look(runs, kept), RUN)
    kept.error = None
    assert isinstance(await role.ensure_run(look(runs, kept), RUN), Done)
    assert kept.texts == ["one", "end"]


async def test_what_can_never_be_kept_does_not_stop_the_run(runs: Runs, kept: Kept) -> None:
    runs.tell("one")
    kept.error = Refused("cannot be stored")
    assert isinstance(await role.ensure_run(look(runs, kept), RUN), Waiting)


async def test_a_release_copies_first_and_says_when_the_end_was_not_heard(
    runs: Runs, kept: Kept
) -> None:
    runs.tell("one")
    assert await role.release_run(look(runs, kept), RUN) == Done()
    assert await role.release_run(look(runs, kept), RUN) == Done()
    assert [(line.kind, line.text) for line in kept.lines] == [
        ("ok", "one"),
        ("end", "released; what it said last was not heard"),
    ]


async def test_a_story_with_an_end_gets_no_second_one(runs: Runs, kept: Kept) -> None:
    runs.tell("succeeded", kind="end")
    await role.release_run(look(runs, kept), RUN)
    assert kept.texts == ["succeeded"]


async def test_a_run_that_never_spoke_has_no_story(runs: Runs, kept: Kept) -> None:
    await role.release_run(look(runs, kept), RUN)
    assert kept.lines == []


async def test_tenants_read_no_names_of_hosts_and_hubs(runs: Runs, kept: Kept) -> None:
    runs.tell("rack1-07 on boston-2 says hello", "nothing of ours")
    await role.ensure_run(look(runs, kept), RUN)
    first, second = kept.lines
    assert first.text == "rack1-07 on boston-2 says hello"
    assert first.shown_text == "a host on the hub says hello"
    assert second.shown_text is None


async def test_what_a_driver_says_can_be_stored(runs: Runs, kept: Kept) -> None:
    runs.told = [RunEvent(1, "some day", "ok", "t\0", "a\0b\udc80" + "x" * 10_000)]
    await role.ensure_run(look(runs, kept), RUN)
    (line,) = kept.lines
    assert line.at == NOW
    assert line.task == "t\ufffd"
    assert line.text.startswith("a\ufffdb?xx")
    assert len(line.text) == 4000


async def test_where_nothing_is_kept_runs_run_as_ever(runs: Runs) -> None:
    runs.tell("one")
    assert isinstance(await role.ensure_run(look(runs, NoRunLogSink()), RUN), Waiting)
    assert await role.release_run(look(runs, NoRunLogSink()), RUN) == Done()


async def test_a_copy_that_trusts_numbers_alone_would_lose_a_story(
    runs: Runs, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of each line is what the copy rests on: without it, what begins anew is taken for known."""
    plain = RunLogCopier._to_log_line
    monkeypatch.setattr(
        RunLogCopier, "_to_log_line", lambda self, event: replace(plain(self, event), start="")
    )
    runs.tell("one", "two")
    await role.ensure_run(look(runs, kept), RUN)
    runs.told = []
    runs.tell("again", start="b")
    await role.ensure_run(look(runs, kept), RUN)
    assert kept.texts == ["one", "two"]
