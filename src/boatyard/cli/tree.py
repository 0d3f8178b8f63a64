"""Formats an explanation as a tree of steps, the changes between two explanations, and a receipt. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from boatyard.cli.text_format import clean, format_age, format_count, format_duration
from boatyard.model.generated.boatyard import (
    Actor,
    Explanation,
    Receipt,
    ReceiptLine,
    Step,
    StepState,
)


@dataclass(frozen=True)
class Span:
    """A piece of a line; `style` is a word of STYLES, or empty."""

    text: str
    style: str = ""


Line = tuple[Span, ...]

STYLES = ("name", "good", "busy", "late", "bad", "dim")

_STATE_WORDS: dict[StepState, tuple[str, str]] = {
    StepState.UNSPECIFIED: ("-", "dim"),
    StepState.QUEUED: ("queued", "dim"),
    StepState.RUNNING: ("running", "busy"),
    StepState.WAITING: ("waiting", "busy"),  # most waiting is just time
    StepState.DONE: ("done", "good"),
    StepState.FAILED: ("failed", "bad"),
    StepState.QUARANTINED: ("quarantined", "bad"),
    StepState.RELEASING: ("releasing", "busy"),
    StepState.RELEASED: ("released", "good"),
}
_STUCK_STATES = (StepState.FAILED, StepState.QUARANTINED)
_OPEN_STATES = (StepState.RUNNING, StepState.WAITING, StepState.RELEASING, *_STUCK_STATES)

_ACTOR_TEXTS = {
    Actor.NOBODY: "nobody needs to act, it goes on by itself",
    Actor.TENANT: "you can act",
    Actor.OPERATOR: "an operator has to act",
}


def to_plain_text(line: Line) -> str:
    return "".join(span.text for span in line).rstrip()


def format_tree(explanation: Explanation, *, now: datetime, doing: str = "") -> list[Line]:
    """The tree of steps; `doing` is the word for an unfinished order (creating, scaling)."""
    rows = [_step_row(step, now) for step in explanation.steps]
    if not rows:
        rows = _placement_row(explanation)
    widths = [max((len(row[column].text) for row in rows), default=0) for column in range(3)]
    lines = [_format_head(explanation, now, doing)]
    for index, row in enumerate(rows):
        branch = "└─ " if index == len(rows) - 1 else "├─ "
        lines.append((Span(branch, "dim"), *_align_row(row, widths)))
    return lines


def _format_head(explanation: Explanation, now: datetime, doing: str) -> Line:
    word, style = state_word(explanation, doing)
    spans = [
        Span(f"cluster/{clean(explanation.name or explanation.cluster)}", "name"),
        Span(f"  {word}", style),
    ]
    if explanation.started_at:
        until = finished_at(explanation) or now
        spans.append(Span(f"  {format_age(explanation.started_at, until)}"))
    facts = []
    if explanation.hub:
        facts.append(f"hub {clean(explanation.hub)}")
    if explanation.template:
        facts.append(f"template {clean(explanation.template)}")
    if facts:
        spans.append(Span("   " + " · ".join(facts), "dim"))
    return tuple(spans)


def state_word(explanation: Explanation, doing: str = "") -> tuple[str, str]:
    """The state in one word, with its style."""
    if explanation.gone:
        return "deleted", "good"
    match explanation.state:
        case "READY":
            return "ready", "good"
        case "PROGRESSING" | "":
            return doing or "progressing", "busy"
        case "DELETING":
            return "deleting", "busy"
        case "FAILED" | "DELETE_FAILED" | "DEGRADED":
            return explanation.state.lower().replace("_", " "), "bad"
        case other:
            return clean(other.lower().replace("_", " ")), ""


def finished_at(explanation: Explanation) -> datetime | None:
    """When the last step was finished, once all of them are."""
    closed = (StepState.DONE, StepState.RELEASED)
    if not explanation.steps or any(step.state not in closed for step in explanation.steps):
        return None
    return max((step.finished_at for step in explanation.steps if step.finished_at), default=None)


def _step_row(step: Step, now: datetime) -> Line:
    word, style = _STATE_WORDS[step.state]
    if step.state is StepState.WAITING and step.actor in (Actor.TENANT, Actor.OPERATOR):
        style = "late"
    return (
        Span(clean(step.name), "dim" if step.state is StepState.QUEUED else ""),
        Span(word, style),
        Span(_step_duration(step, now)),
        Span(describe_step(step, now), "bad" if step.state in _STUCK_STATES else "dim"),
    )


def _placement_row(explanation: Explanation) -> list[Line]:
    words = explanation.placement or explanation.summary
    if explanation.gone or not words:
        return []
    state = Span("waiting", "late") if explanation.since else Span("-", "dim")
    return [(Span("placement"), state, Span(""), Span(clean(words), "dim"))]


def _align_row(row: Line, widths: list[int]) -> Iterable[Span]:
    name, state, duration, words = row
    yield Span(name.text.ljust(widths[0] + 2), name.style)
    yield Span(state.text.ljust(widths[1] + 2), state.style)
    yield Span(duration.text.rjust(widths[2]) + "  ", duration.style)
    yield words


def _step_duration(step: Step, now: datetime) -> str:
    if step.started_at is None or step.state is StepState.QUEUED:
        return ""
    if step.state in _OPEN_STATES:
        return format_age(step.started_at, now)
    return format_age(step.started_at, step.finished_at) if step.finished_at else ""


def describe_step(step: Step, now: datetime | None = None) -> str:
    """The step's detail, message and remedy; with `now`, also the number of the try and the time of the next one."""
    parts = [clean(step.detail)] if step.detail else []
    match step.state:
        case StepState.QUEUED:
            return f"needs: {clean(', '.join(step.needs))}" if step.needs else ""
        case StepState.WAITING | StepState.RUNNING | StepState.RELEASING:
            if step.message:
                parts.append(clean(step.message) + _format_tries(step, now))
        case StepState.FAILED | StepState.QUARANTINED:
            parts.append(clean(step.message or step.reason))
            if step.remedy:
                parts.append(clean(step.remedy))
        case _:
            pass
    return " · ".join(part for part in parts if part)


