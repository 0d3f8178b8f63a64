"""The results of all questions, as text and as JSON. Pure."""

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
    """The result of one question. `said` is one line; `seen` and `remedy` are set when it failed."""

    question: str
    state: str
    said: str = ""
    seen: Sequence[str] = ()
    remedy: str = ""
    seconds: float = 0.0

    def lines(self) -> list[str]:
        time = f"{self.seconds:.1f} s" if self.state != SKIPPED else ""
        lines = [f"{_SIGNS[self.state]} {self.question:<9} {clean(self.said)}"]
        if time:
            lines[0] = f"{lines[0]} ({time})"
        for problem in self.seen[:_MOST_SEEN]:
            text = clean(
                problem if len(problem) <= _LONGEST_SEEN else f"{problem[:_LONGEST_SEEN]} …"
            )
            lines.append(f"    {text}")
        if len(self.seen) > _MOST_SEEN:
            lines.append(f"    … and {len(self.seen) - _MOST_SEEN} more")
        if self.remedy:
            lines.append(f"    do: {clean(self.remedy)}")
        return lines


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
        """Whether at least one question was asked and none failed."""
        answered = [answer for answer in self.answers if answer.state != SKIPPED]
        return bool(answered) and all(answer.state == PASSED for answer in answered)

    def summary(self) -> str:
        failed = [answer.question for answer in self.answers if answer.state == FAILED]
        answered = sum(answer.state != SKIPPED for answer in self.answers)
        details = f"{count(answered, 'question')} in {self.seconds:.0f} s, seed {self.seed}"
        if failed:
            return f"{clean(self.role)}: not good: {', '.join(failed)} ({details})"
        return f"{clean(self.role)}: good ({details})"

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
                    "question": answer.question,
                    "state": answer.state,
                    "said": answer.said,
                    "seen": list(answer.seen),
                    "remedy": answer.remedy,
                    "seconds": round(answer.seconds, 2),
                }
                for answer in self.answers
            ],
        }
