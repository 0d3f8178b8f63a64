"""Our operator beside one written with kopf that does the same, on the same API server, one after the other.

A wish has a generation, and the operator writes into the status which one it has seen. Cold start: so many orders, none
of them seen. Then changes at a steady rate, each measured from the accepted write to the status that a third process
is told of. Run by `make bench`; needs `make assets`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bare import Bare
from processes import cpu, machine_busy, memory
from report import Report, bars, table

from boatyard.assets import DEFAULT_VERSION, Assets
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import CONFIG_MAPS, CRDS, NAMESPACES
from boatyard.model import hub_names
from boatyard.model.errors import BoatyardError
from boatyard.model.generated.boatyard import OrderNodeSet, OrderSpec
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.orderbook.kube.mapping import to_kube
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.objects import HubObjects
from boatyard.wiring.hub_manifests import read_shipped_crds

FOLDER = Path(__file__).parent / "peers"
PLACE = HubOrderSettings(hub="bench", shared_namespace="orders")
SYSTEM = "boatyard-system"
AT_ONCE = 20
PATIENCE = 300.0
MB = 1024 * 1024
OBJECTS, CPU, MEMORY, LATENCY, WRITES = 1.5, 0.3, 0.3, 0.5, 1.05
OPERATORS = ("ours", "kopf")


@dataclass
class Found:
    """What one operator took."""

    cold: float = 0.0  # seconds from its start to the last order seen
    rate: float = 0.0  # orders a second, from the first to the last
    cpu_cold: float = 0.0
    cpu_busy: float = 0.0  # for all changes
    memory: float = 0.0  # MB, at the end
    latencies: list[float] = field(default_factory=list)  # ms
    writes: float = 0.0  # for each change
    strangers: float = 0.0  # cores that others used meanwhile

    def share(self, part: float) -> float:
        return statistics.quantiles(self.latencies, n=1000)[round(part * 1000) - 1]


class Eye:
    """A third process' view: which generation of each order was seen, and when that was told."""

    def __init__(self, client: KubeClient) -> None:
        self.seen: dict[str, int] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.told: dict[tuple[str, int], float] = {}
        self._informer = Informer(
            client, CLUSTER_ORDERS, PLACE.shared_namespace, on_change=self._hear, shape=_small
        )

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Eye]:
        task = asyncio.create_task(self._informer.run())
        try:
            await self._informer.synced.wait()
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _hear(self, _: str, old: Any, new: Any) -> None:
        if new is None:
            return
        name = new["metadata"]["name"]
        self.items[name] = new
        if new["seen"] != self.seen.get(name):
            self.seen[name] = new["seen"]
            self.told.setdefault((name, new["seen"]), time.monotonic())


def _small(item: dict[str, Any]) -> dict[str, Any]:
    about = item["metadata"]
    kept = {name: about.get(name) for name in ("name", "namespace", "resourceVersion", "uid")}
    seen = ((item.get("status") or {}).get("boatyard") or {}).get("observedGeneration") or 0
    return {"metadata": kept, "seen": int(seen)}


async def prepare(client: KubeClient, count: int) -> None:
    """The CRDs, a registered hub, and orders that nobody has seen."""
    for crd in read_shipped_crds():
        await client.apply(CRDS, crd["metadata"]["name"], crd)
    for name in (SYSTEM, PLACE.shared_namespace):
        await client.apply(NAMESPACES, name, {})
    told = {"id": PLACE.hub, "drivers": {}, "settings": {"kube.namespace": PLACE.shared_namespace}}
    body = {"data": {hub_names.HUB_CONFIG_KEY: json.dumps(told)}}
    await client.apply(CONFIG_MAPS, hub_names.HUB_CONFIG, body, SYSTEM)
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(CLUSTER_ORDERS, PLACE.shared_namespace)
                break
            except BoatyardError:
                await asyncio.sleep(0.1)
    objects = HubObjects(client, PLACE)
    numbers = iter(range(count))

    async def create() -> None:
        for number in numbers:
            await objects.create_order(f"cluster-{number:05}", "acme", wish(number))

    await asyncio.gather(*(create() for _ in range(AT_ONCE)))


def wish(number: int) -> dict[str, Any]:
    spec = OrderSpec(
        cluster_name=f"cluster-{number:05}",
        hub=PLACE.hub,
        template="ocp_4_17_small",
        version="4.17.9",
        release_image="registry.example/release:4.17.9",
        node_sets={"compute": OrderNodeSet(host_type="bm-small", size=3)},
        generation=1,
    )
    return to_kube.to_spec(
        f"cluster-{number:05}",
        spec,
        tenant="acme",
        order_settings=PLACE,
        ordered_at=datetime.now(UTC),
    )


async def measure(
    name: str, bare: Bare, client: KubeClient, generation: int, options: argparse.Namespace
) -> Found:
    """One operator from its start to its end, on orders whose present wish it has not seen."""
    found = Found()
    async with Eye(client).open() as eye:
        await ask_all(client, eye, generation)
        busy = machine_busy(), time.monotonic()
        before = await count_writes(client)
        process = await start(name, bare.kubeconfig)
        try:
            began = time.monotonic()
            await until_all(eye, generation, process)
            moments = sorted(eye.told[one, generation] for one in eye.items)
            found.cold = moments[-1] - began
            found.rate = len(moments) / (moments[-1] - moments[0])
            found.cpu_cold = cpu(process.pid)
            cold_writes = await count_writes(client) - before
            before = await count_writes(client)
            changed = await change(client, eye, generation + 1, options)
            found.cpu_busy = cpu(process.pid) - found.cpu_cold
            found.memory = memory(process.pid) / MB
            found.latencies = [
                1000 * max(0.0, eye.told[one, generation + 1] - accepted)
                for one, accepted in changed.items()
            ]
            # Every change is one write of ours and should be one of the operator's.
            writes = await count_writes(client) - before - len(changed)
            found.writes = (cold_writes + writes) / (len(moments) + len(changed))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(20):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        spent = time.monotonic() - busy[1]
        ours = found.cpu_cold + found.cpu_busy
        found.strangers = max(0.0, (machine_busy() - busy[0] - ours) / spent)
    return found


