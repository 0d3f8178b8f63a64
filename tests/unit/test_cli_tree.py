"""The tree, the news in a pipe and the receipt say what an explanation says, and nothing raw."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from boatyard.cli.screen import PipeScreen, TerminalScreen
from boatyard.cli.tree import (
    format_explanation,
    format_receipt,
    format_tree,
    list_changes,
    to_plain_text,
)
from boatyard.model.generated.boatyard import (
    Actor,
    Explanation,
    HubReason,
    Receipt,
    ReceiptLine,
    Step,
    StepState,
)

START = datetime(2030, 1, 1, tzinfo=UTC)
NOW = START + timedelta(seconds=252)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


CREATING = Explanation(
    cluster="0190",
    name="web-prod",
    state="PROGRESSING",
    summary="progressing: install: 2/3 nodes ready",
    template="small",
    hub="eu-2",
    started_at=START,
    blocked_by="install",
    since=at(200),
    tries=4,
    next_look=at(260),
    actor=Actor.NOBODY,
    placement="on hub eu-2: the emptiest",
    hubs=(
        HubReason(hub="eu-1", fits=False, reason="no free bm-small"),
        HubReason(hub="eu-2", fits=True, score=0.75, reason="12 of 16 hosts free"),
    ),
    steps=(
        Step(
            name="hosts",
            state=StepState.DONE,
            started_at=START,
            finished_at=at(0.4),
            detail="n1, n2",
        ),
        Step(
            name="network",
            state=StepState.DONE,
            started_at=START,
            finished_at=at(18),
            detail="vlan 7",
        ),
        Step(
            name="install",
            state=StepState.WAITING,
            started_at=at(32),
            tries=4,
            next_look=at(260),
            detail="2/3 ready",
            message="a node is starting",
        ),
        Step(name="validate", state=StepState.QUEUED, needs=("install",)),
    ),
)

READY = msgspec.structs.replace(
    CREATING,
    state="READY",
    blocked_by="",
    steps=(
        *CREATING.steps[:2],
        msgspec.structs.replace(
            CREATING.steps[2],
            state=StepState.DONE,
            finished_at=at(240),
            message="",
            detail="3/3 ready",
        ),
        Step(name="validate", state=StepState.DONE, started_at=at(240), finished_at=at(250)),
    ),
)


def shown(lines):
    return "\n".join(to_plain_text(line) for line in lines)


def test_the_tree_shows_each_step_with_state_duration_and_words():
    assert shown(format_tree(CREATING, now=NOW, doing="creating")) == (
        "cluster/web-prod  creating  4m12s   hub eu-2 · template small\n"
        "├─ hosts     done        0s  n1, n2\n"
        "├─ network   done       18s  vlan 7\n"
        "├─ install   waiting  3m40s  2/3 ready · a node is starting (try 4, next look in 8s)\n"
        "└─ validate  queued          needs: install"
    )


def test_a_finished_tree_stands_still():
    early, late = format_tree(READY, now=NOW), format_tree(READY, now=NOW + timedelta(days=3))
    assert shown(early) == shown(late)
    assert (
        shown(early).splitlines()[0] == "cluster/web-prod  ready  4m10s   hub eu-2 · template small"
    )


def test_before_there_are_steps_the_placement_is_shown():
    waiting = Explanation(
        name="web-1", state="PROGRESSING", placement="not placed yet", since=START, started_at=START
    )
    assert shown(format_tree(waiting, now=NOW, doing="creating")) == (
        "cluster/web-1  creating  4m12s\n└─ placement  waiting    not placed yet"
    )


@pytest.mark.parametrize("state, word", [
    (StepState.FAILED, "failed"), (StepState.QUARANTINED, "quarantined"),
])  # fmt: skip
def test_a_stuck_step_shows_its_remedy(state, word):
    step = Step(name="names", state=state, message="the zone is gone", remedy="ask the provider")
    line = shown(
        format_tree(Explanation(name="x", state="FAILED", steps=(step,)), now=NOW)
    ).splitlines()[1]
    assert line == f"└─ names  {word}    the zone is gone · ask the provider"


def test_explain_names_what_blocks_who_acts_and_every_hub():
    text = shown(format_explanation(CREATING, now=NOW))
    assert "blocked by: install, for 52s" in text
    assert "tries:      4" in text
    assert "next look:  in 8s" in text
    assert "who acts:   nobody needs to act" in text
    assert "  no      eu-1: no free bm-small" in text
    assert "  fits    eu-2 (0.75): 12 of 16 hosts free" in text


def test_in_a_pipe_each_change_is_one_line():
    lines = list_changes(None, CREATING, doing="creating")
    assert lines == [
        "web-prod: hosts done in 0s: n1, n2",
        "web-prod: network done in 18s: vlan 7",
        "web-prod: install waiting: 2/3 ready · a node is starting",
        "web-prod: creating",
    ]
    assert list_changes(CREATING, READY, doing="creating") == [
        "web-prod: install done in 3m28s: 3/3 ready",
        "web-prod: validate done in 10s",
        "web-prod: ready",
    ]


def test_what_only_ticks_is_no_news():
    step = msgspec.structs.replace(CREATING.steps[2], tries=5, next_look=at(300))
    later = msgspec.structs.replace(CREATING, steps=(*CREATING.steps[:2], step, CREATING.steps[3]))
    assert list_changes(CREATING, later, doing="creating") == []


RECEIPT = Receipt(
    requested_at=START,
    finished_at=at(12),
    gone=(
        ReceiptLine(kind="host", name="n1"),
        ReceiptLine(kind="host", name="n2"),
        ReceiptLine(kind="l2", name="vlan 7"),
    ),
)


def test_a_receipt_lists_what_is_gone_by_kind():
    assert shown(format_receipt("web-1", RECEIPT)) == (
        "receipt: web-1 deleted in 12s, 3 things taken back, nothing left\n"
        "  gone  host  n1, n2\n"
        "  gone  l2    vlan 7"
    )


def test_a_receipt_says_what_is_left_and_why():
    left = ReceiptLine(kind="api-name", key="api-name/x", reason="the zone does not answer")
    text = shown(format_receipt("web-1", msgspec.structs.replace(RECEIPT, left=(left,))))
    assert "1 thing left" in text
    assert "  left  api-name  api-name/x  the zone does not answer" in text
    assert "nobody else is given it" in text


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n\u202e"


def hostile_explanation() -> Explanation:
    """Every text that a tenant, a template or a back-end could have written is hostile."""
    step = Step(
        name=HOSTILE,
        detail=HOSTILE,
        message=HOSTILE,
        remedy=HOSTILE,
        reason=HOSTILE,
        needs=(HOSTILE,),
    )
    return Explanation(
        cluster=HOSTILE,
        name=HOSTILE,
        state=HOSTILE,
        summary=HOSTILE,
        blocked_by=HOSTILE,
        remedy=HOSTILE,
        placement=HOSTILE,
        template=HOSTILE,
        hub=HOSTILE,
        hubs=(HubReason(hub=HOSTILE, reason=HOSTILE, fits=True),),
        steps=tuple(msgspec.structs.replace(step, state=state) for state in StepState),
        receipt=Receipt(
            gone=(ReceiptLine(kind=HOSTILE, name=HOSTILE),),
            left=(ReceiptLine(kind=HOSTILE, key=HOSTILE, reason=HOSTILE),),
        ),
    )


def test_no_text_from_outside_is_shown_raw():
    bad = hostile_explanation()
    lines = [
        *(to_plain_text(line) for line in format_explanation(bad, now=NOW)),
        *(to_plain_text(line) for line in format_receipt(bad.name, bad.receipt)),
        *list_changes(None, bad, doing=""),
    ]
    assert all(line.isprintable() for line in lines)


def test_a_terminal_is_only_sent_sequences_of_our_own(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = FakeTerminal()
    with TerminalScreen(stream, doing="creating", clock=lambda: NOW) as screen:
        screen.show(hostile_explanation())
    written = stream.getvalue()
    assert "\x1b]0;owned" not in written
    assert "\x1b[2J" not in written
    assert "\u202e" not in written
    assert "[2J" in written  # it was shown, as text


def test_markup_in_a_name_is_text(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = FakeTerminal()
    with TerminalScreen(stream, doing="creating", clock=lambda: NOW) as screen:
        screen.show(Explanation(name="[red]web[/red]", state="READY"))
    assert "[red]web[/red]" in stream.getvalue()


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_is_sent_no_sequences_at_all():
    stream = io.StringIO()
    with PipeScreen(stream, doing="creating") as screen:
        screen.show(CREATING)
        screen.show(READY)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().splitlines()[-1] == "web-prod: ready"
