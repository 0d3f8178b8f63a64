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
from tests.support.local_cluster import NEW, OLD, control_groups, marks, yard_mark
from tests.support.local_yard import LocalYard, until
from tests.support.soak import soak

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MANY = soak(short=3, long=10)


@pytest.fixture(scope="module")
def yard() -> Iterator[LocalYard]:
    assets = needs_assets(OLD, NEW)
    home = Path(tempfile.mkdtemp(prefix="by-"))
    yard = LocalYard(home, assets)
    try:
        yard.start()
        yield yard
    finally:
        yard.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def web(yard: LocalYard) -> str:
    """A cluster with two nodes and a Deployment, for several tests; each leaves it ready."""
    said = yard.create("web-1", "--version", OLD)
    assert said.splitlines()[-2:] == ["web-1: ready", "Next: boatyard kubeconfig web-1"]
    yard.fetch("web-1")
    assert yard.nodes("web-1") == {"compute-0": True, "compute-1": True}
    yard.kubectl("web-1", "create", "deployment", "hello", "--image=hello", "--replicas=6")
    rolled_out(yard, "web-1")
    yard.kubectl("web-1", "create", "secret", "generic", "kept", "--from-literal=a=b")
    return "web-1"


def rolled_out(yard: LocalYard, name: str) -> None:
    said = yard.kubectl(name, "rollout", "status", "deployment/hello", "--timeout=90s")
    assert "successfully rolled out" in said


def identity(yard: LocalYard, name: str) -> str:
    """Of objects that must survive: the same ones, not others of the same name."""
    path = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{'\\n'}{end}"
    words = ("get", "deployment/hello", "secret/kept", "namespace/default")
    said = yard.kubectl(name, *words, "-o", f"jsonpath={path.replace(chr(39), chr(34))}")
    value = yard.kubectl(name, "get", "secret", "kept", "-o", "jsonpath={.data.a}")
    return f"{said} {value}"


# --- one cluster's life ----------------------------------------------------------------------


def test_scaling_up_and_down_drains_as_the_budgets_allow(yard: LocalYard, web: str) -> None:
    yard.typed("scale", "cluster", web, "compute=4")
    assert yard.nodes(web) == {f"compute-{number}": True for number in range(4)}
    yard.kubectl(web, "rollout", "restart", "deployment/hello")
    rolled_out(yard, web)
    budget = ("pdb", "hello", "--selector=app=hello", "--min-available=6")
    yard.kubectl(web, "create", *budget)

    yard.typed("scale", "cluster", web, "compute=1", "--no-wait")
    until(lambda: "SchedulingDisabled" in yard.kubectl(web, "get", "nodes"), "one is cordoned")
    path = "jsonpath={.items[*].spec.nodeName}"
    pods = ("get", "pods", "-l", "app=hello", "--field-selector=status.phase=Running", "-o", path)
    assert len(yard.kubectl(web, *pods).split()) == 6
    assert len(set(yard.kubectl(web, *pods).split())) > 1, "nobody was moved against the budget"
    yard.kubectl(web, "patch", "pdb", "hello", "-p", '{"spec": {"minAvailable": 4}}')

    path_of_number = 'jsonpath={.status.availableReplicas}{"\\n"}'
    with yard.watching(web, "deployment", "hello", "-o", path_of_number) as lines:
        yard.typed("wait", "cluster", web, "--for", "ready")
        seen = [int(line) for line in lines.rest()]
    assert seen
    assert min(seen) >= 4
    assert yard.nodes(web) == {"compute-0": True}
    assert set(yard.kubectl(web, *pods).split()) == {"compute-0"}
    yard.kubectl(web, "delete", "pdb", "hello")
    yard.typed("scale", "cluster", web, "compute=2")


def test_what_was_wiped_out_is_restored_from_a_backup(
    yard: LocalYard, web: str, tmp_path: Path
) -> None:
    before = identity(yard, web)
    yard.typed("backup", "cluster", web, "--name", "before", "--folder", str(tmp_path))
    assert list(tmp_path.glob("boatyard-*/snapshot.db"))
    yard.kubectl(web, "delete", "secret", "kept")
    shutil.rmtree(yard.directory(web) / "run" / "var")
    for pid in yard.running(web).values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: yard.running(web) == {}, "nothing runs")
    yard.typed("restore", "cluster", web, "--backup", "before", "--yes")
    assert identity(yard, web) == before
    rolled_out(yard, web)
    yard.typed("delete", "backup", "before")
    assert list(tmp_path.iterdir()) == []


def test_a_deployment_of_a_tenant_uses_what_kubernetes_has(yard: LocalYard, web: str) -> None:
    yard.kubectl(web, "apply", "--server-side", "-f", "-", given=DEFINITIONS)
    yard.kubectl(web, "wait", "--for=condition=Established", "crd/boats.example.com")
    with yard.watching(web, "boats", "--output-watch-events", "--no-headers") as lines:
        yard.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(3))
        assert lines.next().split()[:2] == ["ADDED", "ada"]
        yard.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(4))
        assert lines.next().split()[:2] == ["MODIFIED", "ada"]
    refused = yard.kubectl(web, "apply", "--server-side", "-f", "-", given=boat(-1), code=1)
    assert "spec.length" in refused, "the schema is held"
    conflict = yard.kubectl(
        *(web, "apply", "--server-side", "--field-manager=other", "-f", "-"), given=boat(5), code=1
    )
    assert "conflict" in conflict

    def policy_holds() -> bool:
        return "no boat is that long" in yard.kubectl(
            web, "apply", "--server-side", "-f", "-", given=boat(500), code=None
        )

    until(policy_holds, "the admission policy is in force")
    for verb, may in (("get", "yes"), ("delete", "no")):
        words = ("auth", "can-i", verb, "boats.example.com", "--as", "bob", "-n", "default")
        assert yard.kubectl(web, *words, code=None).split()[0] == may


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


