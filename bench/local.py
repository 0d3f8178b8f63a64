"""Real clusters on this machine against the same programs started by hand in the same run.

Run by `make bench` where the assets are. How long from an order to the first answer of its API, what we cost in
memory, how long a stopped cluster needs to come back, and ten of each at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from bare import Bare, first_answer
from processes import memory
from report import Report, bars, table
from yard import Door

from boatyard.assets import Assets
from boatyard.client.config import read_local_server
from boatyard.model.generated.osac import ClusterRest, ClusterState, HubState
from boatyard.platforms.drivers.local.driver import KeeperClient

CLUSTERS = "osac.public.v1.Clusters"
READY, HIBERNATED = int(ClusterState.READY), int(ClusterState.HIBERNATED)
LOOK_SECONDS = 0.1
SETTLED_SECONDS = 20.0  # until the collectors of garbage have had their turn
MB = 1024 * 1024
FIRST, MEMORY, RESUME, AT_ONCE = 1.3, 1.10, 1.0, 1.3


class Yard:
    """`boatyard up` with a twin that takes no time, and a door into it."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self._directory = directory
        self._kubectl = programs / "kubectl"
        self.environ = os.environ | {
            "BOATYARD_ASSETS": str(programs.parent),
            "BOATYARD_TWIN_DELAYS": "instant",
            "BOATYARD_LOG_LEVEL": "warning",
            "XDG_RUNTIME_DIR": str(directory),
            "XDG_CONFIG_HOME": str(directory),
        }

    async def start(self) -> None:
        with (self._directory / "up.log").open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "boatyard.app.main", "up"),
                *("--data", str(self._directory / "data")),
                *("--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"),
                env=self.environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            await self.process.stdout.readline()
        self.door = _door(self.environ)
        await self._until_hub_ready()

    async def _until_hub_ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                found = await self.door.call("osac.private.v1.Hubs/Get", id="local")
                if found.object.status.state == HubState.READY:
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def stop(self) -> None:
        await self.door.close()
        self.process.terminate()
        await self.process.wait()

    async def order(self, name: str) -> tuple[str, float]:
        """Seconds from the order to the first `kubectl get ns` that succeeds, and the cluster's id."""
        began = time.monotonic()
        made = await self.door.call(
            f"{CLUSTERS}/Create",
            object={
                "metadata": {"name": name, "tenant": "acme"},
                "spec": {"template": {"id": "kubernetes_small"}},
            },
        )
        await self._answer(made.object.id)
        return made.object.id, time.monotonic() - began

    async def _answer(self, id: str) -> None:
        path = self._directory / f"{id}.kubeconfig"
        path.write_text(await self._kubeconfig(id))
        await first_answer(self._kubectl, path)

    async def _kubeconfig(self, id: str) -> str:
        """Asks ever less often, as a person would."""
        began = time.monotonic()
        while True:
            try:
                found = await self.door.call(f"{CLUSTERS}/GetKubeconfig", id=id)
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    raise
                await asyncio.sleep(max(LOOK_SECONDS, (time.monotonic() - began) / 30))
                continue
            return str(found.kubeconfig)

    async def wait_state(self, id: str, state: int) -> None:
        async with asyncio.timeout(120):
            while True:
                found = await self.door.call(f"{CLUSTERS}/Get", id=id)
                if found.object.status.state == state:
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def resume(self, id: str) -> float:
        """Stopped for good, then seconds from asking for it back to the first answer."""
        await self._rest(id, ClusterRest.STOPPED)
        await self.wait_state(id, HIBERNATED)
        began = time.monotonic()
        await self._rest(id, ClusterRest.AWAKE)
        await self._answer(id)
        return time.monotonic() - began

    async def _rest(self, id: str, rest: ClusterRest) -> None:
        await self.door.call(
            f"{CLUSTERS}/Update",
            object={"id": id, "spec": {"rest": int(rest)}},
            update_mask={"paths": ["spec.rest"]},
        )

    async def delete(self, id: str) -> None:
        await self.door.call(f"{CLUSTERS}/Delete", id=id)
        async with asyncio.timeout(120):
            while True:
                try:
                    await self.door.call(f"{CLUSTERS}/Get", id=id)
                except grpc.aio.AioRpcError as error:
                    if error.code() == grpc.StatusCode.NOT_FOUND:
                        return
                    raise
                await asyncio.sleep(LOOK_SECONDS)

    async def pids(self, ids: Sequence[str]) -> tuple[list[int], int]:
        """Of the clusters' processes, and of their keeper."""
        client = KeeperClient(self._directory / "data" / "keeper.sock")
        try:
            found: list[int] = []
            for id in ids:
                running = await client.call("keeper.processes", cluster_key=f"{id}/cluster")
                found += running.values()
            return found, (await client.call("keeper.ping"))["pid"]
        finally:
            await client.close()


