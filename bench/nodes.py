"""A thousand simulated nodes in one cluster: how soon they are Ready, and what their agent costs at rest.

Beside it, in a control plane of its own, kwok: `--kwok PATH` names the program, `--kwok build` has Go build it from
its module once. Without it the numbers seen in our lab stand in its place, and are named as such.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from processes import cpu_of, machine_busy, memory
from report import Report, table

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import DEPLOYMENTS, NODES
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import fleet_layout, write_layout

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from tests.support.control_plane import ControlPlane, control_plane  # noqa: E402 - needs the path

MB = 1024 * 1024
HUB = "hub-1"
KWOK = "sigs.k8s.io/kwok"
KWOK_VERSION = "v0.8.0"
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/*.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
SETTLE_SECONDS = 15.0
LONGEST_SECONDS = 300.0
WRITES = ("PUT", "PATCH", "APPLY")
QUICK = ("--kube-api-qps=400", "--kube-api-burst=800")


@dataclass
class Seen:
    """What one way of playing nodes took."""

    who: str
    nodes: int
    ready: float  # seconds until all are Ready
    rollout: float  # seconds until a Deployment of 30 is available
    rss: float  # MB
    pss: float
    cores: dict[str, float]  # at rest, by process
    strangers: float = 0.0
    beats: float = 0.0  # heartbeats a second, counted by the API server
    up: dict[str, float] = field(
        default_factory=dict
    )  # CPU seconds until all are Ready, by process

    @property
    def agent(self) -> float:
        """Cores of the agent were every node to beat in time: on a starved machine fewer do."""
        return self.cores["agent"] * (self.nodes / 10) / max(self.beats, 0.1)


# Section "Simulated nodes" of our lab: 1,000 nodes, kwok 0.8.0, a quiet machine of the same kind.
LAB = Seen(
    who="kwok 0.8.0 (seen in the lab)",
    nodes=1000,
    ready=18.2,
    rollout=0.41,
    rss=88.0,
    pss=88.0,
    cores={"agent": 0.107, "api": 0.33, "etcd": 0.10, "manager": 0.05},
    beats=100.0,
)


class Ground:
    """A control plane with a client, on which one way of playing nodes is measured."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.kubeconfig = plane.folder / "admin.kubeconfig"
        self.kubeconfig.write_text(json.dumps(plane.kubeconfig()))
        self.client = KubeClient(read_kubeconfig(plane.kubeconfig()), timeout=60)

    def pids(self, agent: int) -> dict[str, list[int]]:
        return {
            "agent": [agent],
            "api": [self.plane.pid("kube-apiserver")],
            "etcd": [self.plane.pid("etcd")],
            "manager": [self.plane.pid("kube-controller-manager")],
        }

    def spent(self, agent: int = 0, before: Mapping[str, float] | None = None) -> dict[str, float]:
        """Seconds of CPU each process has used, or used since."""
        found = cpu_of(self.pids(agent))
        return {name: seconds - (before or {}).get(name, 0.0) for name, seconds in found.items()}

    async def until_ready(self, who: str, count: int) -> None:
        """Returns when so many nodes say Ready; the cluster is asked, not the agent."""
        end = time.monotonic() + LONGEST_SECONDS
        while True:
            ready = sum(_is_ready(node) for node in (await self.client.list(NODES)).items)
            if ready >= count:
                return
            if time.monotonic() > end:
                raise SystemExit(f"{who}: only {ready} of {count} nodes are Ready")
            await asyncio.sleep(1.0)

    async def roll_out(self) -> float:
        pod = {"containers": [{"name": "web", "image": "web:1"}]}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": 30, "selector": selector, "template": template}
        began = time.monotonic()
        await self.client.create(
            DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "default"
        )
        while True:
            found = await self.client.get(DEPLOYMENTS, "web", "default")
            if (found.get("status") or {}).get("availableReplicas") == 30:
                return time.monotonic() - began
            if time.monotonic() - began > LONGEST_SECONDS:
                raise SystemExit("the Deployment never became available")
            await asyncio.sleep(0.02)

    async def rest(self, who: str, nodes: int, ready: float, pid: int, seconds: float) -> Seen:
        """Measures the quiet after all is done."""
        rollout = await self.roll_out()
        await asyncio.sleep(SETTLE_SECONDS)
        groups = self.pids(pid)
        beats = await self.beats()
        before, busy = cpu_of(groups), machine_busy()
        began = time.monotonic()
        await asyncio.sleep(seconds)
        took = time.monotonic() - began
        after = cpu_of(groups)
        cores = {name: (after[name] - before[name]) / took for name in groups}
        strangers = (machine_busy() - busy) / took - sum(cores.values())
        return Seen(
            *(who, nodes, ready, rollout, _rss(pid), memory(pid) / MB, cores),
            strangers=max(strangers, 0.0),
            beats=(await self.beats() - beats) / took,
        )

    async def beats(self) -> float:
        """How many leases have been written, as the API server counts."""
        lines = (await self.client.get_text("/metrics")).splitlines()
        written = [line for line in lines if line.startswith("apiserver_request_total{")]
        return sum(
            float(line.rpartition(" ")[2])
            for line in written
            if 'resource="leases"' in line and any(f'verb="{verb}"' in line for verb in WRITES)
        )


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _rss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def ground() -> Iterator[Ground]:
    with control_plane() as plane:
        plane.start_controller_manager(*QUICK)
        plane.start_scheduler(*QUICK)
        yield Ground(plane)


