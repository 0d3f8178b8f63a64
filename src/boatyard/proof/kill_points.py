"""The points at which a worker may be killed: before and after every ledger write, every claim and every effect.

A point has a label that is the same in every run, because it contains no id. The same label may be passed
several times, so a point is a label and its occurrence since counting began.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from boatyard.kube.client import KubeClient, KubeObject
from boatyard.kube.kinds import JOBS, KubeKind
from boatyard.twin.calls import TwinCalls
from boatyard.twin.world import LYING_VERB_PREFIXES


@dataclass(frozen=True, order=True)
class KillPoint:
    """`label` is `before:commit:…`, `after:claim:…`, `before:effect:…` and the like."""

    label: str
    occurrence: int = 1

    def __str__(self) -> str:
        return self.label if self.occurrence == 1 else f"{self.label} (time {self.occurrence})"

    @property
    def moment(self) -> str:
        return self.label.split(":")[0]

    @property
    def category(self) -> str:
        return {"commit": "write"}.get(self.label.split(":")[1], self.label.split(":")[1])


class KillPoints:
    """Counts the points that this process passes, and kills or stops the process at the target."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._counts: Counter[str] = Counter()
        self._passed: list[KillPoint] = []
        self._target: KillPoint | None = None
        self._signal = signal.SIGKILL

    def set_target(self, target: KillPoint | None, signal_number: int = signal.SIGKILL) -> None:
        """Starts counting again. At `target` the process sends itself the signal."""
        self._counts.clear()
        self._passed = []
        self._target = target
        self._signal = signal.Signals(signal_number)

    @property
    def passed(self) -> list[KillPoint]:
        return self._passed

    def pass_point(self, label: str) -> None:
        """Notes that the process passes a point; at the target it does not return, or returns when resumed."""
        self._counts[label] += 1
        point = KillPoint(label, self._counts[label])
        self._passed.append(point)
        if point == self._target:
            self._target = None
            self._report(str(point))
            os.kill(os.getpid(), self._signal)


class InstrumentedCalls:
    """Calls the twin or the keeper; every effect is a point, labelled by verb and key without the order's id."""

    def __init__(self, calls: TwinCalls, points: KillPoints) -> None:
        self._calls = calls
        self._points = points

    async def call(self, verb: str, /, **args: Any) -> Any:
        if not verb.partition(".")[2].startswith(LYING_VERB_PREFIXES):
            return await self._calls.call(verb, **args)
        label = f"effect:{verb} {str(args.get('key', '')).partition('/')[2]}"
        self._points.pass_point(f"before:{label}")
        value = await self._calls.call(verb, **args)
        self._points.pass_point(f"after:{label}")
        return value

    async def close(self) -> None:
        await self._calls.close()


class InstrumentedKubeClient(KubeClient):
    """The client of the checks to a real cluster; every write is a point."""

    points: KillPoints  # of the process; set once

    async def create(
        self, kind: KubeKind, body: Mapping[str, Any], namespace: str = ""
    ) -> KubeObject:
        with self._pass_points("create", kind, body["metadata"]["name"]):
            return await super().create(kind, body, namespace)

    async def merge_patch(
        self, kind: KubeKind, name: str, *args: Any, **options: Any
    ) -> KubeObject:
        with self._pass_points("patch", kind, name):
            return await super().merge_patch(kind, name, *args, **options)

    async def delete(self, kind: KubeKind, name: str, *args: Any, **options: Any) -> bool:
        with self._pass_points("delete", kind, name):
            return await super().delete(kind, name, *args, **options)

    @contextmanager
    def _pass_points(self, verb: str, kind: KubeKind, name: str) -> Iterator[None]:
        # The cluster generates the names of pods.
        label = f"effect:check.{verb} {name if kind == JOBS else kind.plural}"
        self.points.pass_point(f"before:{label}")
        yield
        self.points.pass_point(f"after:{label}")
