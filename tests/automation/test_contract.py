"""The automation port's promises, kept by the driver `local` with real runs of a real role."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.port import RunSpec
from boatyard.model.outcome import Outcome
from tests.contracts import test_automation
from tests.contracts.test_automation import Rule
from tests.support.memory_automation import Started
from tests.support.role_runs import RoleEnvironment

# What the role does: says that it is there, waits to be told how it ends, and ends so.
ACT = """
import json, socket
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"told": {"type": "raw"}, "port": {"type": "int"}})
line = socket.create_connection(("127.0.0.1", module.params["port"]))
line.sendall(json.dumps(module.params["told"]).encode() + b"\\n")
answer = json.loads(line.makefile().readline())
if answer["message"]:
    module.fail_json(msg=answer["message"])
module.exit_json(facts=answer["facts"])
"""


class RunCallbackServer(socketserver.ThreadingTCPServer):
    """Whom every run calls when it is under way."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), RunCallback)
        self.begun: list[Started] = []
        self.waiting: list[RunCallback] = []
        self.change = threading.Condition()


class RunCallback(socketserver.StreamRequestHandler):
    server: RunCallbackServer

    def handle(self) -> None:
        told = json.loads(self.rfile.readline())
        with self.server.change:
            run = told["run"]
            self.server.begun.append(Started(run["action"], run["attempt"], told["values"]))
            self.server.waiting.append(self)
        self.rfile.read(1)  # until the run has gone
        with self.server.change:
            if self in self.server.waiting:
                self.server.waiting.remove(self)


@dataclass
class LocalAutomationHarness:
    """As the contract's rules want it: the driver, given a template where a rule names none."""

    role_environment: RoleEnvironment
    driver: LocalAutomation
    callbacks: RunCallbackServer
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def automation(self) -> Any:
        return self

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.driver, verb)

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        full = dataclasses.replace(wanted, template="acting", digest="acting")
        return await self.driver.ensure_run(key, full)

    def order(self) -> str:
        return f"order-{next(self.numbers)}"

    def started(self) -> Sequence[Started]:
        """Once every run that is under way has called."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            under_way = sum(
                self.driver._runner.records.find_result(record) is None
                for record in self.driver._runner.records
            )
            with self.callbacks.change:
                if len(self.callbacks.waiting) >= under_way:
                    return list(self.callbacks.begun)
            time.sleep(0.02)
        raise AssertionError("a run does not call")

    async def finish(self, *, message: str = "", **facts: str) -> None:
        with self.callbacks.change:
            waiting, self.callbacks.waiting = self.callbacks.waiting, []
        for call in waiting:
            call.wfile.write(json.dumps({"message": message, "facts": facts}).encode() + b"\n")

    async def misbehave(self, mood: str) -> None:
        """What is kept of runs can no longer be reached."""
        runs = self.role_environment.data / "runs"
        aside = self.role_environment.data / "runs-aside"
        if mood == "dead":
            runs.rename(aside)
        else:
            aside.rename(runs)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.2))


@pytest.fixture
def callbacks() -> Iterator[RunCallbackServer]:
    with RunCallbackServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("rule", test_automation.RULES, ids=lambda rule: rule.__name__)
async def test_automation(
    rule: Rule, role_environment: RoleEnvironment, callbacks: RunCallbackServer
) -> None:
    told = {"run": "{{ boatyard_run }}", "values": "{{ boatyard_parameters }}"}
    tasks = [
        {
            "name": "Call",
            "act": {"told": told, "port": callbacks.server_address[1]},
            "register": "said",
        },
        {"name": "Report", "ansible.builtin.set_stats": {"data": "{{ said.facts }}"}},
    ]
    role_environment.role("acting", {"library/act.py": ACT}, act=tasks)
    await rule(LocalAutomationHarness(role_environment, role_environment.driver(), callbacks))
