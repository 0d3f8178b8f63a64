"""Roles dropped into a folder and ordered from a live `boatyard up`: in a real cluster, and some that behave badly."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.client.client import Client
from boatyard.client.kinds import CLUSTER, TEMPLATE
from tests.support.assets import needs_assets
from tests.support.control_plane import free_port
from tests.support.real_clusters.local_cluster import NEW
from tests.support.real_clusters.up_command import UpEnvironment, until
from tests.support.role_runs import processes_with
from tests.support.roles import files, write

pytestmark = [pytest.mark.real, pytest.mark.timeout(500)]

JINJA = "{{ lookup('pipe','id') }}"
SECONDS = 60  # a part of a role may run so long here
MARKER = f"8423.{os.getpid()}"  # of a sleep that is only ours
BLUE = ("-p", "team=blue", "-p", "pods=20", "-p", f'settings={{"motd": "{JINJA}"}}')
NODES = "node_sets: {compute: {host_type: bm-small, size: 1}}\n"
REAL = NODES + f'platform: local\nversions: {{from: "1.30", default: "{NEW}"}}\n'
PLUGIN = """
import os

def shout(text):
    for _ in range(10_000):
        os.write(1, (b"x" * 99 + b"\\n") * 1000)
    return text

class FilterModule:
    def filters(self):
        return {"shout": shout}
"""


class TemplatesEnvironment(UpEnvironment):
    """With a folder of roles, and a short time for each."""

    def __init__(self, home: Path, assets: Any) -> None:
        super().__init__(home, assets)
        ansible = AnsibleEnvironment()
        ansible.ensure(lambda _: None)
        self._environ |= {
            "BOATYARD_ROLE_MINUTES": str(SECONDS / 60),
            "BOATYARD_ANSIBLE": str(ansible.directory),
        }
        self._token = ""

    def asked(self, *words: str) -> str:
        """What a member of a tenant is answered, with a token of their own."""
        if not self._token:
            who = ("--tenant", "acme", "--user", "ann", "--role", "member")
            self._token = self.typed("token", "create", *who, "--data", str(self.data)).strip()
        return self.typed(*words, token=self._token)

    def drop(self, name: str, tasks: Any, *, template: str = NODES, **texts: str) -> None:
        """A role into the watched folder; returns once it is offered."""
        specs = "argument_specs: {main: {options: {note: {type: str, default: none}}}}"
        made = {
            "meta/template.yaml": template,
            "meta/argument_specs.yml": specs,
            "tasks/post_install.yaml": yaml.safe_dump(tasks),
            **texts,
        }
        write(self.data / "roles" / name, files(made))

        async def offers(client: Client) -> bool:
            rows = (await client.list(TEMPLATE)).rows
            return any(name in (row.id, row.document.metadata.name) for row in rows)

        until(lambda: self.ask(offers), f"{name} is offered", seconds=30)
        assert name in self.typed("template", "list")

    def order(self, name: str, template: str, *words: str) -> None:
        self.asked("create", "cluster", name, "--no-wait", "--template", template, *words)

    def fetch_mine(self, name: str) -> None:
        self.fetch(name, self._token)

    def delete(self, name: str) -> None:
        """Until nothing is left."""
        assert "nothing left" in self.asked("delete", "cluster", name)

    def state(self, name: str) -> str:
        found: str = json.loads(self.asked("get", "cluster", name, "-o", "json"))["status"]["state"]
        return found

    def facts(self, name: str) -> dict[str, str]:
        orders = json.loads(self.typed("get", "orders", "-o", "json"))
        (found,) = [one for one in orders if one["spec"]["cluster_name"] == name]
        facts: dict[str, str] = found["status"]["facts"]
        return facts

    def told(self, name: str, words: str, seconds: float = 300) -> str:
        """What is said of the cluster, once such words are in it. The command is typed when there is something new."""
        said, news = "", ""

        async def explain(client: Client) -> str:
            cluster = await client.find_one(CLUSTER, name)
            return str((await client.explain(cluster.id))[1])

        def holds() -> bool:
            nonlocal said, news
            before, news = news, self.ask(explain, self._token)
            if news != before:
                said = self.asked("explain", "cluster", name)
            return re.search(words, said) is not None

        try:
            until(holds, words, seconds=seconds)
        except AssertionError:
            raise AssertionError(f"{words!r} is not in:\n{said}\n{self.logs()}") from None
        return said


@pytest.fixture(scope="module")
def up_environment() -> Iterator[TemplatesEnvironment]:
    assets = needs_assets(NEW)
    if os.geteuid() != 0:
        pytest.skip("bounds of runs hold for root")
    home = Path(tempfile.mkdtemp(prefix="by-"))
    made = TemplatesEnvironment(home, assets)
    try:
        made.start()
        # Ordered first: their time runs while the others are looked at.
        made.drop("sleeper", [task("sleep", shell=f"sleep {MARKER}")])
        made.order("sleeping", "sleeper")
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


def task(name: str, **action: Any) -> dict[str, Any]:
    ((module, arguments),) = action.items()
    return {"name": name, f"ansible.builtin.{module}": arguments}


def test_what_a_tenant_wrote_is_in_the_cluster_though_boatyard_was_killed(
    up_environment: TemplatesEnvironment,
) -> None:
    port = free_port()
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "note", "namespace": "default"},
        "data": {"note": "{{ note }}"},
    }
    apply = {"boatyard.service.apply": {"manifests": [manifest]}}
    began = time.monotonic()
    up_environment.drop(
        "noter",
        [
            {"name": "Write the note", **apply},
            task("Wait for the word", wait_for={"port": port, "timeout": SECONDS}),
            {"name": "Write it again", **apply, "register": "said"},
            {"name": "Report", "boatyard.service.facts": {"again": "{{ said.changed }}"}},
        ],
        template=REAL,
    )
    assert time.monotonic() - began < 30

    up_environment.order("web", "noter", "-p", f"note={JINJA}")
    up_environment.told("web", "Wait for the word")
    up_environment.fetch_mine("web")
    before = note(up_environment)
    up_environment.kill()
    assert note(up_environment) == before
    up_environment.start()
    with socket.create_server(("127.0.0.1", port)):
        up_environment.asked("wait", "cluster", "web")

    after = note(up_environment)
    assert after["data"] == {"note": JINJA}
    assert after["metadata"] == before["metadata"], "it was written once"
    assert up_environment.facts("web")["role.again"] == "false"
    up_environment.delete("web")


def note(up_environment: TemplatesEnvironment) -> dict[str, Any]:
    return seen(up_environment, "web", "configmap", "note")


def seen(up_environment: TemplatesEnvironment, cluster: str, *words: str) -> dict[str, Any]:
    """As the real kubectl gets it with the tenant's kubeconfig."""
    found: dict[str, Any] = json.loads(up_environment.kubectl(cluster, "get", *words, "-o", "json"))
    return found


