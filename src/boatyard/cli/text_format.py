"""Text for people: control characters escaped, durations, sizes, ages. Pure, except for the terminal's clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from boatyard.model.errors import Refused

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def clean(text: str) -> str:
    """The text, with escapes for characters that could move the cursor or hide or reorder text."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def format_duration(seconds: float) -> str:
    """A duration such as 4m12s, 3h05m or 2d4h; never negative, because clocks differ."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, second = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{second:02}s"
    hours, minute = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minute:02}m"
    days, hour = divmod(hours, 24)
    return f"{days}d{hour}h"


def format_size(count: int) -> str:
    """A size such as 812 B, 4.2 MiB or 1.5 GiB."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def parse_duration(text: str) -> float:
    """Seconds from 90, 90s, 10m, 1h30m or 2d; 0 means no limit."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or _DURATION_PART.sub("", text):
        raise Refused(f"{text!r} is not a duration; write 90s, 10m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def format_age(moment: datetime | None, now: datetime) -> str:
    return format_duration((now - moment).total_seconds()) if moment else "-"


def format_count(number: int, noun: str) -> str:
    """A number with its noun: 1 cluster, 2 clusters."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def terminal_now() -> datetime:
    """The local machine's time; all other functions take it as an argument."""
    return datetime.now(UTC)  # noqa: TID251 - a command line is an edge: its clock is made here