def _format_tries(step: Step, now: datetime | None) -> str:
    if now is None:
        return ""
    facts = []
    if step.tries > 1:
        facts.append(f"try {step.tries}")
    seconds = (step.next_look - now).total_seconds() if step.next_look else 0.0
    if seconds >= 2:  # less would only flicker
        facts.append(f"next look in {format_duration(seconds)}")
    return f" ({', '.join(facts)})" if facts else ""


# --- in a pipe --------------------------------------------------------------------------------


def list_changes(before: Explanation | None, after: Explanation, *, doing: str = "") -> list[str]:
    """One line for each difference; counters and durations are not compared."""
    name = clean(after.name or after.cluster)
    lines = []
    word = state_word(after, doing)[0]
    old_steps = {step.name: step for step in before.steps} if before else {}
    if (before is None or not before.steps) and not after.steps:
        message = after.placement or after.summary
        if message and (before is None or message != (before.placement or before.summary)):
            lines.append(f"{name}: {clean(message)}")
    elif before is not None and not before.steps and after.placement != before.placement:
        lines.append(f"{name}: {clean(after.placement)}")
    for step in after.steps:
        old_step = old_steps.get(step.name)
        if _step_summary(old_step) != _step_summary(step) and not (
            old_step is None and step.state is StepState.QUEUED
        ):
            lines.append(_format_change(name, step))
    if before is None or word != state_word(before, doing)[0]:
        lines.append(f"{name}: {word}")
    return lines


def _step_summary(step: Step | None) -> tuple[StepState, str] | None:
    return (step.state, describe_step(step)) if step else None


def _format_change(name: str, step: Step) -> str:
    words = describe_step(step)
    duration = ""
    if step.state in (StepState.DONE, StepState.RELEASED) and step.started_at and step.finished_at:
        duration = f" in {format_age(step.started_at, step.finished_at)}"
    line = f"{name}: {clean(step.name)} {_STATE_WORDS[step.state][0]}{duration}"
    return f"{line}: {words}" if words else line


# --- in full ----------------------------------------------------------------------------------


def format_explanation(explanation: Explanation, *, now: datetime) -> list[Line]:
    """The whole explanation: tree, summary, what blocks it, who can act, and why this hub was chosen."""
    lines = format_tree(explanation, now=now)
    facts = []
    if explanation.summary.lower() != state_word(explanation)[0]:
        facts.append(("", explanation.summary))
    if explanation.blocked_by:
        since = f", for {format_age(explanation.since, now)}" if explanation.since else ""
        facts.append(("blocked by", f"{explanation.blocked_by}{since}"))
        if explanation.tries:
            facts.append(("tries", str(explanation.tries)))
        if explanation.next_look:
            seconds = (explanation.next_look - now).total_seconds()
            facts.append(("next look", f"in {format_duration(seconds)}"))
    if explanation.state not in ("READY", "") or explanation.blocked_by:
        facts.append(("who acts", _ACTOR_TEXTS.get(explanation.actor, "")))
    facts.append(("remedy", explanation.remedy))
    facts.append(("placement", explanation.placement))
    visible_facts = [(label, clean(words)) for label, words in facts if words]
    if visible_facts:
        lines.append(())
    for label, words in visible_facts:
        lines.append((Span(f"{label + ':':<12}" if label else "", "dim"), Span(words)))
    for hub in explanation.hubs:
        mark = Span("  fits    ", "good") if hub.fits else Span("  no      ", "dim")
        score = f" ({hub.score:g})" if hub.fits else ""
        lines.append((mark, Span(f"{clean(hub.hub)}{score}: {clean(hub.reason)}")))
    return lines


def format_receipt(name: str, receipt: Receipt) -> list[Line]:
    """The receipt: what was removed, and what is left, by kind."""
    duration = ""
    if receipt.requested_at and receipt.finished_at:
        duration = f" in {format_age(receipt.requested_at, receipt.finished_at)}"
    removed_count = f"{format_count(len(receipt.gone), 'thing')} taken back"
    leftover_count = (
        "nothing left" if not receipt.left else f"{format_count(len(receipt.left), 'thing')} left"
    )
    lines: list[Line] = [
        (
            Span(f"receipt: {clean(name)} deleted{duration}, {removed_count}, ", "name"),
            Span(leftover_count, "late" if receipt.left else "good"),
        )
    ]
    by_kind: dict[str, list[str]] = {}
    for line in receipt.gone:
        by_kind.setdefault(clean(line.kind), []).append(_receipt_name(line))
    width = max((len(kind) for kind in by_kind), default=0)
    lines += [
        (Span("  gone  ", "good"), Span(f"{kind:<{width}}  {', '.join(names)}"))
        for kind, names in by_kind.items()
    ]
    lines += [
        (
            Span("  left  ", "late"),
            Span(f"{clean(line.kind)}  {_receipt_name(line)}"),
            Span(f"  {clean(line.reason)}" if line.reason else "", "dim"),
        )
        for line in receipt.left
    ]
    if receipt.left:
        lines.append(
            (Span("  What is left is tried again by itself; nobody else is given it.", "dim"),)
        )
    return lines


def _receipt_name(line: ReceiptLine) -> str:
    return clean(line.name or line.key)
