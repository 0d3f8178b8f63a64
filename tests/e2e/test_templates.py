"""Roles dropped into a folder and ordered from a live `boatyard up`: in a real cluster, and some that behave badly."""

from __future__ import annotations

import json
import os
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

from tests.support.assets import needs_assets
from tests.support.automation import processes_with
from tests.support.control_plane import free_port
from tests.support.local_cluster import NEW
from tests.support.local_yard import LocalYard, until
from tests.support.roles import files, write

pytestmark = [pytest.mark.real, pytest.mark.timeout(500)]

JINJA = "{{ lookup('pipe','id') }}"
SECONDS = 60  # a part of a role may run so long here
MARKER = f"8423.{os.getpid()}"  # of a sleep that is only ours
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


class Yard(LocalYard):
    """With a folder of roles, and a short time for each."""

    def __init__(self, home: Path, assets: Any) -> None:
        super().__init__(home, assets)
        self._environ |= {"BOATYARD_ROLE_MINUTES": str(SECONDS / 60)}

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
        until(lambda: name in self.typed("template", "list"), f"{name} is offered", seconds=30)

    def order(self, name: str, template: str, *words: str) -> None:
        self.create(name, "--no-wait", *words, template=template)

    def facts(self, name: str) -> dict[str, str]:
        orders = json.loads(self.typed("get", "orders", "-o", "json"))
        (found,) = [one for one in orders if one["spec"]["cluster_name"] == name]
        facts: dict[str, str] = found["status"]["facts"]
        return facts

    def told(self, name: str, words: str, seconds: float = 120) -> str:
        """What is said of the cluster, once these words are in it."""
        said = ""

        def holds() -> bool:
            nonlocal said
            said = self.typed("explain", "cluster", name)
            return words in said

        try:
            until(holds, words, seconds=seconds)
        except AssertionError:
            raise AssertionError(f"{words!r} is not in:\n{said}\n{self.logs()}") from None
        return said


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    assets = needs_assets(NEW)
    if os.geteuid() != 0:
        pytest.skip("bounds of runs hold for root")
    home = Path(tempfile.mkdtemp(prefix="by-"))
    made = Yard(home, assets)
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


def test_what_a_tenant_wrote_is_in_the_cluster_though_boatyard_was_killed(yard: Yard) -> None:
    port = free_port()
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "note", "namespace": "default"},
        "data": {"note": "{{ note }}"},
    }
    apply = {"boatyard.service.apply": {"manifests": [manifest]}}
    began = time.monotonic()
    yard.drop(
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

    yard.order("web", "noter", "-p", f"note={JINJA}")
    yard.told("web", "Wait for the word")
    yard.fetch("web")
    before = note(yard)
    yard.kill()
    assert note(yard) == before
    yard.start()
    with socket.create_server(("127.0.0.1", port)):
        yard.typed("wait", "cluster", "web")

    after = note(yard)
    assert after["data"] == {"note": JINJA}
    assert after["metadata"] == before["metadata"], "it was written once"
    assert yard.facts("web")["role.again"] == "false"
    assert "nothing left" in yard.typed("delete", "cluster", "web")


def note(yard: Yard) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        yard.kubectl("web", "get", "configmap", "note", "-o", "json")
    )
    return found


@pytest.mark.parametrize(
    "name, tasks, words",
    [
        pytest.param(
            "forker",
            [task("fork", shell="for n in $(seq 400); do sleep 300 & done; echo all of them")],
            "fork",
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
    yard: Yard, name: str, tasks: list[dict[str, Any]], words: str
) -> None:
    runs = yard.data / "automation" / "runs"
    assert any(runs.glob("*/*")), "there is something to be read"
    text = json.dumps(tasks).replace("RUNS", str(runs))
    yard.drop(name, json.loads(text), **{"filter_plugins/shout.py": PLUGIN})
    yard.drop("calm", [task("say", debug={"msg": "hello"})])

    yard.order(f"{name}-1", name)
    yard.order(f"beside-{name}", "calm")
    said = yard.told(f"{name}-1", words)

    assert "post_install" in said
    yard.typed("wait", "cluster", f"beside-{name}")
    stories = (yard.data / "automation").rglob("*")
    assert sum(path.stat().st_size for path in stories if path.is_file()) < 16 * 2**20
    for one in (f"{name}-1", f"beside-{name}"):
        assert "nothing left" in yard.typed("delete", "cluster", one)


def test_one_that_is_deleted_while_it_runs_leaves_nothing(yard: Yard) -> None:
    yard.drop("stubborn", [task("resist", shell=f"trap '' TERM; sleep 1{MARKER}; sleep 1{MARKER}")])
    yard.order("stubborn-1", "stubborn")
    until(lambda: bool(processes_with("sleep", f"1{MARKER}")), "it runs")

    assert "nothing left" in yard.typed("delete", "cluster", "stubborn-1")

    assert processes_with("sleep", f"1{MARKER}") == {}


def test_one_that_sleeps_for_ever_is_ended_in_time(yard: Yard) -> None:
    said = yard.told("sleeping", f"longer than {SECONDS}", seconds=SECONDS + 120)

    assert "post_install" in said
    assert processes_with("sleep", MARKER) == {}
    assert "nothing left" in yard.typed("delete", "cluster", "sleeping")
    runs = yard.data / "automation" / "runs"
    assert list(runs.iterdir()) == []
    assert yard.up is not None
    assert yard.up.end(signal.SIGTERM) == 0