async def ours(nodes: int, seconds: float) -> Seen:
    with ground() as on, ExitStack() as stack:
        socket = on.plane.folder / "twin.sock"
        await _start_twin(stack, on.plane.folder, socket, nodes)
        hosts = await _take_hosts(socket, nodes)
        config = [str(on.kubeconfig), str(socket), HUB, on.plane.version]
        began, before = time.monotonic(), on.spent()
        agent = _start(
            stack, [sys.executable, str(Path(__file__).with_name("node_agent.py")), *config]
        )
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(" ".join(hosts).encode())
        agent.stdin.close()
        said = await asyncio.to_thread(agent.stdout.readline)
        if said != b"ready\n":
            raise SystemExit(f"the agent said {said!r}")
        ready = time.monotonic() - began
        await on.until_ready("ours", nodes)
        up = on.spent(agent.pid, before)
        seen = await on.rest("ours", nodes, ready, agent.pid, seconds)
        seen.up = up
        await on.client.close()
        return seen


async def _start_twin(stack: ExitStack, folder: Path, socket: Path, nodes: int) -> None:
    layout = folder / "layout.json"
    layout.write_bytes(write_layout(fleet_layout(hubs=1, hosts={"bm-small": nodes})))
    state = ["--state", str(folder / "twin"), "--socket", str(socket), "--layout", str(layout)]
    twin = _start(stack, [sys.executable, "-m", "boatyard.twin", *state, "--delays", "instant"])
    assert twin.stdout is not None
    await asyncio.to_thread(twin.stdout.readline)


async def _take_hosts(socket: Path, nodes: int) -> list[str]:
    twin = TwinClient(socket)
    await twin.call("l2.ensure_network", hub=HUB, key="o/l2", vlan=100)
    free = await twin.call("inventory.list_free", hub=HUB, host_type="bm-small", limit=nodes)
    hosts = [row["name"] for row in free]
    for host in hosts:
        held = {"hub": HUB, "host": host}
        await twin.call("inventory.ensure_held", key=f"o/host/{host}", **held)
        await twin.call("l2.ensure_port", key=f"o/port/{host}", network_key="o/l2", **held)
    await twin.close()
    return hosts


