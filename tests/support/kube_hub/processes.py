"""A provider's site with real processes: `boatyard up`, a Kubernetes hub, its operator, and HyperShift as it is played.

Only commands are typed and only kubectl looks: what is shown here, people can do.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from boatyard.twin.layout import demo_layout
from tests.support.control_plane import ControlPlane
from tests.support.distributed import ANY_PORT, INSTANT
from tests.support.kube_hub.fake_hypershift import (
    FakeHyperShiftProcess,
    Kubectl,
    eventually,
    hypershift_hub,
)
from tests.support.kube_hub.hypershift_manifests import agent, namespace
from tests.support.processes import BOATYARD, Program, planted, run

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
SYSTEM = "boatyard-system"
HOSTS = "hosts"
HUB = "lyon-2"
PULL_SECRET = '{"auths": {"registry.example": {"auth": "dGVzdDp0ZXN0"}}}'
# Of `boatyard up`'s simulated data centre, which this hub's hosts stand in.
BEHIND = "lyon-1"
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "Agent": {"hosted.platform": "Agent", "hosted.agent-namespace": HOSTS},
    "KubeVirt": {
        "hosted.platform": "KubeVirt",
        "hosted.vm.default": "cores=2,memory=8Gi,disk=32Gi",
    },
}
# What a hub must have for it besides HyperShift, by its name only: what is in it is HyperShift's business.
BESIDE = {
    "KubeVirt": [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "virtualmachines.kubevirt.io"},
            "spec": {
                "group": "kubevirt.io",
                "scope": "Namespaced",
                "names": {
                    "plural": "virtualmachines",
                    "singular": "virtualmachine",
                    "kind": "VirtualMachine",
                    "listKind": "VirtualMachineList",
                },
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                ],
            },
        }
    ]
}
AS_FOUND = {"size": "small"}  # the labels of an Agent that is nobody's
# What an order has on the hub, besides its tenant's namespace.
ITS_THINGS = (
    *("clusterorders.osac.openshift.io", "claims.boatyard.io", "leftovers.boatyard.io"),
    *("hostedclusters", "nodepools", "machines.cluster.x-k8s.io"),
)


class KubeHubProcesses:
    """One hub. Programs are started by the test, and ended with it."""

    def __init__(self, home: Path, plane: ControlPlane, player: FakeHyperShiftProcess) -> None:
        self.home = home
        self.data = home / "data"
        self.plane = plane
        self.player = player
        self.kubectl = Kubectl(plane)
        self.operators: list[Program] = []
        self.plant = ""  # "module:function", called first in every operator
        self.pull_secret = home / "pull-secret.json"
        self.pull_secret.write_text(PULL_SECRET)

    # --- typed ----------------------------------------------------------------------------------

    def type(self, *words: str, code: int = 0, seconds: float = 120) -> str:
        try:
            done = run(*words, home=self.home, seconds=seconds)
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode()
            raise AssertionError(f"{' '.join(words)} does not end:\n{said}{self.logs()}") from None
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{' '.join(words)}: {done.returncode}\n{said}{self.logs()}"
        return said

    def register(self, platform: str = "Agent", **settings: str) -> None:
        """The road of docs/guide/hubs.md, up to a hub that takes orders; no other does."""
        for name in ("service", "operator", "hosted"):
            self.kubectl.run("apply", "-f", str(DEPLOY / "rbac" / f"{name}.yaml"))
        self.kubectl.apply(namespace(HOSTS), *BESIDE.get(platform, ()))
        kubeconfig = self.home / "hub.kubeconfig"
        kubeconfig.write_text(json.dumps(self.kubeconfig("boatyard-service")))
        told = {**SETTINGS[platform], "twin.hub": BEHIND, **settings}
        words = ["create", "hub", HUB, "--kubeconfig", str(kubeconfig), "--no-wait"]
        words += [
            "--driver",
            "platform=hosted",
            "--driver",
            "checks=hosted",
            "--capacity",
            "bm-small=12",
        ]
        words += [word for name in told for word in ("--setting", f"{name}={told[name]}")]
        self.type(*words)
        for other in ("boston-1", "lyon-1"):
            self.type("cordon", "hub", other)
        self.type("hub", "prepare", HUB, code=1)  # nobody works there yet
        self.start_operator()
        eventually(
            lambda: " READY" in self.type("get", "hubs", HUB),
            why=lambda: self.type("hub", "check", HUB, code=1) + self.logs(),
        )

    def unregister(self) -> None:
        """Takes the hub away and ends its operators, so that it can be registered as another."""
        self.type("delete", "hub", HUB)
        for operator in self.operators:
            assert operator.end(signal.SIGTERM) == 0, self.logs()

    def add_agents(self) -> None:
        """What every small server reports itself as, once it has been booted for discovery."""
        hosts = demo_layout().hubs[BEHIND].host_names()
        names = [name for name, host_type, _ in hosts if host_type == "bm-small"]
        self.kubectl.apply(*(agent(name, namespace=HOSTS, approved=False) for name in names))

    def start_operator(self) -> Program:
        """One more, under the shipped rights."""
        home = self.home / f"operator-{len(self.operators)}"
        home.mkdir()
        kubeconfig = home / "kubeconfig"
        kubeconfig.write_text(json.dumps(self.kubeconfig("boatyard-operator")))
        words = ("--kubeconfig", str(kubeconfig), "--probes", "127.0.0.1:0")
        program = Program(
            *("operator", *words, "--data", str(self.data)),
            home=home,
            environ={"PYTHONPATH": str(ROOT)},
            command=planted(self.plant) if self.plant else BOATYARD,
        )
        self.operators.append(program)
        assert program.ready().startswith("boatyard: operator")
        return program

    def kubeconfig(self, account: str) -> dict[str, Any]:
        words = ("create", "token", account, "-n", SYSTEM, "--duration", "1h")
        token = self.kubectl.run(*words).stdout.strip()
        return self.plane.kubeconfig_for({"token": token})

    # --- seen -----------------------------------------------------------------------------------

    def left(self) -> dict[str, list[str]]:
        """What of orders is on the hub now."""
        found = {
            kind: [
                f"{one['metadata']['namespace']}/{one['metadata']['name']}"
                for one in self.kubectl.list(kind)
            ]
            for kind in ITS_THINGS
        }
        names = [one["metadata"]["name"] for one in self.kubectl.list("namespaces")]
        found["namespaces of clusters"] = [name for name in names if "-order-" in name]
        found["secrets of orders"] = [
            one["metadata"]["name"]
            for one in self.kubectl.list("secrets")
            if one["metadata"]["name"].startswith("order-")
        ]
        found["agents in use"] = [
            one["metadata"]["name"]
            for one in self.kubectl.list("agents", HOSTS)
            if one["spec"].get("clusterDeploymentName") or one["metadata"]["labels"] != AS_FOUND
        ]
        return {kind: names for kind, names in found.items() if names}

    def lead(self) -> tuple[Program | None, dict[str, int]]:
        """The operator that the Lease names, when it lives; and what that is at, with how often it was tried."""
        lease = self.kubectl.get("lease", "boatyard-operator", SYSTEM) or {"metadata": {}}
        holder = (lease.get("spec") or {}).get("holderIdentity") or "__"
        said = (lease["metadata"].get("annotations") or {}).get("boatyard.io/at") or "{}"
        living = [one for one in self.operators if one.process.poll() is None]
        found = next((one for one in living if str(one.pid) == holder.split("_")[-2]), None)
        return found, json.loads(said)

    def shared_agents(self) -> dict[str, list[str]]:
        """Hosts that are several orders' at once, with the names of these."""
        words = "agents,machines.cluster.x-k8s.io,nodepools"
        return {
            host: sorted(orders)
            for host, orders in users_of_agents(self.kubectl.list(words)).items()
            if len(orders) > 1
        }

    def logs(self) -> str:
        logs = [self.home / "up.log", *(one.log for one in self.operators), self.player.log]
        return "\n".join(
            f"--- {log.name}\n{log.read_text()[-3000:]}" for log in logs if log.exists()
        )


