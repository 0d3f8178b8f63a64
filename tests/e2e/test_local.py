"""Real clusters on this machine, as people have them: `boatyard up`, words typed at it, and the real kubectl."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.assets import needs_assets
from tests.support.real_clusters.local_cluster import (
    NEW,
    OLD,
    control_groups,
    directory_mark,
    marks,
)
from tests.support.real_clusters.up_command import UpEnvironment, until
from tests.support.soak import soak

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MANY = soak(short=3, long=10)


@pytest.fixture(scope="module")
def environment() -> Iterator[UpEnvironment]:
    assets = needs_assets(OLD, NEW)
    home = Path(tempfile.mkdtemp(prefix="by-"))
    environment = UpEnvironment(home, assets)
    try:
        environment.start()
        yield environment
    finally:
        environment.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def web(environment: UpEnvironment) -> str:
    """A cluster with two nodes and a Deployment, for several tests; each leaves it ready."""
    said = environment.create("web-1", "--version", OLD)
    assert said.splitlines()[-2:] == ["web-1: ready", "Next: boatyard kubeconfig web-1"]
    environment.fetch("web-1")
    assert environment.nodes("web-1") == {"compute-0": True, "compute-1": True}
    environment.kubectl("web-1", "create", "deployment", "hello", "--image=hello", "--replicas=6")
    rolled_out(environment, "web-1")
    environment.kubectl("web-1", "create", "secret", "generic", "kept", "--from-literal=a=b")
    return "web-1"


def rolled_out(environment: UpEnvironment, name: str) -> None:
    said = environment.kubectl(name, "rollout", "status", "deployment/hello", "--timeout=90s")
    assert "successfully rolled out" in said


def identity(environment: UpEnvironment, name: str) -> str:
    """Of objects that must survive: the same ones, not others of the same name."""
    path = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{'\\n'}{end}"
    words = ("get", "deployment/hello", "secret/kept", "namespace/default")
    said = environment.kubectl(name, *words, "-o", f"jsonpath={path.replace(chr(39), chr(34))}")
    value = environment.kubectl(name, "get", "secret", "kept", "-o", "jsonpath={.data.a}")
    return f"{said} {value}"


# --- one cluster's life ----------------------------------------------------------------------


def test_scaling_up_and_down_drains_as_the_budgets_allow(
    environment: UpEnvironment, web: str
) -> None:
    environment.typed("scale", "cluster", web, "compute=4")
    assert environment.nodes(web) == {f"compute-{number}": True for number in range(4)}
    environment.kubectl(web, "rollout", "restart", "deployment/hello")
    rolled_out(environment, web)
    budget = ("pdb", "hello", "--selector=app=hello", "--min-available=6")
    environment.kubectl(web, "create", *budget)

    environment.typed("scale", "cluster", web, "compute=1", "--no-wait")
    until(
        lambda: "SchedulingDisabled" in environment.kubectl(web, "get", "nodes"), "one is cordoned"
    )
    path = "jsonpath={.items[*].spec.nodeName}"
    pods = ("get", "pods", "-l", "app=hello", "--field-selector=status.phase=Running", "-o", path)
    assert len(environment.kubectl(web, *pods).split()) == 6
    assert len(set(environment.kubectl(web, *pods).split())) > 1, (
        "nobody was moved against the budget"
    )
    environment.kubectl(web, "patch", "pdb", "hello", "-p", '{"spec": {"minAvailable": 4}}')

    path_of_number = 'jsonpath={.status.availableReplicas}{"\\n"}'
    with environment.watching(web, "deployment", "hello", "-o", path_of_number) as lines:
        environment.typed("wait", "cluster", web, "--for", "ready")
        seen = [int(line) for line in lines.rest()]
    assert seen
    assert min(seen) >= 4
    assert environment.nodes(web) == {"compute-0": True}
    assert set(environment.kubectl(web, *pods).split()) == {"compute-0"}
    environment.kubectl(web, "delete", "pdb", "hello")
    environment.typed("scale", "cluster", web, "compute=2")


def test_what_was_wiped_out_is_restored_from_a_backup(
    environment: UpEnvironment, web: str, tmp_path: Path
) -> None:
    before = identity(environment, web)
    environment.typed("backup", "cluster", web, "--name", "before", "--folder", str(tmp_path))
    assert list(tmp_path.glob("boatyard-*/snapshot.db"))
    environment.kubectl(web, "delete", "secret", "kept")
    shutil.rmtree(environment.directory(web) / "run" / "var")
    for pid in environment.running(web).values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: environment.running(web) == {}, "nothing runs")
    environment.typed("restore", "cluster", web, "--backup", "before", "--yes")
    assert identity(environment, web) == before
    rolled_out(environment, web)
    environment.typed("delete", "backup", "before")
    assert list(tmp_path.iterdir()) == []


def test_a_deployment_of_a_tenant_uses_what_kubernetes_has(
    environment: UpEnvironment, web: str
) -> None:
    environment.kubectl(web, "apply", "--server-side", "-f", "-", given=DEFINITIONS)
    environment.kubectl(web, "wait", "--for=condition=Established", "crd/boats.example.com")
    with environment.watching(web, "boats", "--output-watch-events", "--no-headers") as lines:
        environment.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(3))
        assert lines.next().split()[:2] == ["ADDED", "ada"]
        environment.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(4))
        assert lines.next().split()[:2] == ["MODIFIED", "ada"]
    refused = environment.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(-1), code=1)
    assert "spec.length" in refused, "the schema is held"
    conflict = environment.kubectl(
        *(web, "apply", "--server-side", "--field-manager=other", "-f", "-"), given=boat(5), code=1
    )
    assert "conflict" in conflict

    def policy_holds() -> bool:
        return "no boat is that long" in environment.kubectl(
            web, "apply", "--server-side", "-f", "-", given=boat(500), code=None
        )

    until(policy_holds, "the admission policy is in force")
    for verb, may in (("get", "yes"), ("delete", "no")):
        words = ("auth", "can-i", verb, "boats.example.com", "--as", "bob", "-n", "default")
        assert environment.kubectl(web, *words, code=None).split()[0] == may


def boat(length: int) -> str:
    return f"""