async def kwok(program: Path, stages: Path, nodes: int, seconds: float) -> Seen:
    with ground() as on, ExitStack() as stack:
        began, before = time.monotonic(), on.spent()
        flags = [f"--kubeconfig={on.kubeconfig}", f"--config={stages}", "--manage-all-nodes"]
        flags += ["--node-lease-duration-seconds=40"]
        process = _start(stack, [str(program), *flags], log=on.plane.folder / "kwok.log")
        limit = asyncio.Semaphore(16)

        async def create(number: int) -> None:
            quantity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
            body = {
                "metadata": {"name": f"compute-{number}", "labels": {"type": "kwok"}},
                "status": {"capacity": quantity, "allocatable": quantity},
            }
            async with limit:
                await on.client.create(NODES, body)

        await asyncio.gather(*(create(number) for number in range(nodes)))
        who = f"kwok {KWOK_VERSION}"
        await on.until_ready(who, nodes)
        ready = time.monotonic() - began
        up = on.spent(process.pid, before)
        seen = await on.rest(who, nodes, ready, process.pid, seconds)
        seen.up = up
        await on.client.close()
        return seen


def _start(
    stack: ExitStack, command: list[str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """A process that ends with the measurement; what it says is read by us, or kept in a file."""
    out = subprocess.PIPE if log is None else stack.enter_context(log.open("wb"))
    error = None if log is None else out
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=error)
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def find_kwok(asked: str, folder: Path) -> tuple[Path, Path]:
    """The program, and a file with the stages it needs, which only its module has."""
    go = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(ROOT / "build" / "bench")}
    if asked == "build":
        program = Path(go["GOBIN"]) / "kwok"
        if not program.exists():
            print("building kwok: some minutes, once", flush=True)
            install = ["go", "install", "-trimpath", f"{KWOK}/cmd/kwok@{KWOK_VERSION}"]
            subprocess.run(install, check=True, env=go)
    else:
        program = Path(asked)
    download = ["go", "mod", "download", "-json", f"{KWOK}@{KWOK_VERSION}"]
    answer = subprocess.run(download, check=True, capture_output=True, cwd=folder)
    module = Path(json.loads(answer.stdout)["Dir"]) / "kustomize" / "stage"
    parts = [path.read_text() for pattern in STAGES for path in sorted(module.glob(pattern))]
    stages = folder / "stages.yaml"
    stages.write_text("\n---\n".join(parts))
    return program, stages


def show(report: Report, rows: list[Seen]) -> None:
    report.found = {one.who: asdict(one) for one in rows}
    table(
        f"{rows[0].nodes} nodes",
        (
            "",
            "Ready s",
            "30 pods s",
            "RSS MB",
            "PSS MB",
            "agent",
            "api",
            "etcd",
            "manager",
            "others",
            "beats/s",
        ),
        [
            (
                *(one.who, one.ready, one.rollout, one.rss, one.pss),
                *(one.cores[name] for name in ("agent", "api", "etcd", "manager")),
                one.strangers,
                one.beats,
            )
            for one in rows
        ],
    )
    for one in rows:
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in one.up.items())
        print(f"  CPU seconds until all were Ready, {one.who}: {spent or 'not known'}")
    print("  agent … manager: cores used at rest; others: by strangers on this machine meanwhile")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of rest that are measured")
    parser.add_argument("--kwok", default="", help="path of the program, or `build`")
    parser.add_argument("--no-judge", action="store_true", help="measures, never fails")
    options = parser.parse_args()
    report = Report("nodes")
    report.configure(nodes=options.nodes, rest=f"{options.seconds:g} s")
    rows = [asyncio.run(ours(options.nodes, options.seconds))]
    show(report, rows)
    if options.kwok:
        with tempfile.TemporaryDirectory() as folder:
            program, stages = find_kwok(options.kwok, Path(folder))
            rows.append(asyncio.run(kwok(program, stages, options.nodes, options.seconds)))
    else:
        rows.append(LAB)
    show(report, rows)
    mine, peer = rows
    report.promise("agent's memory, against kwok's", mine.rss, peer.rss, "MB")
    share = mine.nodes / peer.nodes
    report.promise("agent's CPU at rest, against kwok's", mine.agent, peer.agent * share, "cores")
    report.promise("all Ready", mine.ready, 20.0, "s")
    return report.end(judge=not options.no_judge)


if __name__ == "__main__":
    sys.exit(main())