def _door(environ: Mapping[str, str]) -> Door:
    current = read_local_server(environ)
    assert current is not None
    return Door(current.grpc, Path(current.token_file).read_text().strip())


@asynccontextmanager
async def bare_ones(programs: Path, place: Path, count: int) -> AsyncIterator[list[Bare]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(Bare(programs, place / f"bare-{n}"))
            for n in range(count)
        ]


async def measure(options: argparse.Namespace, report: Report) -> None:
    assets = Assets()
    programs = assets.program(assets.versions()[-1], "etcd").parent
    place = Path(tempfile.mkdtemp(prefix="by-"))
    yard = Yard(place, programs)
    await yard.start()
    try:
        await _single(yard, programs, place, options.rounds, report)
        await _many(yard, programs, place, options.at_once, report)
    finally:
        await yard.stop()
        shutil.rmtree(place, ignore_errors=True)


async def _single(yard: Yard, programs: Path, place: Path, rounds: int, report: Report) -> None:
    """One at a time, in turns: what the machine does meanwhile meets both."""
    times: dict[str, list[float]] = {"bare": [], "order": [], "resume": []}
    for number in range(rounds + 1):
        async with bare_ones(programs, place, 1) as (bare,):
            took = await bare.start()
        id, ordered = await yard.order(f"single-{number}")
        await yard.wait_state(id, READY)
        resumed = await yard.resume(id)
        await yard.delete(id)
        if number:  # the first warms up
            for name, value in zip(times, (took, ordered, resumed), strict=True):
                times[name].append(value)
    middle = {name: statistics.median(values) for name, values in times.items()}
    bars("Seconds to the first answer (median)", list(middle.items()), "s")
    report.found["single"] = times
    report.promise("order over bare start", middle["order"] / middle["bare"], FIRST, "x")
    report.promise("resume over bare start", middle["resume"] / middle["bare"], RESUME, "x")


async def _many(yard: Yard, programs: Path, place: Path, count: int, report: Report) -> None:
    async with bare_ones(programs, place, count) as bares:
        took = await asyncio.gather(*(bare.start() for bare in bares))
        for bare in bares:
            await bare.start_controllers()
        await asyncio.sleep(SETTLED_SECONDS)
        plain = sum(memory(pid) for bare in bares for pid in bare.pids)
    orders = await asyncio.gather(*(yard.order(f"many-{n}") for n in range(count)))
    ids = [id for id, _ in orders]
    for id in ids:
        await yard.wait_state(id, READY)
    await asyncio.sleep(SETTLED_SECONDS)
    pids, keeper = await yard.pids(ids)
    clusters, keeping = sum(memory(pid) for pid in pids), memory(keeper)
    ours = max(seconds for _, seconds in orders)
    rows: list[Sequence[Any]] = [
        ("by hand", max(took), plain / count / MB, ""),
        ("Boatyard", ours, (clusters + keeping) / count / MB, keeping / MB),
    ]
    head = ("", "s until all answer", "MB each", "MB keeper, for all")
    table(f"{count} at once", head, rows)
    report.found["many"] = {
        "count": count,
        "bare_seconds": max(took),
        "seconds": ours,
        "bare_bytes": plain,
        "bytes": clusters,
        "keeper_bytes": keeping,
    }
    report.promise(f"{count} orders over {count} bare starts", ours / max(took), AT_ONCE, "x")
    report.promise("memory over the bare processes", (clusters + keeping) / plain, MEMORY, "x")
    for id in ids:
        await yard.delete(id)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/local.py", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=10)
    options = parser.parse_args()
    if not Assets().versions():
        print("bench/local: no Kubernetes here; run: make assets")
        return 0
    report = Report("local")
    report.configure(kubernetes=Assets().versions()[-1], rounds=options.rounds)
    asyncio.run(measure(options, report))
    return report.end(judge=True)


if __name__ == "__main__":
    sys.exit(main())