def test_boatyard_is_killed_in_every_state_and_loses_nothing(yard: LocalYard) -> None:
    name = "killed"
    yard.create(name, "--version", OLD, "--no-wait")
    until(lambda: bool(yard.running(name)), "its first process runs")
    again(yard)
    yard.typed("wait", "cluster", name)
    yard.fetch(name)
    yard.kubectl(name, "create", "deployment", "hello", "--image=hello", "--replicas=2")
    yard.kubectl(name, "create", "secret", "generic", "kept", "--from-literal=a=b")
    rolled_out(yard, name)
    before = identity(yard, name)

    processes = yard.running(name)
    yard.kill()
    assert identity(yard, name) == before, "it answers without Boatyard"
    assert all(yard.nodes(name).values())
    yard.start()
    yard.typed("wait", "cluster", name)
    assert yard.running(name) == processes, "ready: nobody was started or ended"

    yard.typed("scale", "cluster", name, "compute=4", "--no-wait")
    again(yard)
    yard.typed("wait", "cluster", name)
    assert yard.nodes(name) == {f"compute-{number}": True for number in range(4)}

    yard.typed("upgrade", "cluster", name, "--to", NEW, "--no-wait")
    until(lambda: yard.record(name)["upgrading"] == NEW, "it moves to the new version")
    again(yard)
    until(lambda: yard.record(name)["version"] == NEW, "it has moved")
    yard.typed("wait", "cluster", name)
    assert identity(yard, name) == before

    yard.typed("hibernate", "cluster", name)
    again(yard)
    yard.typed("wait", "cluster", name, "--for", "hibernated")
    yard.typed("resume", "cluster", name)
    assert identity(yard, name) == before

    keeper = yard.keeper()
    yard.kill()
    for pid in (keeper, *yard.running(name).values()):
        os.kill(pid, signal.SIGKILL)
    yard.start()
    yard.typed("wait", "cluster", name)
    yard.until_whole(name)
    assert identity(yard, name) == before, "everything was killed, as by a power cut"

    record = yard.record(name)
    yard.typed("delete", "cluster", name, "--no-wait")
    again(yard)
    said = yard.typed("wait", "cluster", name, "--for", "deleted")
    assert "nothing left" in said
    assert_gone(yard, record["slug"], record["user"], list(record["ports"].values()))


def again(yard: LocalYard) -> None:
    yard.kill()
    yard.start()


# --- many ------------------------------------------------------------------------------------


def test_many_clusters_at_once(yard: LocalYard) -> None:
    names = [f"many-{number}" for number in range(MANY)]
    for name in names:
        yard.create(name, "--no-wait", "--node-set", "compute=1")
    for name in names:
        yard.typed("wait", "cluster", name)
    records = [yard.record(name) for name in names]
    ports = [port for record in records for port in record["ports"].values()]
    assert len(set(ports)) == MANY
    assert len({record["user"] for record in records}) in (1, MANY)
    for name in names:
        yard.fetch(name)
        assert yard.nodes(name) == {"compute-0": True}
        yard.until_whole(name)
    for name in names:
        yard.typed("delete", "cluster", name, "--no-wait")
    for name in names:
        assert "nothing left" in yard.typed("wait", "cluster", name, "--for", "deleted")
    for record in records:
        assert_gone(yard, record["slug"], record["user"], list(record["ports"].values()))


def test_three_members_behind_a_balancer(yard: LocalYard) -> None:
    name = "highly"
    yard.create(name, template="kubernetes_ha")
    yard.fetch(name)
    yard.until_whole(name)
    assert len(yard.nodes(name)) == 3
    yard.kubectl(name, "create", "deployment", "hello", "--image=hello", "--replicas=3")
    victims = yard.running(name)
    for component in ("kube-apiserver-0", "etcd-1"):
        os.kill(victims[component], signal.SIGKILL)
    rolled_out(yard, name)
    until(lambda: yard.is_whole(name), "all members are there again")
    record = yard.record(name)
    assert len(record["ports"]) == 7
    yard.typed("delete", "cluster", name)
    assert_gone(yard, record["slug"], record["user"], list(record["ports"].values()))


# --- the end ---------------------------------------------------------------------------------


def test_at_the_end_nothing_is_left(yard: LocalYard, web: str) -> None:
    """An orderly end stops what runs; what is deleted is gone for good."""
    before, record = identity(yard, web), yard.record(web)
    yard.stop()
    assert list(yard.processes()) == []
    assert not any(f":{port} " in listening() for port in record["ports"].values())
    yard.start()
    yard.typed("wait", "cluster", web)
    until(lambda: "ok" in yard.kubectl(web, "get", "--raw", "/readyz", code=None), "it answers")
    assert identity(yard, web) == before
    yard.typed("delete", "cluster", web)
    assert_gone(yard, record["slug"], record["user"], list(record["ports"].values()))
    yard.stop()
    assert list(yard.processes()) == []
    assert os.listdir(yard.data / "local" / "clusters") == []


def assert_gone(yard: LocalYard, slug: str, user: int | None, ports: list[int]) -> None:
    """As `ps`, `ss` and `find` see it."""
    yards = yard_mark(yard.data / "local")
    assert not [mark for _, mark in marks() if mark.startswith(f"{yards}/{slug}")]
    assert not any(f":{port} " in listening() for port in ports)
    assert not list(yard.data.rglob(f"*{slug}*"))
    assert control_groups(yard.data / "local", slug) == []
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
