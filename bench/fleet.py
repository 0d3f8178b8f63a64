"""Fleets of clusters, ordered through the API and deleted again: how long, how much memory, does it grow?

Run by `make bench`. Every fleet gets a Boatyard of its own: PostgreSQL, twin without delays,
`serve` and `work` as processes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

import asyncpg
from kube_hub import KubeHub, kube_hub
from processes import Peak, cpu, cpu_of, machine_busy, memory_of
from report import Report, bars, database, table
from yard import Broken, Door, Yard, in_parallel

from boatyard.model.caller import CallerRole
from boatyard.model.errors import Refused
from boatyard.twin.layout import fleet_layout

CLUSTERS = "osac.public.v1.Clusters"
READY = 2  # CLUSTER_STATE_READY
TENANTS = 20
AT_ONCE = 16
WARM_UP = 20
LOOK_SECONDS = 0.25
LONGEST_SECONDS = 600.0
MB = 1024 * 1024

UP_SECONDS, MEMORY_MB, GROWTH = 90.0, 1024.0, 1.2
GROWING = {
    "up_each": "time up",
    "down_each": "time down",
    "cpu_each": "CPU up",
    "memory_each": "memory",
}
# The smallest fleet is measured early, in between and late: what the machine does meanwhile evens out.
SIZES = (100, 3000, 100, 1000, 300, 100)
QUIET = 0.3  # cores used by strangers, above which times say little


@dataclass
class Fleet:
    """What one fleet took."""

    size: int
    ordered: float  # seconds until the last order was accepted
    up: float  # seconds until the last cluster was READY
    down: float  # seconds until the last cluster was gone
    cpu: dict[str, float]  # seconds from the first order to the last READY, by process
    neighbours: float  # cores that strangers on this machine used meanwhile
    empty: int  # bytes of all processes before the first order
    standing: int  # with all clusters READY
    peak: int
    peak_parts: dict[str, int]
    requests: float = 0.0  # to a Kubernetes hub, for each cluster on its way up

    @property
    def up_each(self) -> float:
        return 1000 * self.up / self.size

    @property
    def cpu_each(self) -> float:
        return 1000 * sum(self.cpu.values()) / self.size

    @property
    def down_each(self) -> float:
        return 1000 * self.down / self.size

    @property
    def memory_each(self) -> float:
        return (self.standing - self.empty) / 1024 / self.size


class Orders:
    """Tenants who order clusters of 1+3 nodes and delete them."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._made: list[tuple[int, str]] = []  # tenant and id
        self._operator = Door(yard.addresses[0], yard.token())
        self._tenants = [
            Door(
                yard.addresses[n % len(yard.addresses)], yard.token(f"t{n}", role=CallerRole.MEMBER)
            )
            for n in range(TENANTS)
        ]

    async def prepare(self) -> None:
        """The tenants, and a template with the node sets of this benchmark."""
        for n in range(TENANTS):
            await self._operator.call(
                "osac.private.v1.Tenants/Create", object={"metadata": {"name": f"t{n}"}}
            )
        host = {"id": "bm-small"}
        node_sets = {
            "control": {"host_type": host, "size": 1},
            "compute": {"host_type": host, "size": 3},
        }
        await self._operator.call(
            "osac.private.v1.ClusterTemplates/Create",
            object={
                "id": "fleet",
                "metadata": {"name": "fleet"},
                "title": "One and three",
                "node_sets": node_sets,
            },
        )

    async def create(self, size: int, prefix: str) -> None:
        async def one(n: int) -> None:
            answer = await self._tenants[n % TENANTS].call(
                f"{CLUSTERS}/Create",
                object={
                    "metadata": {"name": f"{prefix}-{n}"},
                    "spec": {"template": {"id": "fleet"}},
                },
            )
            self._made.append((n % TENANTS, answer.object.id))

        await in_parallel(range(size), AT_ONCE, one)

    async def delete(self) -> None:
        """All that was ordered."""
        made, self._made = self._made, []

        async def one(cluster: tuple[int, str]) -> None:
            await self._tenants[cluster[0]].call(f"{CLUSTERS}/Delete", id=cluster[1])

        await in_parallel(made, AT_ONCE, one)

    async def until_ready(self, count: int) -> None:
        await self._until(f"state = {READY}", count)

    async def until_gone(self) -> None:
        await self._until("true", 0)

    async def _until(self, condition: str, count: int) -> None:
        """Returns when exactly so many clusters are like that.

        The database is asked, so that asking does not count as serving.
        """
        deadline = time.monotonic() + LONGEST_SECONDS
        query = f"select count(*) from documents where kind = 'Cluster' and {condition}"
        connection = await asyncpg.connect(self._yard.url)
        try:
            while (seen := await connection.fetchval(query)) != count:
                if time.monotonic() > deadline:
                    said = "\n".join(self._yard.complaints())
                    raise Broken(f"{seen} clusters with {condition}, not {count}\n{said}")
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await connection.close()

    async def close(self) -> None:
        for door in (self._operator, *self._tenants):
            await door.close()


