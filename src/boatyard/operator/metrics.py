"""The operator's metrics in the text format of Prometheus. Served by the probes' server."""

from __future__ import annotations

import os
import resource
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from boatyard.model.errors import BoatyardError
from boatyard.resources.reconciler import ReconcilePass, Reconciler, ReconcileResult

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
Gauge = Callable[[], Iterable[Sample]]

_PREFIX = "boatyard_operator_"


class Metrics:
    """A set of counters, which code adds to, and gauges, which are read when the text is made."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._gauges: dict[str, Gauge] = {}
        self._help: dict[str, str] = {}

    def add_counter(self, name: str, help_text: str) -> None:
        self._help[name] = help_text
        self._counters[name] = {}

    def add_gauge(self, name: str, help_text: str, read: Gauge) -> None:
        self._help[name] = help_text
        self._gauges[name] = read

    def increment(self, name: str, amount: float = 1, **labels: str) -> None:
        counts, key = self._counters[name], tuple(sorted(labels.items()))
        counts[key] = counts.get(key, 0.0) + amount

    def render(self) -> str:
        return "\n".join([*self._render_lines(), ""])

    def _render_lines(self) -> Iterator[str]:
        for name, counts in self._counters.items():
            samples: Sequence[Sample] = [(dict(labels), value) for labels, value in counts.items()]
            yield from self._render_family(name, "counter", samples)
        for name, read_gauge in self._gauges.items():
            yield from self._render_family(name, "gauge", read_gauge())
        yield from _render_process_metrics()

    def _render_family(self, name: str, kind: str, samples: Iterable[Sample]) -> Iterator[str]:
        yield f"# HELP {_PREFIX}{name} {self._help[name]}"
        yield f"# TYPE {_PREFIX}{name} {kind}"
        for labels, value in samples:
            inside = ",".join(f'{key}="{_escape_label(text)}"' for key, text in labels.items())
            yield (
                f"{_PREFIX}{name}{{{inside}}} {value:g}" if inside else f"{_PREFIX}{name} {value:g}"
            )


def make_operator_metrics() -> Metrics:
    """Metrics with the operator's counters; its gauges are added by `Operator`."""
    metrics = Metrics()
    metrics.add_counter("terms_total", "How often this process became the leader.")
    metrics.add_counter("turns_total", "Reconcile passes, by kind of object and outcome.")
    metrics.add_counter(
        "turn_seconds_total", "Seconds spent in reconcile passes, by kind of object."
    )
    metrics.add_counter("swept_claims_total", "Claims without an owner that were removed.")
    metrics.add_counter(
        "swept_orders_total", "Leftovers written for objects found without an order."
    )
    return metrics


class CountingReconciler:
    """Wraps a reconciler and counts its passes and their seconds."""

    def __init__(
        self, inner: Reconciler, kind: str, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self._inner = inner
        self._kind = kind
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return await self._count_pass(self._inner.reconcile, reconcile_pass)

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return await self._count_pass(self._inner.quarantine, reconcile_pass)

    async def _count_pass(
        self,
        reconcile: Callable[[ReconcilePass], Awaitable[ReconcileResult]],
        reconcile_pass: ReconcilePass,
    ) -> ReconcileResult:
        start_time, outcome = self._clock(), "bug"
        try:
            result = await reconcile(reconcile_pass)
            outcome = "changed" if result.changes else "unchanged"
            return result
        except BoatyardError:
            outcome = "failed"
            raise
        finally:
            self._metrics.increment("turns_total", kind=self._kind, outcome=outcome)
            self._metrics.increment(
                "turn_seconds_total", self._clock() - start_time, kind=self._kind
            )


def _render_process_metrics() -> Iterator[str]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    yield "# TYPE process_cpu_seconds_total counter"
    yield f"process_cpu_seconds_total {usage.ru_utime + usage.ru_stime:g}"
    yield "# TYPE process_resident_memory_bytes gauge"
    yield f"process_resident_memory_bytes {pages * os.sysconf('SC_PAGE_SIZE')}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
