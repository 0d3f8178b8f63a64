"""A role that decides, ordered from a live Boatyard: that one killed, the run killed, the order deleted meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from boatyard.automation.drivers.local import run_lock
from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.run_records import run_slug
from boatyard.twin.client import TwinClient
from tests.support.distributed import ANY_PORT, INSTANT, Distributed
from tests.support.processes import Program
from tests.support.role_runs import processes_with
from tests.support.roles import files as role_files
from tests.support.roles import write

pytestmark = pytest.mark.timeout(400)

PATIENCE = 90.0
PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "templates.md").read_text()
TEMPLATE = """
id: deciding
title: A role that decides
node_sets:
  compute: {host_type: bm-small, size: 2}
"""
# Asks for all of it, and stands still at the names while the name server is dead.
ROLE = """
- {name: Hosts, boatyard.service.hosts: {}, register: hosts}
- {name: Names, boatyard.service.names: {}, register: names}
- {name: Platform, boatyard.service.platform: {}, register: cluster}
- name: Report
  boatyard.service.facts:
    hosts: "{{ hosts.nodes | length }}"
    name: "{{ names.api_name }}"
    kubeconfig: "{{ cluster.kubeconfig is file }}"
"""
REPORTED = {"hosts": "2", "kubeconfig": "true"}

Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def ansible() -> dict[str, str]:
    made = AnsibleEnvironment()
    made.ensure(lambda _: None)
    return {"BOATYARD_ANSIBLE": str(made.directory)}


class RestartedUp:
    """One `boatyard up`, which may be killed and started anew at the same address."""

    def __init__(self, home: Path, environ: dict[str, str]) -> None:
        self.home = home
        self.data = home / "data"
        self.environ = {
            **INSTANT,
            **environ,
            "BOATYARD_POLL_SECONDS": "0.2",
            "BOATYARD_LEASE_SECONDS": "6",
        }
        self.doors = ANY_PORT
        self.up: Program | None = None
        self.rest = ""

    def start(self, *more: str) -> None:
        self.up = Program(
            "up", "--data", str(self.data), *self.doors, *more, home=self.home, environ=self.environ
        )
        line = self.up.ready()
        found = re.search(r"gRPC ([^ ,]+), REST (https?)://([^ ,]+)", line)
        assert found, line
        self.doors = ("--grpc", found[1], "--rest", found[3])
        self.rest = f"{found[2]}://{found[3]}"

    def kill(self) -> None:
        assert self.up is not None
        self.up.end(signal.SIGKILL)

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> httpx.Response:
        token = token or (self.data / "operator.token").read_text()
        verify: Any = False
        if self.rest.startswith("https"):
            verify = ssl.create_default_context(cafile=self.data / "tls.crt")
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(verify=verify, trust_env=False, timeout=20) as client:
            return client.request(method, self.rest + path, json=body, headers=headers)

    def order(self, id: str) -> Any:
        """Empty until it is handed over to its hub."""
        answer = self.call("GET", f"/api/boatyard/v1/orders/{id}")
        assert answer.status_code in (200, 404), answer.text
        return answer.json() if answer.status_code == 200 else {}

    def reported(self, id: str) -> dict[str, str]:
        """The facts that the role has reported, as its item keeps them."""
        (role,) = [item for item in self.order(id)["status"]["items"] if item["kind"] == "role"]
        return {name.removeprefix("role."): value for name, value in role["facts"].items()}

    def step(self, id: str, name: str) -> Any:
        steps = self.order(id).get("status", {}).get("steps", [])
        return next((step for step in steps if step["name"] == name), {})

    def state(self, id: str) -> str:
        answer = self.call("GET", f"/api/fulfillment/v1/clusters/{id}")
        return "gone" if answer.status_code == 404 else answer.json()["status"].get("state", "")

    def offer(self, tasks: str) -> None:
        made = {"meta/template.yaml": TEMPLATE, "tasks/install.yaml": tasks}
        write(self.data / "roles" / "deciding", role_files(made))
        path = "/api/fulfillment/v1/cluster_templates/deciding"
        until(lambda: self.call("GET", path).status_code, lambda code: code == 200)

    def create(self, name: str = "web") -> str:
        body = {
            "metadata": {"name": name, "tenant": "acme"},
            "spec": {"template": {"id": "deciding"}},
        }
        answer = self.call("POST", "/api/fulfillment/v1/clusters", body)
        assert answer.status_code == 200, answer.text
        id: str = answer.json()["id"]
        return id

    async def names_answer(self, good: bool) -> None:
        twin = TwinClient(self.data / "twin.sock")
        if good:
            await twin.call("twin.clear_faults")
        else:
            # Only this: a hub whose name server is dead altogether would be given no order.
            await twin.call("twin.set_fault", hub="*", service="dns.ensure_record", profile="dead")
        await twin.close()

    async def truth(self) -> Any:
        twin = TwinClient(self.data / "twin.sock")
        found = await twin.call("twin.truth")
        await twin.close()
        return found

    def run_place(self, id: str) -> Path:
        return self.data / "automation" / "runs" / run_slug(f"{id}/role")

    def story(self, id: str) -> list[Any]:
        text = (self.run_place(id) / "events.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def at(self, id: str, task: str) -> None:
        """Until the run is at this task."""
        path = self.run_place(id) / "events.jsonl"
        until(
            lambda: [e["task"] for e in self.story(id)] if path.exists() else [],
            lambda tasks: task in tasks,
        )

    def token_of(self, id: str) -> str:
        """As the run itself has it: in its own file system, which only root can look into."""
        for pid in processes_with("play.yml"):
            play = Path(f"/proc/{pid}/root/run/boatyard/project/play.yml")
            if play.exists() and id in (text := play.read_text()):
                (token,) = set(re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", text))
                return token
        for place in self.run_place(id).glob("work/project/play.yml"):
            (token,) = set(re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", place.read_text()))
            return token
        raise AssertionError("no run has a token")


def until(ask: Callable[[], Answer], good: Callable[[Answer], bool]) -> Answer:
    end = time.monotonic() + PATIENCE
    while not good(answer := ask()):
        assert time.monotonic() < end, f"still: {answer}"
        time.sleep(0.1)
    return answer


@pytest.fixture
def server(home: Path, ansible: dict[str, str]) -> Iterator[RestartedUp]:
    made = RestartedUp(home, ansible)
    yield made
    if made.up is not None:
        made.up.__exit__()
    for pid in processes_with(str(home)):
        os.kill(pid, signal.SIGKILL)


def is_ready(state: str) -> bool:
    return state == "CLUSTER_STATE_READY"


async def gone(server: RestartedUp, id: str) -> None:
    """Deleted, and nothing of it is left."""
    server.call("DELETE", f"/api/fulfillment/v1/clusters/{id}")
    until(lambda: server.state(id), lambda state: state == "gone")
    assert await server.truth() == {}
    assert not server.run_place(id).exists()


async def test_the_guides_role_decides_over_tls(server: RestartedUp) -> None:
    (tasks,) = re.findall(r"### The role decides.*?```yaml\n(.*?)```", PAGE, re.DOTALL)
    server.start("--tls")
    server.offer(tasks)
    id = server.create()

    until(lambda: server.state(id), is_ready)

    reported = server.reported(id)
    assert reported["api"] == server.order(id)["status"]["facts"]["api_url"]
    assert reported["console"].startswith("https://console.")
    asked = server.order(id)["metadata"]["annotations"]["boatyard.io/asked"]
    assert asked == "hosts,network,addresses,names,install"
    changed = [event["task"] for event in server.story(id) if event["kind"] == "changed"]
    assert changed == ["Hosts and network, while we do something else", "Names", "The cluster"]
    told = json.dumps(server.order(id)) + server.up.log.read_text() if server.up else ""
    assert "eyJ" not in told + json.dumps(server.story(id))
    await gone(server, id)


async def test_boatyard_killed_while_the_role_waits_and_after_it_was_asked(
    server: RestartedUp,
) -> None:
    server.start()
    await server.names_answer(False)
    server.offer(ROLE)
    id = server.create()
    server.at(id, "Names")
    until(lambda: server.step(id, "names").get("message", ""), bool)
    token = server.token_of(id)

    # Acknowledged, and killed at once: it is carried out all the same.
    answer = server.call(
        "POST", f"/api/boatyard/v1/role_runs/{id}/ask", {"step": "platform"}, token
    )
    assert (answer.status_code, answer.json()) == (200, {"steps": ["platform"]})
    server.kill()
    assert run_lock.is_held(server.run_place(id) / "lock"), "the run goes on"
    server.start()
    assert server.order(id)["metadata"]["annotations"]["boatyard.io/asked"].endswith(
        ",names,install"
    )
    assert server.step(id, "role")["state"] == "STEP_STATE_WAITING"
    await server.names_answer(True)

    until(lambda: server.state(id), is_ready)

    assert REPORTED.items() <= server.reported(id).items()
    tasks = [event["task"] for event in server.story(id) if event["kind"] == "task"]
    assert tasks == ["Hosts", "Names", "Platform", "Report"], "it ran once"
    changed = [event["task"] for event in server.story(id) if event["kind"] == "changed"]
    assert changed == ["Hosts", "Names"], "the platform was asked for already"
    late = server.call("GET", f"/api/boatyard/v1/role_runs/{id}", token=token)
    assert late.status_code == 401, "its run is over"
    await gone(server, id)


async def test_a_run_killed_begins_again_and_nothing_is_doubled(server: RestartedUp) -> None:
    server.start()
    await server.names_answer(False)
    server.offer(ROLE)
    id = server.create()
    server.at(id, "Names")
    until(lambda: server.step(id, "names").get("message", ""), bool)
    before = server.order(id)["metadata"]["annotations"]
    hosts = {
        i["key"]: i["facts"] for i in server.order(id)["status"]["items"] if i["kind"] == "host"
    }

    held = run_lock.find_holder(server.run_place(id) / "lock")
    assert held is not None
    run_lock.send_signal(held, signal.SIGKILL)
    assert run_lock.wait_for_end(held, PATIENCE)
    os.close(held)
    until(
        lambda: [event["task"] for event in server.story(id)].count("Names"),
        lambda times: times > 1,
    )
    assert server.order(id)["metadata"]["annotations"] == before
    await server.names_answer(True)

    until(lambda: server.state(id), is_ready)

    items = server.order(id)["status"]["items"]
    assert {i["key"]: i["facts"] for i in items if i["kind"] == "host"} == hosts
    assert REPORTED.items() <= server.reported(id).items()
    await gone(server, id)


async def test_a_deletion_while_the_role_waits_ends_it_and_its_token(server: RestartedUp) -> None:
    server.start()
    await server.names_answer(False)
    server.offer(ROLE)
    id = server.create()
    server.at(id, "Names")
    token = server.token_of(id)
    mine = f"/api/boatyard/v1/role_runs/{id}"
    assert server.call("GET", mine, token=token).status_code == 200
    for path in ("/api/fulfillment/v1/clusters", f"/api/boatyard/v1/orders/{id}"):
        assert server.call("GET", path, token=token).status_code == 403

    server.call("DELETE", f"/api/fulfillment/v1/clusters/{id}")
    until(lambda: server.call("GET", mine, token=token).status_code, lambda code: code == 401)
    answer = server.call("POST", f"{mine}/ask", {"step": "platform"}, token)
    assert answer.status_code == 401
    until(lambda: server.run_place(id).exists(), lambda there: not there)
    assert processes_with("play.yml", str(server.data)) == {}
    await server.names_answer(True)

    await gone(server, id)


async def test_a_step_that_fails_is_the_roles_failure_and_retry_goes_on_from_there(
    server: RestartedUp,
) -> None:
    server.start()
    server.offer(ROLE.replace("boatyard.service.names: {}", "boatyard.service.names: {timeout: 2}"))
    await server.names_answer(False)
    id = server.create()

    failed = until(
        lambda: server.step(id, "role"), lambda step: step.get("state") == "STEP_STATE_FAILED"
    )
    assert "task 'Names': not done after 2 s: names" in failed["message"]
    await server.names_answer(True)
    answer = server.call("POST", f"/api/boatyard/v1/clusters/{id}/retry", {})
    assert answer.status_code == 200

    until(lambda: server.state(id), is_ready)

    assert server.reported(id)["attempt"] == "2"
    await gone(server, id)


async def test_a_worker_of_its_own_says_what_it_needs_and_goes_on_when_it_has_it(
    home: Path, ansible: dict[str, str]
) -> None:
    async with Distributed(home) as up_environment:
        up_environment.environ |= {**ansible, "BOATYARD_TEMPLATES": str(home / "roles")}
        made = {"meta/template.yaml": TEMPLATE, "tasks/install.yaml": ROLE}
        write(home / "roles" / "deciding", role_files(made))
        serve = up_environment.start("serve", *ANY_PORT)
        line = serve.ready()
        server = RestartedUp(home, {})
        found = re.search(r"REST (\S+)", line)
        assert found, line
        server.rest = found[1]
        work = up_environment.start("work")
        work.ready()
        path = "/api/fulfillment/v1/cluster_templates/deciding"
        until(lambda: server.call("GET", path).status_code, lambda code: code == 200)
        id = server.create()
        waits = until(lambda: server.step(id, "role"), lambda step: bool(step.get("message")))
        assert waits["reason"] == "NoApiUrl"
        assert "BOATYARD" not in waits["message"]
        assert "BOATYARD_API_URL" in work.log.read_text()
        work.end()

        up_environment.environ["BOATYARD_API_URL"] = server.rest
        up_environment.start("work").ready()
        until(lambda: server.state(id), is_ready)
        assert REPORTED.items() <= server.reported(id).items()