async def run_fleet(
    size: int, *, works: int, kube: bool = False, report: Report | None = None
) -> Fleet:
    """Up and down again once, in a Boatyard of its own."""
    hosts = {"bm-small": max(4 * size, 4 * WARM_UP)}
    hubs = 1 if kube else 2
    async with AsyncExitStack() as stack:
        yard = await stack.enter_async_context(
            Yard(layout=fleet_layout(hubs=hubs, hosts=hosts), works=works)
        )
        hub = await stack.enter_async_context(kube_hub(yard)) if kube else None
        if report is not None:
            kept = "a Kubernetes hub with an operator" if kube else f"{hubs} hubs"
            report.configure(
                postgresql=await database(yard),
                processes=f"serve 1, work {works}, twin 1 (instant), PostgreSQL embedded",
                orders=f"{TENANTS} tenants, {AT_ONCE} calls at once, 1+3 nodes, {kept}",
            )
        orders = Orders(yard)
        await orders.prepare()
        await orders.create(WARM_UP, "warm")
        await orders.until_ready(WARM_UP)
        await orders.delete()
        await orders.until_gone()
        with Peak(yard.groups) as peak:
            fleet = await _measure(yard, orders, size, hub)
        fleet.peak, fleet.peak_parts = peak.total, peak.parts
        await _check_empty(yard)
        await orders.close()
    return fleet


async def _measure(yard: Yard, orders: Orders, size: int, hub: KubeHub | None) -> Fleet:
    asked = await hub.requests() if hub else 0.0
    api = sum(cpu(pid) for pid in hub.api) if hub else 0.0
    empty = sum(memory_of(yard.groups()).values())
    before = cpu_of(yard.groups())
    busy = machine_busy() - cpu(os.getpid())
    start = time.monotonic()
    await orders.create(size, "web")
    ordered = time.monotonic() - start
    await orders.until_ready(size)
    up = time.monotonic() - start
    used = {name: after - before.get(name, 0.0) for name, after in cpu_of(yard.groups()).items()}
    if hub:
        asked = (await hub.requests() - asked) / size
        api = sum(cpu(pid) for pid in hub.api) - api
        used["hub's API"] = api
    strange = machine_busy() - cpu(os.getpid()) - busy - sum(used.values())
    standing = sum(memory_of(yard.groups()).values())
    start = time.monotonic()
    await orders.delete()
    await orders.until_gone()
    down = time.monotonic() - start
    neighbours = max(0.0, strange / up)
    return Fleet(size, ordered, up, down, used, neighbours, empty, standing, 0, {}, asked)


async def _check_empty(yard: Yard) -> None:
    """Deleting is done when nothing is left anywhere."""
    left: dict[str, Any] = {}
    totals = await yard.twin_call("twin.totals")
    left |= {f"twin {hub} {kind}": n for hub, kinds in totals.items() for kind, n in kinds.items()}
    counts = await yard.sql(
        "select 'claims', count(*) from claims union all select 'reservations', count(*) from reservations"
        " union all select 'pools', count(*) from pools where used <> 0"
        " union all select kind, count(*) from documents where kind in ('Order', 'Leftover') group by kind"
    )
    left |= dict(counts)
    found = {name: count for name, count in left.items() if count}
    if found:
        raise Broken(f"something is left: {found}")


def show(fleets: list[Fleet]) -> None:
    table(
        "Fleets",
        (
            "clusters",
            "accepted s",
            "up s",
            "down s",
            "ms each up",
            "ms each down",
            "KB each",
            "peak MB",
        ),
        [
            (f.size, f.ordered, f.up, f.down, f.up_each, f.down_each, f.memory_each, f.peak / MB)
            for f in fleets
        ],
    )
    names = sorted({name for f in fleets for name in f.cpu})
    table(
        "CPU per cluster on the way up (ms)",
        ("clusters", *names, "all", "strangers' cores"),
        [
            (
                f.size,
                *(1000 * f.cpu.get(name, 0.0) / f.size for name in names),
                f.cpu_each,
                f.neighbours,
            )
            for f in fleets
        ],
    )
    table(
        "Memory at the peak (MB)",
        ("clusters", *names),
        [(f.size, *(f.peak_parts.get(name, 0) / MB for name in names)) for f in fleets],
    )
    if any(f.requests for f in fleets):
        rows = [(f.size, f.requests) for f in fleets]
        table("Requests to the hub on the way up", ("clusters", "each"), rows)
    if any(f.neighbours > QUIET for f in fleets):
        print("\n  Strangers used this machine meanwhile: trust CPU and memory, repeat for times.")
    bars("Time per cluster, up", [(f"{f.size}", f.up_each) for f in fleets], "ms")


def judge(report: Report, fleets: list[Fleet]) -> None:
    by_size = {
        size: [f for f in fleets if f.size == size] for size in sorted({f.size for f in fleets})
    }
    small, large = min(by_size), max(by_size)
    if 1000 in by_size:
        thousand = by_size[1000]
        report.promise("1,000 clusters READY", min(f.up for f in thousand), UP_SECONDS, "s")
        report.promise(
            "memory of all processes", max(f.peak for f in thousand) / MB, MEMORY_MB, "MB"
        )
    if small < large:
        words = f"from {small} to {large:,} clusters"
        for name, what in GROWING.items():
            first, last = (
                statistics.median(getattr(f, name) for f in by_size[size])
                for size in (small, large)
            )
            report.promise(f"{what} per cluster, growth {words}", last / first, GROWTH, "×")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sizes",
        nargs="*",
        type=int,
        help="of the fleets (default: 100 three times, 300, 1000, 3000)",
    )
    parser.add_argument("--quick", action="store_true", help="100 and 300 clusters only")
    parser.add_argument("--works", type=int, default=1, help="worker processes (default: 1)")
    parser.add_argument(
        "--hub", choices=("embedded", "kube"), default="embedded", help="who keeps the orders"
    )
    parser.add_argument("--no-judge", action="store_true", help="measure, and end well")
    options = parser.parse_args()
    kube = options.hub == "kube"
    sizes = options.sizes or ([200] if kube else [100, 300, 100] if options.quick else SIZES)
    report = Report("fleet-kube" if kube else "fleet")
    fleets: list[Fleet] = []
    for size in sizes:
        first = report if not fleets else None
        fleets.append(await run_fleet(size, works=options.works, kube=kube, report=first))
        f = fleets[-1]
        print(f"  {size:>5} clusters: up {f.up:.1f} s, down {f.down:.1f} s", flush=True)
    fleets.sort(key=lambda fleet: fleet.size)
    show(fleets)
    judge(report, fleets)
    report.found["fleets"] = [asdict(fleet) for fleet in fleets]
    return report.end(judge=not options.no_judge)


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except (Broken, Refused) as error:  # refused: the programs of a hub are not installed
        sys.exit(f"bench/fleet: {error}")
