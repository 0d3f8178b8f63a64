"""The roles of the proof, one with every hook and one that decides, and the records of their runs.

Used by environments and workers. The runs are real ones of Ansible. They outlive the worker that started them, as
those of a killed Boatyard do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.run_plan import process_mark
from boatyard.automation.drivers.local.run_records import RunRecords
from boatyard.automation.drivers.local.run_token import MakeRunToken, refuse_run_token
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.port import Automation, RunEvent, RunSpec
from boatyard.model.generated.boatyard import Order
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting
from boatyard.processes.marked_processes import find_processes
from boatyard.proof.kill_points import KillPoints
from boatyard.resources.orders.item_graph import ITEM_KINDS
from boatyard.roles.phases import HOOKS, INSTALL

HOOKS_DIGEST, DECIDING_DIGEST = "proved", "deciding"
DECIDING_PHASES = (INSTALL, "delete")  # the parts of the role that decides
_TASKS = """
- name: Say so
  boatyard.service.progress:
    message: "{{ boatyard_run.action }} of {{ boatyard_order.name }}"
- name: Report
  boatyard.service.facts:
    PART: "{{ boatyard_order.name }}"
"""


_REQUEST_TASKS = """
- name: Ask for names and all they need
  boatyard.service.names:
- name: Ask for the cluster
  boatyard.service.platform:
"""


def write_roles(directory: Path) -> None:
    """Writes the content of both roles into folders named by digest, as published content is."""
    for digest, parts in ((HOOKS_DIGEST, HOOKS), (DECIDING_DIGEST, DECIDING_PHASES)):
        tasks = directory / "content" / digest / "tasks"
        tasks.mkdir(parents=True)
        for part in parts:
            requests = _REQUEST_TASKS if part == INSTALL else ""
            (tasks / f"{part}.yaml").write_text(requests + _TASKS.replace("PART", part))


def open_runner(directory: Path, make_run_token: MakeRunToken = refuse_run_token) -> LocalRunner:
    return LocalRunner(
        directory / "automation",
        lambda digest: directory / "content" / digest,
        make_run_token=make_run_token,
    )


def ensure_ansible() -> None:
    """Installs Ansible's environment if it is not there yet. Unavailable when that fails."""
    AnsibleEnvironment().ensure(lambda _: None)


class InstrumentedAutomation:
    """The runner of roles; every start, end and release of a run is a point."""

    def __init__(self, automation: Automation, points: KillPoints) -> None:
        self._automation = automation
        self._points = points
        self._announced: set[tuple[str, str, int]] = set()

    async def check_ready(self) -> None:
        await self._automation.check_ready()

    async def get_isolation_warning(self) -> str:
        return await self._automation.get_isolation_warning()

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        """Only the first call for an attempt is a point: how often a run is polled depends on the machine."""
        item = key.partition("/")[2]
        first = self._is_new("begun", key, wanted.attempt)
        if first:
            self._points.pass_point(f"before:effect:automation.begin {item}")
        outcome = await self._automation.ensure_run(key, wanted)
        if first:
            self._points.pass_point(f"after:effect:automation.begin {item}")
        if isinstance(outcome, Done) and self._is_new("ended", key, wanted.attempt):
            self._points.pass_point(f"after:effect:automation.end {item}")
        return outcome

    async def release_run(self, key: str) -> Outcome:
        item = key.partition("/")[2]
        self._points.pass_point(f"before:effect:automation.release {item}")
        outcome = await self._automation.release_run(key)
        self._points.pass_point(f"after:effect:automation.release {item}")
        return outcome

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        return await self._automation.events(key, after)

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return await self._automation.list_owned(prefix)

    async def close(self) -> None:
        await self._automation.close()

    def _is_new(self, event: str, key: str, attempt: int) -> bool:
        announcement = event, key, attempt
        is_known = announcement in self._announced
        self._announced.add(announcement)
        return not is_known


def find_run_keys(order: Order) -> set[str]:
    """The keys of the order's items that are runs."""
    return {item.key for item in order.status.items if ITEM_KINDS[item.kind].phase}


class EnvironmentRuns:
    """The records of the runs of one environment, read from disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._records = RunRecords(directory / "automation" / "runs")

    def read_runs(
        self, cluster_id: str, items: Collection[str]
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Each run of the cluster with its result, and processes of runs that have no record.

        `items`: the keys of all runs that its order ever had.
        """
        results, strays = {}, []
        recorded_keys = set()
        for record in self._records:
            recorded_keys.add(record.key)
            if record.key.startswith(f"{cluster_id}/"):
                result = self._records.find_result(record)
                results[f"run {record.key.partition('/')[2]}"] = {
                    "attempt": record.attempt,
                    "state": result.state if result else "under way",
                }
        for item in sorted(items):
            key = f"{cluster_id}/{item}"
            if key not in recorded_keys and _is_running(
                process_mark(self._records.run_directory(key))
            ):
                strays.append(f"processes of run {item}")
        return results, strays

    async def close(self) -> None:
        """Ends all runs."""
        driver = LocalAutomation(open_runner(self._directory))
        for key in {record.key for record in self._records}:
            while isinstance(await driver.release_run(key), Waiting):
                pass  # every call waits for some seconds
        await driver.close()


def _is_running(mark: str) -> bool:
    processes = [process for group in find_processes(mark).values() for process in group]
    for process in processes:
        process.close()
    return bool(processes)
