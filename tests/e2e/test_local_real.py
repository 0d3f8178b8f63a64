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
from tests.support.real_clusters.local_cluster import control_groups
from tests.support.real_clusters.up_command import UpEnvironment, until

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
def environment(home: Path) -> Iterator[UpEnvironment]:
    if lacking := real.list_missing():
        pytest.skip(f"real nodes cannot be had here: {'; '.join(lacking)}")
    environment = UpEnvironment(home, needs_assets(), real_nodes=True)
    environment.start()
    try:
        yield environment
    finally:
        environment.typed("delete", "cluster", "web", code=None)
        environment.close()


def pods(environment: UpEnvironment) -> list[tuple[str, str, str]]:
    """Name, node and address of each that is ready."""
    form = "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.podIP}{'\\n'}{end}"
    lines = environment.kubectl("web", "get", "pods", "-l", "app=web", "-o", form).splitlines()
    return [(name, node, address) for name, node, address in map(str.split, lines)]


def namespaces(slug: str) -> list[str]:
    return [name for name in os.listdir("/run/netns") if slug in name]


def test_pods_talk_across_real_nodes_and_everything_goes(environment: UpEnvironment) -> None:
    environment.create("web", "-p", "nodes=real")
    environment.fetch("web")
    slug = environment.record("web")["slug"]
    assert environment.nodes("web") == {"compute-0": True, "compute-1": True}
    environment.kubectl("web", "apply", "-f", "-", given=WEB)
    environment.kubectl("web", "rollout", "status", "deployment/web", "--timeout=90s")

    root = ("run", "root", "--image=localhost/busybox:1", "--privileged")
    assert 'violates PodSecurity "baseline:latest"' in environment.kubectl("web", *root, code=1)

    first, node, _ = pods(environment)[0]
    other = next(pod for pod in pods(environment) if pod[1] != node)
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
    assert environment.kubectl("web", *ask).strip() == other[0]
    assert "started" in environment.kubectl("web", "logs", first)

    keeper = next(pid for pid, words in environment.processes() if "local.server" in words)
    os.kill(keeper, signal.SIGKILL)
    assert environment.kubectl("web", *ask).strip() == other[0], (
        "the cluster goes on without its keeper"
    )

    environment.typed("scale", "cluster", "web", "compute=1")
    assert list(environment.nodes("web").values()) == [True]
    until(lambda: len(pods(environment)) == 4, "the drained pods run on the node that stays")

    assert namespaces(slug)
    assert "nothing left" in environment.typed("delete", "cluster", "web")
    assert namespaces(slug) == []
    assert environment.record("web") == {}
    mounts = subprocess.run(["findmnt", "-l"], capture_output=True, text=True, check=False).stdout
    assert str(environment.home) not in mounts
    assert slug not in mounts
    assert control_groups(environment.data / "local", slug) == []


def test_real_nodes_are_refused_until_an_operator_switches_them_on(
    environment: UpEnvironment,
) -> None:
    words = ("create", "cluster", "web", "--tenant", "acme", "--template", "kubernetes_small")
    keeper = environment.keeper()
    environment.kill()  # its keeper lives on, with the switch as it was
    environment.real_nodes = False
    environment.start()
    assert environment.keeper() != keeper
    told = environment.typed(*words, "-p", "nodes=real", code=2)
    assert "spec.template_parameters.nodes: real nodes are switched off here" in told
    assert "boatyard up --real-nodes" in told
    assert "web" not in environment.typed("get", "clusters")


def test_nodes_of_an_unknown_kind_are_refused(environment: UpEnvironment) -> None:
    words = ("create", "cluster", "web", "--tenant", "acme", "--template", "kubernetes_small")
    told = environment.typed(*words, "-p", "nodes=wooden", code=2)
    assert "spec.template_parameters.nodes: 'wooden' is not one of the choices" in told
