"""The verdict of the proof, as text for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from boatyard.proof.journeys import JourneyResult
from boatyard.proof.kill_points import KillPoint

_POINT_CATEGORIES = ("write", "claim", "effect")
_MOMENTS = ("before", "after")
KILLED_KEEPER = "killed-keeper"


@dataclass
class ProofVerdict:
    """Grows run by run. Proven when nothing differs."""

    points: dict[str, list[KillPoint]] = field(default_factory=dict)  # by journey
    killed: list[tuple[str, KillPoint]] = field(default_factory=list)
    unreached: list[tuple[str, KillPoint]] = field(default_factory=list)
    scenarios: dict[str, bool] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_proven(self) -> bool:
        return not self.differences

    def add_result(self, result: JourneyResult) -> None:
        self.killed += result.killed
        self.differences += result.differences

    def format_table(self) -> str:
        """One row per journey with its points by kind and its kills, and one per scenario with its outcome."""
        header = [
            "",
            *(f"{sort} {moment}" for sort in _POINT_CATEGORIES for moment in _MOMENTS),
            "killed",
        ]
        rows = [header]
        killed = Counter(journey for journey, _ in self.killed)
        for journey, points in self.points.items():
            counts = Counter((point.category, point.moment) for point in points)
            cells = [str(counts[sort, moment]) for sort in _POINT_CATEGORIES for moment in _MOMENTS]
            rows.append([journey, *cells, str(killed[journey])])
        for name, passed in self.scenarios.items():
            outcome = "as it should" if passed else "DIFFERS"
            rows.append([name, *([""] * 6), str(killed[name]) if killed[name] else outcome])
        return "\n".join(_align_columns(rows))

    def format_summary(self) -> str:
        keepers = sum(journey == KILLED_KEEPER for journey, _ in self.killed)
        text = f"{len(self.killed) - keepers} times a worker was killed or stopped, "
        text += f"{keepers} times the keeper, " if keepers else ""
        text += f"{len(self.differences)} differences, {self.seconds:.0f} s"
        if self.unreached:
            text += f"; {len(self.unreached)} points did not come again"
        return text

    def to_dict(self) -> dict[str, Any]:
        return {
            "proven": self.is_proven,
            "points": {
                journey: [str(point) for point in points] for journey, points in self.points.items()
            },
            "killed": [f"{journey}: {point}" for journey, point in self.killed],
            "unmet": [f"{journey}: {point}" for journey, point in self.unreached],
            "scenarios": self.scenarios,
            "differences": self.differences,
            "seconds": round(self.seconds, 1),
        }


def _align_columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        row_name, *other_cells = row
        cells = [row_name.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(other_cells, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines
