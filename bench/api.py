"""The API against an empty grpc.aio server with the same messages, in one run; and among 100,000 clusters.

Run by `make bench`. Rounds alternate between the two servers, so that a busy neighbour disturbs
both alike; the medians of the rounds are compared. The client is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ceiling
import msgspec
from load import Answer, Round
from processes import cpu_of, family
from report import Report, bars, database, table
from yard import Broken, Door, Yard

from boatyard.model.caller import CallerRole
from boatyard.twin.layout import demo_layout

CLUSTERS = "osac.public.v1.Clusters"
FEW, MANY = 1_000, 100_000
AT_ONCE = 16
TENANTS = 5
READY_LOOKS = 1200

# What the Go peer was seen to spend, in ms of CPU per request: server, and PostgreSQL for `filtered`.
PEER = {"Get": 0.75, "Create": 2.8, "Update": 1.7, "List": 5.1, "filtered": 29.0}
BOUNDS = {"Get": 0.5, "Create": 0.3}
FILTERED_MS = 100.0


@dataclass
class Side:
    """What rounds against one server gave."""

    rates: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: dict[str, list[float]] = field(default_factory=dict)  # ms per call, by process

    def each(self, name: str) -> float:
        """Milliseconds of CPU per call, in the round that was disturbed least."""
        return min(self.cpu[name])


class Client:
    """The load process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    async def run(self, asked: Round) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(asked) + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise Broken(f"a round of {asked.call} failed:\n{self._log.read_text()[-3000:]}")
        return msgspec.json.decode(line, type=Answer)


class Bench:
    """One Boatyard, one echo server, one client."""

    def __init__(self, yard: Yard, options: argparse.Namespace) -> None:
        self.yard = yard
        self.seconds: float = options.seconds
        self.rounds: int = options.rounds
        self.token = yard.token("acme", role=CallerRole.MEMBER)
        self.operator = yard.token()
        self.door = Door(yard.addresses[0], self.token)
        self.ids: list[str] = []
        self._serial = 0

    async def prepare(self) -> None:
        """One cluster made READY by a worker is the model of all others; then the worker leaves."""
        order = {"metadata": {"name": "model"}, "spec": {"template": {"id": "small"}}}
        model = (await self.door.call(f"{CLUSTERS}/Create", object=order)).object
        await self._until_ready(model.id)
        await self.yard.stop("work")
        await self.yard.stop("twin")
        self.model = model.id
        await self.multiply(FEW)
        rows = await self.yard.sql(
            "select id from documents where kind = 'Cluster' and tenant = 'acme' limit 500"
        )
        self.ids = [row[0] for row in rows]
        listed = await self.door.call(f"{CLUSTERS}/List", limit=100)
        got = await self.door.call(f"{CLUSTERS}/Get", id=self.ids[0])
        answers = {"Get": got, "List": listed}
        tell = {name: answer.SerializeToString().hex() for name, answer in answers.items()}
        here = Path(__file__).parent
        self.echo, self.echo_address = await self.yard.run_beside(
            "echo", [sys.executable, str(here / "echo.py")], tell=json.dumps(tell)
        )
        client, _ = await self.yard.run_beside("load", [sys.executable, str(here / "load.py")])
        self.client = Client(client, self.yard.data / "load.log")
        self.sizes = {name: len(answer.SerializeToString()) for name, answer in answers.items()}

    async def _until_ready(self, id: str) -> None:
        for _ in range(READY_LOOKS):
            if (await self.door.call(f"{CLUSTERS}/Get", id=id)).object.status.state == 2:
                return
            await asyncio.sleep(0.1)
        raise Broken("the model cluster does not become READY")

    async def multiply(self, count: int) -> None:
        """So many clusters altogether, like the model, in all states and of several tenants."""
        await self.yard.sql(_MULTIPLY, self.model, count, TENANTS)
        await self.yard.sql("vacuum analyze documents")

    # --- rounds ------------------------------------------------------------------------------

    def round(self, address: str, call: str, **more: Any) -> Round:
        self._serial += 1
        fields = {"at_once": AT_ONCE, "token": self.token, "seconds": self.seconds} | more
        return Round(
            address=address,
            call=call,
            ids=self.ids,
            template="small",
            prefix=f"b{self._serial}",
            **fields,
        )

    async def side(self, side: Side, address: str, call: str, **more: Any) -> None:
        groups = self.yard.groups() | {"echo": family(self.echo.pid)}
        before = cpu_of(groups)
        answer = await self.client.run(self.round(address, call, **more))
        after = cpu_of(groups)
        side.rates.append(answer.rate)
        side.p50.append(answer.p50)
        side.p99.append(answer.p99)
        for name in groups:
            used = 1000 * (after[name] - before[name]) / answer.calls
            side.cpu.setdefault(name, []).append(used)

    async def compare(self, call: str) -> tuple[Side, Side]:
        """Alternating rounds: (echo, ours)."""
        echo, ours = Side(), Side()
        for place in range(self.rounds + 1):
            one, other = (Side(), Side()) if place == 0 else (echo, ours)  # the first warms up
            await self.side(one, self.echo_address, call)
            await self.side(other, self.yard.addresses[0], call)
        return echo, ours

    async def alone(self, call: str, **more: Any) -> Side:
        ours = Side()
        for place in range(self.rounds + 1):
            await self.side(Side() if place == 0 else ours, self.yard.addresses[0], call, **more)
        return ours