apiVersion: example.com/v1
kind: Boat
metadata: {{name: ada}}
spec: {{length: {length}}}
"""


DEFINITIONS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {length: {type: integer, minimum: 0}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sailors, namespace: default}
rules: [{apiGroups: [example.com], resources: [boats], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sailors, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sailors}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: boats}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [example.com]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [boats]
  validations: [{expression: object.spec.length < 100, message: no boat is that long}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: boats}
spec: {policyName: boats, validationActions: [Deny]}
"""


# --- kill -9 of Boatyard ---------------------------------------------------------------------


def test_boatyard_is_killed_in_every_state_and_loses_nothing(environment: UpEnvironment) -> None:
    name = "killed"
    environment.create(name, "--version", OLD, "--no-wait")
    until(lambda: bool(environment.running(name)), "its first process runs")
    again(environment)
    environment.typed("wait", "cluster", name)
    environment.fetch(name)
    environment.kubectl(name, "create", "deployment", "hello", "--image=hello", "--replicas=2")
    environment.kubectl(name, "create", "secret", "generic", "kept", "--from-literal=a=b")
    rolled_out(environment, name)
    before = identity(environment, name)

    processes = environment.running(name)
    environment.kill()
    assert identity(environment, name) == before, "it answers without Boatyard"
    assert all(environment.nodes(name).values())
    environment.start()
    environment.typed("wait", "cluster", name)
    assert environment.running(name) == processes, "ready: nobody was started or ended"

    environment.typed("scale", "cluster", name, "compute=4", "--no-wait")
    again(environment)
    environment.typed("wait", "cluster", name)
    assert environment.nodes(name) == {f"compute-{number}": True for number in range(4)}

    environment.typed("upgrade", "cluster", name, "--to", NEW, "--no-wait")
    until(lambda: environment.record(name)["upgrading"] == NEW, "it moves to the new version")
    again(environment)
    until(lambda: environment.record(name)["version"] == NEW, "it has moved")
    environment.typed("wait", "cluster", name)
    assert identity(environment, name) == before

    environment.typed("hibernate", "cluster", name)
    again(environment)
    environment.typed("wait", "cluster", name, "--for", "hibernated")
    environment.typed("resume", "cluster", name)
    assert identity(environment, name) == before

    keeper = environment.keeper()
    environment.kill()
    for pid in (keeper, *environment.running(name).values()):
        os.kill(pid, signal.SIGKILL)
    environment.start()
    environment.typed("wait", "cluster", name)
    environment.until_whole(name)
    assert identity(environment, name) == before, "everything was killed, as by a power cut"

    record = environment.record(name)
    environment.typed("delete", "cluster", name, "--no-wait")
    again(environment)
    said = environment.typed("wait", "cluster", name, "--for", "deleted")
    assert "nothing left" in said
    assert_gone(environment, record["slug"], record["user"], list(record["ports"].values()))