def users_of_agents(things: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Host → names of the orders whose it is, by what Agents, Machines and NodePools say themselves."""
    found: dict[str, set[str]] = {}
    for one in things:
        about, spec = one["metadata"], one.get("spec") or {}
        match one["kind"]:
            case "Agent":
                bound = _order_of((spec.get("clusterDeploymentName") or {}).get("namespace", ""))
                marked = (about.get("labels") or {}).get("osac.openshift.io/clusterorder")
                pairs = [(about["name"], bound), (about["name"], marked)]
            case "Machine":
                host = str(spec.get("providerID") or "").rpartition("/")[2]
                pairs = [(host, _order_of(about["namespace"]))]
            case _:
                nodes = [
                    json.loads(value)
                    for name, value in (about.get("annotations") or {}).items()
                    if name.startswith("node.boatyard.io/")
                ]
                pairs = [(node["host"], _order_of(about["namespace"])) for node in nodes]
        for host, order in pairs:
            if host and order:
                found.setdefault(host, set()).add(order)
    return found


def _order_of(namespace: str) -> str:
    """Of a namespace of a cluster, or of its control plane: both end with the order's name."""
    _, found, name = namespace.rpartition("-order-")
    return f"order-{name}" if found else ""


@contextmanager
def kube_hub_processes(home: Path, *player_words: str) -> Iterator[KubeHubProcesses]:
    with ExitStack() as stack:
        plane = stack.enter_context(hypershift_hub())
        player = FakeHyperShiftProcess(
            Kubectl(plane).kubeconfig, *(player_words or ("--pace", "instant"))
        )
        player.start()
        stack.callback(player.end)
        hub_processes = KubeHubProcesses(home, plane, player)
        words = ("up", "--data", str(hub_processes.data), *ANY_PORT)
        up = stack.enter_context(Program(*words, home=home, environ=INSTANT))
        assert up.ready().startswith("boatyard: ready")
        try:
            yield hub_processes
            for operator in hub_processes.operators:
                if operator.process.poll() is None:
                    assert operator.end(signal.SIGTERM) == 0, hub_processes.logs()
            assert up.end(signal.SIGTERM) == 0
        finally:
            for operator in hub_processes.operators:
                operator.__exit__()
