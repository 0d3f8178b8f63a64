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

from boatyard.kube.client import KubeClient, Object
from boatyard.kube.kinds import JOBS, Kind
from boatyard.twin.calls import TwinCalls
from boatyard.twin.world import LYING


@dataclass(frozen=True, order=True)
class Point:
    """`label` is `before:commit:…`, `after:claim:…`, `before:effect:…` and the like."""

    label: str
    time: int = 1

    def __str__(self) -> str:
        return self.label if self.time == 1 else f"{self.label} (time {self.time})"

    @property
    def moment(self) -> str:
        return self.label.split(":")[0]

    @property
    def sort(self) -> str:
        return {"commit": "write"}.get(self.label.split(":")[1], self.label.split(":")[1])


class Points:
    """Counts the points that this process passes, and kills or stops the process at the target."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._tell = report
        self._times: Counter[str] = Counter()
        self._passed: list[Point] = []
        self._target: Point | None = None
        self._signal = signal.SIGKILL

    def begin(self, target: Point | None, signal_number: int = signal.SIGKILL) -> None:
        """Starts counting again. At `target` the process sends itself the signal."""
        self._times.clear()
        self._passed = []
        self._target = target
        self._signal = signal.Signals(signal_number)

    @property
    def passed(self) -> list[Point]:
        return self._passed

    def reach(self, label: str) -> None:
        """Notes that the process passes a point; at the target it does not return, or returns when resumed."""
        self._times[label] += 1
        point = Point(label, self._times[label])
        self._passed.append(point)
        if point == self._target:
            self._target = None
            self._tell(str(point))
            os.kill(os.getpid(), self._signal)


class WatchedCalls:
    """Calls the twin or the keeper; every effect is a point, labelled by verb and key without the order's id."""

    def __init__(self, calls: TwinCalls, points: Points) -> None:
        self._calls = calls
        self._points = points

    async def call(self, verb: str, /, **args: Any) -> Any:
        if not verb.partition(".")[2].startswith(LYING):
            return await self._calls.call(verb, **args)
        label = f"effect:{verb} {str(args.get('key', '')).partition('/')[2]}"
        self._points.reach(f"before:{label}")
        value = await self._calls.call(verb, **args)
        self._points.reach(f"after:{label}")
        return value

    async def close(self) -> None:
        await self._calls.close()


class WatchedKube(KubeClient):
    """The client of the checks to a real cluster; every write is a point."""

    points: Points  # of the process; set once

    async def create(self, kind: Kind, body: Mapping[str, Any], namespace: str = "") -> Object:
        with self._announced("create", kind, body["metadata"]["name"]):
            return await super().create(kind, body, namespace)

    async def merge_patch(self, kind: Kind, name: str, *args: Any, **options: Any) -> Object:
        with self._announced("patch", kind, name):
            return await super().merge_patch(kind, name, *args, **options)

    async def delete(self, kind: Kind, name: str, *args: Any, **options: Any) -> bool:
        with self._announced("delete", kind, name):
            return await super().delete(kind, name, *args, **options)

    @contextmanager
    def _announced(self, verb: str, kind: Kind, name: str) -> Iterator[None]:
        # The cluster generates the names of pods.
        label = f"effect:check.{verb} {name if kind == JOBS else kind.plural}"
        self.points.reach(f"before:{label}")
        yield
        self.points.reach(f"after:{label}")
