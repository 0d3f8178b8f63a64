"""Real nodes through the whole product: containers talk across nodes, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from boatyard.platforms.drivers.local import real
from tests.support.assets import needs_assets
from tests.support.local_cluster import control_groups
from tests.support.local_yard import LocalYard, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
      containers:
      - name: web
        image: localhost/busybox:1
        command: [sh, -c, "echo started; hostname > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"]
"""


@pytest.fixture
def yard(home: Path) -> Iterator[LocalYard]:
    if lacking := real.missing():
        pytest.skip(f"real nodes cannot be had here: {'; '.join(lacking)}")
    yard = LocalYard(home, needs_assets(), real_nodes=True)
    yard.start()
    try:
        yield yard
    finally:
        yard.typed("delete", "cluster", "web", code=None)
        yard.close()


def pods(yard: LocalYard) -> list[tuple[str, str, str]]:
    """Name, node and address of each that is ready."""
    form = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.podIP}{'\\n'}{end}"
    lines = yard.kubectl("web", "get", "pods", "-l", "app=web", "-o", form).splitlines()
    return [(name, node, address) for name, node, address in map(str.split, lines)]


def namespaces(slug: str) -> list[str]:
    return [name for name in os.listdir("/run/netns") if slug in name]


def test_pods_talk_across_real_nodes_and_everything_goes(yard: LocalYard) -> None:
    yard.create("web", "-p", "nodes=real")
    yard.fetch("web")
    slug = yard.record("web")["slug"]
    assert yard.nodes("web") == {"compute-0": True, "compute-1": True}
    yard.kubectl("web", "apply", "-f", "-", given=WEB)
    yard.kubectl("web", "rollout", "status", "deployment/web", "--timeout=90s")

    root = ("run", "root", "--image=localhost/busybox:1", "--privileged")
    assert 'violates PodSecurity "baseline:latest"' in yard.kubectl("web", *root, code=1)

    first, node, _ = pods(yard)[0]
    other = next(pod for pod in pods(yard) if pod[1] != node)
    ask = (
        "exec",
        first,
        "--",
        "timeout",
        "5",
        "wget",
        "-qO-",
        f"http://{other[2]}:8080/index.html",
    )
    assert yard.kubectl("web", *ask).strip() == other[0]
    assert "started" in yard.kubectl("web", "logs", first)

    keeper = next(pid for pid, words in yard.processes() if "local.server" in words)
    os.kill(keeper, signal.SIGKILL)
    assert yard.kubectl("web", *ask).strip() == other[0], "the cluster goes on without its keeper"

    yard.typed("scale", "cluster", "web", "compute=1")
    assert list(yard.nodes("web").values()) == [True]
    until(lambda: len(pods(yard)) == 4, "the drained pods run on the node that stays")

    assert namespaces(slug)
    assert "nothing left" in yard.typed("delete", "cluster", "web")
    assert namespaces(slug) == []
    assert yard.record("web") == {}
    mounts = subprocess.run(["findmnt", "-l"], capture_output=True, text=True, check=False).stdout
    assert str(yard.home) not in mounts
    assert slug not in mounts
    assert control_groups(yard.data / "local", slug) == []


def test_real_nodes_are_refused_until_an_operator_switches_them_on(yard: LocalYard) -> None:
    words = ("create", "cluster", "web", "--tenant", "acme", "--template", "kubernetes_small")
    keeper = yard.keeper()
    yard.kill()  # its keeper lives on, with the switch as it was
    yard.real_nodes = False
    yard.start()
    assert yard.keeper() != keeper
    told = yard.typed(*words, "-p", "nodes=real", code=2)
    assert "spec.template_parameters.nodes: real nodes are switched off here" in told
    assert "boatyard up --real-nodes" in told
    assert "web" not in yard.typed("get", "clusters")


def test_nodes_of_an_unknown_kind_are_refused(yard: LocalYard) -> None:
    words = ("create", "cluster", "web", "--tenant", "acme", "--template", "kubernetes_small")
    told = yard.typed(*words, "-p", "nodes=wooden", code=2)
    assert "spec.template_parameters.nodes: 'wooden' is not one of the choices" in told