def test_the_space_for_a_team_that_comes_along_is_in_its_cluster(
    up_environment: TemplatesEnvironment,
) -> None:
    up_environment.order("blue", "team_space", *BLUE)
    up_environment.asked("wait", "cluster", "blue")
    up_environment.fetch_mine("blue")

    quota = seen(up_environment, "blue", "-n", "blue", "resourcequota", "space")
    assert quota["spec"]["hard"] == {"pods": "20", "requests.cpu": "8", "requests.memory": "16Gi"}
    settings = seen(up_environment, "blue", "-n", "blue", "configmap", "settings")
    assert settings["data"] == {"motd": JINJA}
    told = seen(up_environment, "blue", "-n", "blue", "configmap", "order")["data"]
    assert (told["cluster"], told["template"]) == ("blue", "team_space")
    assert json.loads(told["parameters"])["pods"] == 20
    assert up_environment.facts("blue")["role.namespace"] == "blue"
    up_environment.delete("blue")


@pytest.mark.parametrize(
    "name, tasks, words",
    [
        pytest.param(
            "forker",
            [
                task(
                    "many",
                    shell=f"for n in $(seq 400); do sleep 2{MARKER} & done; echo all of them",
                )
            ],
            "[Cc]annot fork|Resource temporarily unavailable",
            id="forks without end",
        ),
        pytest.param(
            "loud",
            [task("{{ 'x' | shout }}", debug={"msg": "done"})],
            "printed more than",
            id="prints a gigabyte",
        ),
        pytest.param(
            "spy",
            [task("look", shell="cat RUNS/*/* RUNS/../warm.log && ls -R RUNS")],
            "No such file or directory",
            id="reads the directory of another order",
        ),
    ],
)
def test_a_role_that_behaves_badly_hurts_itself_alone(
    up_environment: TemplatesEnvironment, name: str, tasks: list[dict[str, Any]], words: str
) -> None:
    runs = up_environment.data / "automation" / "runs"
    assert any(runs.glob("*/*")), "there is something to be read"
    text = json.dumps(tasks).replace("RUNS", str(runs))
    up_environment.drop(name, json.loads(text), **{"filter_plugins/shout.py": PLUGIN})
    up_environment.drop("calm", [task("say", debug={"msg": "hello"})])

    up_environment.order(f"{name}-1", name)
    up_environment.order(f"beside-{name}", "calm")
    said = up_environment.told(f"{name}-1", words)

    assert "post_install" in said
    assert up_environment.state(f"{name}-1") == "CLUSTER_STATE_FAILED"
    assert processes_with("sleep", f"2{MARKER}") == {}
    up_environment.asked("wait", "cluster", f"beside-{name}")
    stories = (up_environment.data / "automation").rglob("*")
    assert sum(path.stat().st_size for path in stories if path.is_file()) < 16 * 2**20
    for one in (f"{name}-1", f"beside-{name}"):
        up_environment.delete(one)


def test_one_that_is_deleted_while_it_runs_leaves_nothing(
    up_environment: TemplatesEnvironment,
) -> None:
    up_environment.drop(
        "stubborn", [task("resist", shell=f"trap '' TERM; sleep 1{MARKER}; sleep 1{MARKER}")]
    )
    up_environment.order("stubborn-1", "stubborn")
    until(lambda: bool(processes_with("sleep", f"1{MARKER}")), "it runs")

    up_environment.delete("stubborn-1")

    assert processes_with("sleep", f"1{MARKER}") == {}


def test_one_that_sleeps_for_ever_is_ended_in_time(up_environment: TemplatesEnvironment) -> None:
    said = up_environment.told("sleeping", f"longer than {SECONDS}", seconds=SECONDS + 120)

    assert "post_install" in said
    assert processes_with("sleep", MARKER) == {}
    up_environment.delete("sleeping")
    runs = up_environment.data / "automation" / "runs"
    assert list(runs.iterdir()) == []
    assert up_environment.up is not None
    assert up_environment.up.end(signal.SIGTERM) == 0