# Rows are made from the model by the database itself: the API would need minutes.
_MULTIPLY = """
insert into documents (kind, id, tenant, project, name, version, created, deleted, data)
select 'Cluster', n.id, n.tenant, '', n.name, 1, now(), null,
    jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(m.data,
        '{id}', to_jsonb(n.id)),
        '{metadata,name}', to_jsonb(n.name)),
        '{metadata,tenant}', to_jsonb(n.tenant)),
        '{metadata,version}', '1'),
        '{status,state}', to_jsonb(n.state))
from documents m, lateral (
    select gen_random_uuid()::text as id, 'web-' || i as name, 1 + i % 3 as state,
        case when i % $3::int = 0 then 'acme' else 't' || i % $3::int end as tenant
    from generate_series((select count(*) from documents where kind = 'Cluster') + 1, $2::int) as i
) n
where m.kind = 'Cluster' and m.id = $1
"""


async def rates(bench: Bench, report: Report) -> dict[str, tuple[Side, Side]]:
    """Every verb beside the echo server."""
    found = {call: await bench.compare(call) for call in ("Get", "Create", "Update", "List")}
    rows, ratios = [], []
    for call, (echo, ours) in found.items():
        ratio = statistics.median(b / a for a, b in zip(echo.rates, ours.rates, strict=True))
        ratios.append((call, ratio))
        rows.append(
            (
                _words(call),
                statistics.median(echo.rates),
                statistics.median(ours.rates),
                f"{ratio:.2f}",
                statistics.median(ours.p50),
                statistics.median(ours.p99),
                echo.each("echo"),
                ours.each("serve"),
                ours.each("postgres"),
                PEER[call],
            )
        )
        if call in BOUNDS:
            report.promise(
                f"{_words(call)}: rate over the echo server's",
                ratio,
                BOUNDS[call],
                "×",
                at_least=True,
            )
        report.promise(
            f"{_words(call)}: CPU of the server, the Go peer's being the bound",
            ours.each("serve"),
            PEER[call],
            "ms",
        )
    head = ("call", "echo/s", "ours/s", "ratio", "p50 ms", "p99 ms")
    cpu = ("echo CPU", "serve CPU", "PG CPU", "Go peer")
    table(f"{AT_ONCE} calls at once, {FEW:,} clusters; CPU in ms per call", head + cpu, rows)
    bars("Rate, as a share of the echo server's", ratios, "×")
    return found


FILTERS = {
    "name": 'this.metadata.name == "web-77777"',
    "state": "this.status.state == 2",
    "template": 'this.spec.template.id == "small"',
    "id, as our CLI": 'this.id == "web-5" || this.metadata.name == "web-5"',
}


async def among_many(bench: Bench, report: Report) -> dict[str, Side]:
    """First pages among 100,000 clusters, one caller: an operator who sees all, and a tenant."""
    found: dict[str, Side] = {}
    for who, token in (("operator", bench.operator), ("tenant", bench.token)):
        for name, text in ({"no filter": ""} | FILTERS).items():
            key = f"{name}, {who}"
            found[key] = await bench.alone("List", filter=text, token=token, at_once=1)
    rows = [
        (
            key,
            statistics.median(side.rates),
            statistics.median(side.p50),
            max(side.p99),
            side.each("serve"),
            side.each("postgres"),
        )
        for key, side in found.items()
    ]
    table(
        f"First page of 100 among {MANY:,} clusters, one caller; CPU in ms per call",
        ("filter", "ours/s", "p50 ms", "p99 ms", "serve CPU", "PG CPU"),
        rows,
    )
    filtered = {key: side for key, side in found.items() if not key.startswith("no filter")}
    report.promise(
        "filtered first page, p99 of the slowest filter",
        max(statistics.median(side.p99) for side in filtered.values()),
        FILTERED_MS,
        "ms",
    )
    report.promise(
        "filtered list: CPU of PostgreSQL, the Go peer's being the bound",
        max(side.each("postgres") for side in filtered.values()),
        PEER["filtered"],
        "ms",
    )
    return found


def _words(call: str) -> str:
    return "list of 100" if call == "List" else call.lower()


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="per round (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="per server (default: 5)")
    parser.add_argument("--quick", action="store_true", help="three rounds of one second")
    parser.add_argument("--no-judge", action="store_true", help="measure, and end well")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 1.0, 3
    report = Report("api")
    async with Yard(layout=demo_layout()) as yard:
        bench = Bench(yard, options)
        await bench.prepare()
        report.configure(
            postgresql=await database(yard),
            processes="serve 1 (token check and policy on), PostgreSQL embedded, echo 1, client 1",
            rounds=f"{options.rounds} of {options.seconds:g} s, alternating, {AT_ONCE} at once",
            messages=f"get {bench.sizes['Get']} bytes, list of 100 {bench.sizes['List']} bytes",
        )
        compared = await rates(bench, report)
        ceilings = await ceiling.measure(yard, bench.ids, seconds=options.seconds)
        await bench.multiply(MANY)
        many = await among_many(bench, report)
        await bench.door.close()
    report.found = {
        "beside": {
            call: {"echo": asdict(a), "ours": asdict(b)} for call, (a, b) in compared.items()
        },
        "ceiling": ceilings,
        "many": {key: asdict(side) for key, side in many.items()},
    }
    return report.end(judge=not options.no_judge)


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except Broken as broken:
        sys.exit(f"bench/api: {broken}")