def again(environment: UpEnvironment) -> None:
    environment.kill()
    environment.start()


# --- many ------------------------------------------------------------------------------------


def test_many_clusters_at_once(environment: UpEnvironment) -> None:
    names = [f"many-{number}" for number in range(MANY)]
    for name in names:
        environment.create(name, "--no-wait", "--node-set", "compute=1")
    for name in names:
        environment.typed("wait", "cluster", name)
    records = [environment.record(name) for name in names]
    ports = [port for record in records for port in record["ports"].values()]
    assert len(set(ports)) == MANY
    assert len({record["user"] for record in records}) in (1, MANY)
    for name in names:
        environment.fetch(name)
        assert environment.nodes(name) == {"compute-0": True}
        environment.until_whole(name)
    for name in names:
        environment.typed("delete", "cluster", name, "--no-wait")
    for name in names:
        assert "nothing left" in environment.typed("wait", "cluster", name, "--for", "deleted")
    for record in records:
        assert_gone(environment, record["slug"], record["user"], list(record["ports"].values()))


def test_three_members_behind_a_balancer(environment: UpEnvironment) -> None:
    name = "highly"
    environment.create(name, template="kubernetes_ha")
    environment.fetch(name)
    environment.until_whole(name)
    assert len(environment.nodes(name)) == 3
    environment.kubectl(name, "create", "deployment", "hello", "--image=hello", "--replicas=3")
    victims = environment.running(name)
    for component in ("kube-apiserver-0", "etcd-1"):
        os.kill(victims[component], signal.SIGKILL)
    rolled_out(environment, name)
    until(lambda: environment.is_whole(name), "all members are there again")
    record = environment.record(name)
    assert len(record["ports"]) == 7
    environment.typed("delete", "cluster", name)
    assert_gone(environment, record["slug"], record["user"], list(record["ports"].values()))


# --- the end ---------------------------------------------------------------------------------


def test_at_the_end_nothing_is_left(environment: UpEnvironment, web: str) -> None:
    """An orderly end stops what runs; what is deleted is gone for good."""
    before, record = identity(environment, web), environment.record(web)
    environment.stop()
    assert list(environment.processes()) == []
    assert not any(f":{port} " in listening() for port in record["ports"].values())
    environment.start()
    environment.typed("wait", "cluster", web)
    until(
        lambda: "ok" in environment.kubectl(web, "get", "--raw", "/readyz", code=None), "it answers"
    )
    assert identity(environment, web) == before
    environment.typed("delete", "cluster", web)
    assert_gone(environment, record["slug"], record["user"], list(record["ports"].values()))
    environment.stop()
    assert list(environment.processes()) == []
    assert os.listdir(environment.data / "local" / "clusters") == []


def assert_gone(environment: UpEnvironment, slug: str, user: int | None, ports: list[int]) -> None:
    """As `ps`, `ss` and `find` see it."""
    environments = directory_mark(environment.data / "local")
    assert not [mark for _, mark in marks() if mark.startswith(f"{environments}/{slug}")]
    assert not any(f":{port} " in listening() for port in ports)
    assert not list(environment.data.rglob(f"*{slug}*"))
    assert control_groups(environment.data / "local", slug) == []
    if user is not None:
        assert not [entry for entry in Path("/proc").glob("[0-9]*") if owner(entry) == user]
        words = ["find", tempfile.gettempdir(), "/dev/shm", "-xdev", "-uid", str(user)]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        assert found.stdout == ""


def owner(entry: Path) -> int:
    try:
        return entry.stat().st_uid
    except OSError:
        return -1


def listening() -> str:
    return subprocess.run(["ss", "-Htln"], capture_output=True, text=True, check=True).stdout
