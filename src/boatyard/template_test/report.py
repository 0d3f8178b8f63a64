"""The results of all questions, as text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from boatyard.cli.text_format import clean, format_count

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_SIGNS = {PASSED: "✓", FAILED: "✗", SKIPPED: "–"}
_PROBLEMS_LIMIT = 12
_PROBLEM_LENGTH_LIMIT = 600


@dataclass(frozen=True)
class QuestionResult:
    """The result of one question. `said` is one line; `seen` and `remedy` are set when it failed."""

    question: str
    state: str
    summary: str = ""
    problems: Sequence[str] = ()
    remedy: str = ""
    seconds: float = 0.0

    def format_lines(self) -> list[str]:
        time = f"{self.seconds:.1f} s" if self.state != SKIPPED else ""
        lines = [f"{_SIGNS[self.state]} {self.question:<9} {clean(self.summary)}"]
        if time:
            lines[0] = f"{lines[0]} ({time})"
        for problem in self.problems[:_PROBLEMS_LIMIT]:
            text = clean(
                problem
                if len(problem) <= _PROBLEM_LENGTH_LIMIT
                else f"{problem[:_PROBLEM_LENGTH_LIMIT]} …"
            )
            lines.append(f"    {text}")
        if len(self.problems) > _PROBLEMS_LIMIT:
            lines.append(f"    … and {len(self.problems) - _PROBLEMS_LIMIT} more")
        if self.remedy:
            lines.append(f"    do: {clean(self.remedy)}")
        return lines


@dataclass(frozen=True)
class RoleTestReport:
    role: str
    template: str
    digest: str
    seed: int
    results: Sequence[QuestionResult] = field(default_factory=tuple)
    seconds: float = 0.0

    @property
    def has_passed(self) -> bool:
        """Whether at least one question was asked and none failed."""
        answered = [answer for answer in self.results if answer.state != SKIPPED]
        return bool(answered) and all(answer.state == PASSED for answer in answered)

    def format_summary(self) -> str:
        failed = [answer.question for answer in self.results if answer.state == FAILED]
        answered = sum(answer.state != SKIPPED for answer in self.results)
        details = f"{format_count(answered, 'question')} in {self.seconds:.0f} s, seed {self.seed}"
        if failed:
            return f"{clean(self.role)}: not good: {', '.join(failed)} ({details})"
        return f"{clean(self.role)}: good ({details})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "template": self.template,
            "digest": self.digest,
            "seed": self.seed,
            "passed": self.has_passed,
            "seconds": round(self.seconds, 2),
            "questions": [
                {
                    "question": answer.question,
                    "state": answer.state,
                    "said": answer.summary,
                    "seen": list(answer.problems),
                    "remedy": answer.remedy,
                    "seconds": round(answer.seconds, 2),
                }
                for answer in self.results
            ],
        }
