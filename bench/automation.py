"""Runs of roles against the command line of Ansible, in turns: how long one takes, how many a second, how soon.

Both sides run the same role with the same values in the same environment of Ansible. The command line is started
bare: no supervisor, no namespaces, nobody who reads along.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from first_line import first_line
from report import Report, table
from yard import Broken

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.run_plan import INSIDE_DIRECTORY
from boatyard.automation.drivers.local.runner import LocalRunner
from boatyard.automation.drivers.local.warm_starter import WarmStarter
from boatyard.automation.port import RunSpec
from boatyard.model.outcome import Done

AT_ONCE = 8
SPEC = "argument_specs: {post_install: {options: {title: {type: str, required: true}}}}"
ROLES = {
    "noop": [{"name": "nothing", "ansible.builtin.meta": "noop"}],
    "actions": [
        {"name": f"step {n}", "boatyard.service.progress": {"message": "{{ title }} " + str(n)}}
        for n in range(20)
    ],
    "modules": [
        {"name": f"step {n}", "ansible.builtin.command": {"cmd": "true"}, "changed_when": False}
        for n in range(10)
    ],
}


@dataclass(frozen=True)
class Site:
    folder: Path
    environment: AnsibleEnvironment

    def content(self, digest: str) -> Path:
        return self.folder / "content" / digest

    def write(self) -> None:
        for name, tasks in ROLES.items():
            role = self.content(name)
            for path, text in (
                ("tasks/post_install.yaml", json.dumps(tasks)),
                ("meta/argument_specs.yml", SPEC),
            ):
                (role / path).parent.mkdir(parents=True, exist_ok=True)
                (role / path).write_text(text)
            play = {
                "hosts": "localhost",
                "gather_facts": False,
                "vars": {"title": "bench"},
                "tasks": [
                    {"ansible.builtin.import_role": {"name": name, "tasks_from": "post_install"}}
                ],
            }
            project = self.folder / "projects" / name
            (project / "roles").mkdir(parents=True)
            (project / "roles" / name).symlink_to(role)
            (project / "play.yml").write_text(json.dumps([play]))
            (project / "inventory").write_text(
                'localhost ansible_connection=local ansible_python_interpreter="{{ ansible_playbook_python }}"\n'
            )

    def command_line(self, name: str) -> subprocess.Popen[bytes]:
        project = self.folder / "projects" / name
        return subprocess.Popen(
            [self.environment.playbook, "-i", project / "inventory", project / "play.yml"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(INSIDE_DIRECTORY / "collections"),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run_command_line(self, name: str) -> None:
        check(self.command_line(name))


def check(process: subprocess.Popen[bytes]) -> None:
    """Waits for its end. Broken when it was no good one: a run that fails early would be a quick one."""
    code = process.wait()
    if code != 0:
        raise Broken(f"{process.args!r} ended with {code}")


class Ours:
    def __init__(self, site: Site) -> None:
        self._shop = LocalRunner(site.folder / "data", site.content, environment=site.environment)
        self._driver = LocalAutomation(self._shop, "bench")
        self._number = 0
        self.first_words: list[float] = []

    def warm_up(self) -> float:
        start = time.monotonic()
        starter = self._shop.starter
        assert isinstance(starter, WarmStarter)
        assert starter.warm_up(self._shop.get_capabilities()), "the warm server does not come up"
        return time.monotonic() - start

    async def run(self, name: str) -> float:
        self._number += 1
        key = f"bench/{self._number}"
        wanted = RunSpec(
            action="post_install", template=name, digest=name, values={"title": "bench"}
        )
        start = time.monotonic()
        spoken = False
        while not isinstance(await self._driver.ensure_run(key, wanted), Done):
            if not spoken and any(event.kind == "task" for event in await self._driver.events(key)):
                spoken = True
                self.first_words.append(time.monotonic() - start)
            await asyncio.sleep(0.01)
        took = time.monotonic() - start
        await self._driver.release_run(key)
        return took

    def close(self) -> None:
        self._shop.close()


def timed(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


async def side_by_side(site: Site, ours: Ours, name: str, rounds: int) -> tuple[float, float]:
    """Medians of the command line and of ours, taken in turns."""
    theirs: list[float] = []
    own: list[float] = []
    for _ in range(rounds):
        theirs.append(timed(lambda: site.run_command_line(name)))
        own.append(await ours.run(name))
    return statistics.median(theirs), statistics.median(own)


async def many(ours: Ours, name: str, count: int) -> float:
    """Runs per second, so many at once."""
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await ours.run(name)

    start = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return count / (time.monotonic() - start)


def many_command_lines(site: Site, name: str, count: int) -> float:
    start = time.monotonic()
    under_way: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        while len(under_way) >= AT_ONCE:
            time.sleep(0.005)
            ended = [process for process in under_way if process.poll() is not None]
            for process in ended:
                check(process)
                under_way.remove(process)
        under_way.append(site.command_line(name))
    for process in under_way:
        check(process)
    return count / (time.monotonic() - start)


async def measure(report: Report, site: Site, *, rounds: int, count: int) -> None:
    ours = Ours(site)
    report.configure(
        rounds=rounds, at_once=AT_ONCE, warm_server=f"{ours.warm_up():.2f} s to come up"
    )
    try:
        await ours.run("noop")
        ours.first_words.clear()
        rows = []
        for name in ROLES:
            theirs, own = await side_by_side(site, ours, name, rounds)
            report.found[name] = {"command_line": theirs, "ours": own, "ratio": own / theirs}
            rows.append((name, theirs, own, own / theirs))
        first = statistics.median(ours.first_words)
        fast = await many(ours, "noop", count)
        slow = many_command_lines(site, "noop", max(AT_ONCE, count // 3))
        accepted, begun = await first_line(rounds)
    finally:
        ours.close()
    table("One run, seconds", ("role", "command line", "ours", "ratio"), rows)
    print(f"\nnoop, {AT_ONCE} at once: ours {fast:.1f} runs/s, command line {slow:.1f} runs/s")
    print(
        f"first task line: told after {first:.2f} s, at the client {begun:.2f} s after its run was begun, "
        f"{accepted:.2f} s after the order was accepted"
    )
    report.found |= {
        "runs_per_second": fast,
        "command_line_per_second": slow,
        "first_line": accepted,
        "first_line_of_run": begun,
    }
    report.promise("no-op role with an argument spec", report.found["noop"]["ratio"], 0.35, "x")
    report.promise("20 tasks of our action plugins", report.found["actions"]["ratio"], 0.35, "x")
    report.promise(f"no-op runs, {AT_ONCE} at once", fast, 5.0, "runs/s", at_least=True)
    report.promise("first task line at the client, of an accepted order", accepted, 0.5, "s")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/automation.py", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=40, help="runs, eight at once")
    parser.add_argument("--no-judge", action="store_true", help="measures, never fails")
    options = parser.parse_args()
    report = Report("automation")
    folder = Path(tempfile.mkdtemp(prefix="boatyard-bench-"))
    try:
        environment = AnsibleEnvironment()
        environment.ensure(print)
        site = Site(folder, environment)
        site.write()
        asyncio.run(measure(report, site, rounds=options.rounds, count=options.count))
    except Broken as broken:
        sys.stderr.write(f"bench/automation cannot go on: {broken}\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report.end(judge=not options.no_judge)


if __name__ == "__main__":
    sys.exit(main())
