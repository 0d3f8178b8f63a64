"""What came of each question, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from boatyard.cli.words import clean, count

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_SIGNS = {PASSED: "✓", FAILED: "✗", SKIPPED: "–"}
_MOST_SEEN = 12
_LONGEST_SEEN = 600


@dataclass(frozen=True)
class Answer:
    """To one question. `said` is one line; `seen` and `remedy` are there when it failed."""

    question: str
    state: str
    said: str = ""
    seen: Sequence[str] = ()
    remedy: str = ""
    seconds: float = 0.0

    def lines(self) -> list[str]:
        time = f"{self.seconds:.1f} s" if self.state != SKIPPED else ""
        found = [f"{_SIGNS[self.state]} {self.question:<9} {clean(self.said)}"]
        if time:
            found[0] = f"{found[0]} ({time})"
        for one in self.seen[:_MOST_SEEN]:
            text = clean(one if len(one) <= _LONGEST_SEEN else f"{one[:_LONGEST_SEEN]} …")
            found.append(f"    {text}")
        if len(self.seen) > _MOST_SEEN:
            found.append(f"    … and {len(self.seen) - _MOST_SEEN} more")
        if self.remedy:
            found.append(f"    do: {clean(self.remedy)}")
        return found


@dataclass(frozen=True)
class Report:
    role: str
    template: str
    digest: str
    seed: int
    answers: Sequence[Answer] = field(default_factory=tuple)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Nothing failed, and something was asked."""
        asked = [one for one in self.answers if one.state != SKIPPED]
        return bool(asked) and all(one.state == PASSED for one in asked)

    def summary(self) -> str:
        failed = [one.question for one in self.answers if one.state == FAILED]
        asked = sum(one.state != SKIPPED for one in self.answers)
        told = f"{count(asked, 'question')} in {self.seconds:.0f} s, seed {self.seed}"
        if failed:
            return f"{clean(self.role)}: not good: {', '.join(failed)} ({told})"
        return f"{clean(self.role)}: good ({told})"

    def plain(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "template": self.template,
            "digest": self.digest,
            "seed": self.seed,
            "passed": self.passed,
            "seconds": round(self.seconds, 2),
            "questions": [
                {
                    "question": one.question,
                    "state": one.state,
                    "said": one.said,
                    "seen": list(one.seen),
                    "remedy": one.remedy,
                    "seconds": round(one.seconds, 2),
                }
                for one in self.answers
            ],
        }
