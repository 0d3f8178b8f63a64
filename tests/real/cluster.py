"""A cluster with real nodes, put together by hand: control plane in its segment, the balancer before it, nodes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boatyard.platforms.drivers.local import balancer, real
from boatyard.processes.marked_processes import ProcessSpec, find_processes, start_process
from tests.support.control_plane import ControlPlane

GATEWAY = "10.77.0.1"
API_PORT = 6443
SECONDS = 60.0
SERVE = "mkdir /www; hostname > /www/index.html; echo serving; exec httpd -f -p 8080 -h /www"


class SegmentControlPlane(ControlPlane):
    """Lives in the segment's network namespace; reached from outside through the balancer."""

    def __init__(self, programs: Path, netns: str) -> None:
        self._netns = netns
        super().__init__(programs)
        names = ["127.0.0.1", GATEWAY, "10.96.0.1", "kubernetes.default.svc"]
        self._keep("api", *self.ca.issue("kube-apiserver", names=names))
        self._keep("kubelet-client", *self.ca.issue("api", groups=["system:masters"]))
        self.add_api_flags(
            f"--bind-address={GATEWAY}",
            f"--advertise-address={GATEWAY}",
            f"--secure-port={API_PORT}",
            "--endpoint-reconciler-type=lease",
            "--allow-privileged=true",
            "--enable-admission-plugins=NodeRestriction",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={self.folder}/ca.crt",
            f"--kubelet-client-certificate={self.folder}/kubelet-client.crt",
            f"--kubelet-client-key={self.folder}/kubelet-client.key",
        )

    def kubeconfig_inside(self, user: str, groups: Sequence[str] = ()) -> str:
        """For those who live in the segment."""
        config = self.kubeconfig(user, groups)
        config["clusters"][0]["cluster"]["server"] = f"https://{GATEWAY}:{API_PORT}"
        return json.dumps(config)

    def _keep(self, name: str, certificate: bytes, key: bytes) -> None:
        (self.folder / f"{name}.crt").write_bytes(certificate)
        (self.folder / f"{name}.key").write_bytes(key)

    def _component(self, user: str) -> Path:
        path = self.folder / f"{user.rpartition(':')[2]}.kubeconfig"
        path.write_text(self.kubeconfig_inside(user))
        return path

    def _command(self, program: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self._netns}", str(self.programs / program)]


