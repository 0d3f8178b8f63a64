"""What a benchmark says: its configuration, tables and bars for people, JSON for machines, and a verdict."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "build" / "bench"
_PACKAGES = ("grpcio", "protobuf", "asyncpg", "msgspec")
_BAR = 32


@dataclass(frozen=True)
class Target:
    """One promise, what was measured, and whether it was kept."""

    promise: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def kept(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def line(self) -> str:
        sign = ">=" if self.at_least else "<="
        word = "kept  " if self.kept else "MISSED"
        return f"  {word} {self.promise}: {self.measured:.3g} {self.unit} ({sign} {self.bound:g})"


@dataclass
class Report:
    """Collects what one benchmark found and prints it as it comes."""

    name: str
    configuration: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)

    def configure(self, **more: Any) -> None:
        self.configuration = machine() | more
        print(f"bench/{self.name}")
        for name, value in self.configuration.items():
            print(f"  {name:<12} {value}")
        print(flush=True)

    def promise(
        self, promise: str, measured: float, bound: float, unit: str, *, at_least: bool = False
    ) -> None:
        self.targets.append(Target(promise, measured, bound, unit, at_least))

    def end(self, *, judge: bool) -> int:
        """Writes the JSON, prints the verdict; the exit code."""
        print("\nTargets")
        for target in self.targets:
            print(target.line())
        FOLDER.mkdir(parents=True, exist_ok=True)
        path = FOLDER / f"{self.name}.json"
        content = {
            "configuration": self.configuration,
            "found": self.found,
            "targets": [asdict(target) | {"kept": target.kept} for target in self.targets],
        }
        path.write_text(json.dumps(content, indent=2) + "\n")
        print(f"written: {os.path.relpath(path)}")
        return 1 if judge and not all(target.kept for target in self.targets) else 0


def machine() -> dict[str, Any]:
    with Path("/proc/meminfo").open() as lines:
        memory = int(lines.readline().split()[1]) // 1024
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    load = "/".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "machine": f"{os.cpu_count()} cores, {memory} MB, load {load} at the start",
        "python": f"{platform.python_version()}, {packages}",
    }


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table; the first column to the left, numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[n]) for row in [list(head), *cells]) for n in range(len(head))]
    print(f"\n{title}")
    for row in [list(head), *cells]:
        words = [
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(words).rstrip())
    sys.stdout.flush()


def bars(title: str, rows: Sequence[tuple[str, float]], unit: str) -> None:
    """Prints one bar per row, the longest for the largest."""
    most = max((value for _, value in rows), default=0.0) or 1.0
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    for name, value in rows:
        bar = "█" * max(1, round(_BAR * value / most))
        print(f"  {name:<{width}}  {bar:<{_BAR}}  {_cell(value)} {unit}")
    sys.stdout.flush()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


async def database(yard: Any) -> str:
    """The settings of PostgreSQL that decide what a commit costs."""
    names = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "wal_level")
    said = (await yard.sql("select current_setting('server_version')"))[0][0]
    rows = await yard.sql(
        "select name, current_setting(name) from unnest($1::text[]) as x (name)", list(names)
    )
    return f"{said}, " + ", ".join(f"{name}={value}" for name, value in rows)