async def ask_all(client: KubeClient, eye: Eye, generation: int) -> None:
    """Another wish in every order, while no operator is there."""
    objects = HubObjects(client, PLACE)
    items = iter(list(eye.items.values()))

    async def ask() -> None:
        for item in items:
            said = {"boatyard": {"generation": generation}}
            await objects.patch_order(item, spec=said, guarded=False)

    if generation > 1:
        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))


async def start(name: str, kubeconfig: Path) -> asyncio.subprocess.Process:
    if name == "ours":
        words = [str(FOLDER / "copying.py"), str(kubeconfig), SYSTEM]
    else:
        words = ["-m", "kopf", "run", "--quiet", "-n", PLACE.shared_namespace]
        words.append(str(FOLDER / "with_kopf.py"))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )


async def until_all(eye: Eye, generation: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(PATIENCE):
        while not all(seen >= generation for seen in eye.seen.values()):
            assert process.returncode is None, "the operator has ended by itself"
            await asyncio.sleep(0.05)


async def change(
    client: KubeClient, eye: Eye, generation: int, options: argparse.Namespace
) -> dict[str, float]:
    """Changes at the rate asked for, each of another order; when each was accepted."""
    objects = HubObjects(client, PLACE)
    accepted: dict[str, float] = {}
    names = random.Random(7).sample(sorted(eye.items), round(options.rate * options.seconds))

    async def ask(name: str) -> None:
        said = {"boatyard": {"generation": generation}}
        await objects.patch_order(eye.items[name], spec=said, guarded=False)
        accepted[name] = time.monotonic()

    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, began + number / options.rate - time.monotonic()))
            tasks.create_task(ask(name))
    async with asyncio.timeout(PATIENCE):
        for name in names:
            while (name, generation) not in eye.told:  # noqa: ASYNC110 - polled on purpose: the eye must not be slowed
                await asyncio.sleep(0.05)
    return accepted


_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.M)


async def count_writes(client: KubeClient) -> float:
    """Writes of orders that the API server has answered."""
    text = await client.get_text("/metrics")
    found = 0.0
    for labels, value in _REQUESTS.findall(text):
        if 'resource="clusterorders"' in labels and re.search(r'verb="(PATCH|APPLY|PUT)"', labels):
            found += float(value)
    return found


def show(report: Report, results: dict[str, list[Found]]) -> dict[str, Found]:
    """The median round of each, by its cold start."""
    chosen = {
        name: sorted(several, key=lambda one: one.cold)[len(several) // 2]
        for name, several in results.items()
        if several
    }
    head = [
        "",
        "cold s",
        "orders/s",
        "CPU cold s",
        "CPU busy s",
        "MB",
        "p50 ms",
        "p99 ms",
        "writes",
    ]
    rows = [
        [
            *(name, one.cold, one.rate, one.cpu_cold, one.cpu_busy, one.memory),
            *(one.share(0.5), one.share(0.99), one.writes),
        ]
        for name, one in chosen.items()
    ]
    table("Operators, median round", head, rows)
    bars(
        "Orders a second at a cold start", [(name, one.rate) for name, one in chosen.items()], "/s"
    )
    report.found = {name: [asdict(one) for one in several] for name, several in results.items()}
    return chosen


async def run(options: argparse.Namespace, report: Report) -> None:
    programs = Assets().program(DEFAULT_VERSION, "kube-apiserver").parent
    results: dict[str, list[Found]] = {name: [] for name in OPERATORS}
    generations = itertools.count(1, 2)
    with tempfile.TemporaryDirectory(prefix="boatyard-bench-") as folder:
        async with Bare(programs, Path(folder) / "plane") as bare:
            await bare.start()
            client = KubeClient(read_kubeconfig(bare.kubeconfig.read_bytes()), timeout=60)
            try:
                await prepare(client, options.orders)
                for _ in range(options.rounds):
                    for name in OPERATORS:
                        found = await measure(name, bare, client, next(generations), options)
                        results[name].append(found)
            finally:
                await client.close()
    chosen = show(report, results)
    judge(report, chosen["ours"], chosen["kopf"])


def judge(report: Report, ours: Found, kopf: Found) -> None:
    report.promise("orders/s, cold", ours.rate / kopf.rate, OBJECTS, "x kopf's", at_least=True)
    report.promise("CPU, cold", ours.cpu_cold / kopf.cpu_cold, CPU, "x kopf's")
    report.promise("CPU at the rate", ours.cpu_busy / kopf.cpu_busy, CPU, "x kopf's")
    report.promise("memory", ours.memory / kopf.memory, MEMORY, "x kopf's")
    report.promise("p99", ours.share(0.99) / kopf.share(0.99), LATENCY, "x kopf's")
    report.promise("writes of each change", ours.writes, WRITES, "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=100.0, help="changes a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of changes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-judge", action="store_true", help="measures, never fails")
    options = parser.parse_args(arguments)
    report = Report("operators")
    report.configure(orders=options.orders, changes=f"{options.rate:g}/s for {options.seconds:g} s")
    asyncio.run(run(options, report))
    return report.end(judge=not options.no_judge)


if __name__ == "__main__":
    sys.exit(main())