class NamespacedCluster:
    """Two nodes unless told otherwise. `close` is what the product would do; `kill` is a power cut."""

    def __init__(self, programs: Path, slug: str) -> None:
        self.slug = slug
        self.mark = f"test-real/{slug}"
        self.programs = programs
        self.plane = SegmentControlPlane(programs, real.segment_name(slug))
        self.folder = Path(tempfile.mkdtemp(prefix="real-"))
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.nodes: dict[str, real.RealNode] = {}
        self.seconds: dict[str, float] = {}
        self._balancer: subprocess.Popen[bytes] | None = None

    def start(self, count: int = 2) -> None:
        asyncio.run(real.prepare_segment(self.slug, f"{GATEWAY}/24"))
        self._start_balancer()
        self.plane.start()
        self.plane.start_controller_manager()
        self.plane.start_scheduler()
        self.kubeconfig.write_text(json.dumps(self.plane.kubeconfig()))
        for number in range(1, count + 1):
            self.start_node(number)
        for name in self.nodes:
            self.wait_node_ready(name)

    def node(self, number: int) -> real.RealNode:
        name = f"n{number}"
        address = f"10.77.0.{10 + number}"
        certificate, key = self.plane.ca.issue(f"system:node:{name}", names=[address, name])
        return real.RealNode(
            slug=self.slug,
            name=name,
            number=number,
            address=f"{address}/24",
            pod_cidr=f"10.130.{number}.0/24",
            directory=self.folder / name,
            kubelet=self.programs / "kubelet",
            kubeconfig=self.plane.kubeconfig_inside(f"system:node:{name}", ["system:nodes"]),
            ca=self.plane.ca.pem,
            serving_cert=certificate,
            serving_key=key,
            labels={"boatyard.example/number": str(number)},
            kube_proxy=self.programs / "kube-proxy",
            proxy_kubeconfig=self.plane.kubeconfig_inside("system:kube-proxy"),
        )

    def start_node(self, number: int) -> None:
        node = self.nodes[f"n{number}"] = self.node(number)
        began = time.monotonic()
        asyncio.run(real.prepare_node(node))
        self._took("prepare", began)
        for component in real.list_programs(node):
            self.start_component(node, component.name)

    def start_component(self, node: real.RealNode, name: str) -> None:
        component = next(c for c in real.list_programs(node) if c.name == name)
        began = time.monotonic()
        start_process(
            ProcessSpec(
                mark=f"{self.mark}/{node.name}/{name}",
                argv=component.argv,
                executable=component.executable,
                directory=node.directory,
                log=self.folder / f"{node.name}-{name}.log",
                netns=component.netns,
                environ=component.environ,
            )
        ).close()
        wait(f"{name} of {node.name}", lambda: asyncio.run(ready(component)), self.logs)
        self._took(name, began)
        if name == "containerd":
            began = time.monotonic()
            asyncio.run(real.import_images(node))
            self._took("images", began)

    def kill_component(self, node: str, name: str) -> int:
        """SIGKILL for exactly that one; the number it had."""
        found = find_processes(f"{self.mark}/{node}/{name}")
        assert [len(group) for group in found.values()] == [1], found
        for group in found.values():
            for process in group:
                process.signal(signal.SIGKILL)
                wait(f"the end of {name}", lambda p=process: not p.is_alive)
                process.close()
        return process.pid

    def kill(self) -> None:
        """Everything that carries our mark, at once; control plane and balancer too."""
        for group in find_processes(self.mark).values():
            for process in group:
                process.signal(signal.SIGKILL)
                process.close()
        for program in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if program in self.plane._running:
                self.plane.stop(program)
        if self._balancer is not None:
            self._balancer.kill()
            self._balancer.wait(timeout=10)

    def clean(self) -> None:
        """What the product does in the end, whatever is left of the cluster."""

        async def clean() -> None:
            for name in {*self.nodes, *await real.list_nodes(self.slug)}:
                await real.clean_node(self.slug, name, self.folder / name)
            await real.clean_segment(self.slug)

        began = time.monotonic()
        asyncio.run(clean())
        self._took("clean", began)

    def close(self) -> None:
        try:
            self.kill()
            self.clean()
        finally:
            self.plane.close()
        shutil.rmtree(self.folder)

    # --- asking ------------------------------------------------------------------------------

    def kubectl(self, *words: str, stdin: Any = None, check: bool = True) -> str:
        done = subprocess.run(
            [self.programs / "kubectl", f"--kubeconfig={self.kubeconfig}", *words],
            input=None if stdin is None else json.dumps(stdin),
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"kubectl {words}: {done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def deploy(self, name: str, replicas: int, **spec: Any) -> None:
        """Pods that tell their name over HTTP, spread over the nodes; rolled out when this returns."""
        labels = {"app": name}
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        container = {
            "name": "web",
            "image": "localhost/busybox:1",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", SERVE],
            "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1},
        }
        pod = {
            "terminationGracePeriodSeconds": 1,
            "topologySpreadConstraints": [spread],
            "containers": [container],
            **spec,
        }
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
        began = time.monotonic()
        self.kubectl("create", "-f", "-", stdin=deployment)
        self.wait_rolled_out(name)
        self._took(f"deployment of {replicas}", began)

    def wait_rolled_out(self, name: str) -> None:
        self.kubectl("rollout", "status", f"deployment/{name}", f"--timeout={SECONDS:g}s")

    def expose(self, name: str) -> str:
        """A service before the pods of a deployment; its address."""
        self.kubectl("expose", f"deployment/{name}", "--port=80", "--target-port=8080")
        address: str = self.get("service", name)["spec"]["clusterIP"]
        return address

    def pods(self, name: str) -> dict[str, list[Any]]:
        """The running pods of a deployment by node."""
        found: dict[str, list[Any]] = {}
        for pod in self.get("pods", "-l", f"app={name}")["items"]:
            if "deletionTimestamp" not in pod["metadata"]:
                found.setdefault(pod["spec"]["nodeName"], []).append(pod)
        return found

    def fetch(self, pod: Any, url: str) -> str:
        """What the pod is told there; empty when nobody answers."""
        # Not wget's own -T: with it, Debian's static busybox 1.35 falls over.
        words = ("timeout", "5", "wget", "-qO-", f"http://{url}/")
        said = self.kubectl("exec", pod["metadata"]["name"], "--", *words, check=False)
        return said.strip() if "command terminated" not in said else ""

    def wait_node_ready(self, name: str, ready: bool = True) -> None:
        def is_so() -> bool:
            found = self.kubectl("get", "node", name, "-o", "json", check=False)
            if not found.startswith("{"):
                return False
            conditions = json.loads(found)["status"].get("conditions", [])
            state = {c["type"]: c["status"] for c in conditions}.get("Ready")
            return (state == "True") is ready

        began = time.monotonic()
        wait(f"node {name} {'' if ready else 'not '}ready", is_so, self.logs)
        self._took("Ready", began)

    def logs(self) -> str:
        logs = [*self.folder.glob("*.log"), *self.plane.folder.glob("*.log")]
        return "\n".join(f"== {path.name}\n{path.read_text()[-800:]}" for path in sorted(logs))

    def _took(self, what: str, began: float) -> None:
        self.seconds[what] = time.monotonic() - began

    def _start_balancer(self) -> None:
        with (self.folder / "balancer.log").open("ab") as log:
            self._balancer = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", balancer.__file__),
                    *("--listen", f"127.0.0.1:{self.plane.port}"),
                    *("--upstream", f"{GATEWAY}:{API_PORT}"),
                    *("--netns", real.segment_name(self.slug)),
                ],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )


async def ready(component: real.NodeProgram) -> bool:
    return await component.is_ready()


def wait(what: str, is_so: Callable[[], bool], explain: Callable[[], str] = str) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, f"no {what} in {SECONDS:g} s\n{explain()}"
        time.sleep(0.05)
