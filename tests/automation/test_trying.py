"""`boatyard template test`: each faulty role is caught for its own reason, and a good one passes.

A role that writes into something of its author's own is given a notebook on the network; what is in it afterwards is
told by the command of `--outside`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from boatyard.automation.drivers.local import run_lock
from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.client.local_roles import read_roles
from boatyard.infra.dns.drivers.sim import SimDns
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.model.outcome import Done
from boatyard.resources.cluster_templates import parameters
from boatyard.roles.form import Form
from boatyard.template_test import environment as trial_environment
from boatyard.template_test import instrumented_runs
from boatyard.template_test.report import FAILED, PASSED, SKIPPED, QuestionResult, RoleTestReport
from boatyard.template_test.runner import QUESTION_NAMES, try_role
from boatyard.template_test.trial import RoleTestOptions
from tests.support.file_server import file_server
from tests.support.processes import run
from tests.support.role_runs import processes_with
from tests.support.soak import SOAKING

ROLES = Path(__file__).parent.parent / "faulty_roles"
GOOD = Path(__file__).parent.parent / "good_role"
DECIDES = Path(__file__).parent.parent / "good_role_that_decides"
SHIPPED = Path(__file__).parents[2] / "templates" / "roles"

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("environment")]


Try = Callable[..., Awaitable[RoleTestReport]]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a PostgreSQL in which nothing is yet: to make it costs more than to copy it."""
    folder = tmp_path_factory.mktemp("database")

    async def make() -> None:
        async with EmbeddedPostgres(folder, durable=False):
            pass

    asyncio.run(make())
    return folder / "postgres"


@pytest.fixture(autouse=True)
def rare_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking whether a run has ended costs as much as the run; a person who waits is told sooner."""
    monkeypatch.setattr(trial_environment, "_LOOK_SECONDS", 0.15)
    monkeypatch.setattr(instrumented_runs, "_LOOK_SECONDS", 0.2)


@pytest.fixture
def tried(database: Path) -> Try:
    """Tries a role in a place of its own: `await tried(folder, place)`."""

    async def tried(
        folder: Path, place: Path, *, older: Path | None = None, **more: object
    ) -> RoleTestReport:
        (found,) = read_roles(folder)
        pages = place / "pages"
        directory = place / "test"
        for one in (pages, directory):
            one.mkdir()
        await asyncio.to_thread(subprocess.run, ["cp", "-a", database, directory], check=True)
        told: list[QuestionResult] = []
        with file_server(pages) as address:
            asks = found.role is not None and "notebook" in found.role.form.options
            options = RoleTestOptions(
                values={"notebook": address} if asks else {},
                outside=f"sh -c 'cat {pages}/$BOATYARD_CLUSTER 2>/dev/null || true'"
                if asks
                else "",
                older=read_roles(older)[0] if older else None,
                **more,  # type: ignore[arg-type]
            )
            report = await try_role(found, directory, options, told.append)
        assert list(report.results) == told
        return report

    return tried


def role_with(place: Path, *parts: str) -> Path:
    """The good role with these of its parts only: each part that is run costs its time."""
    role = shutil.copytree(GOOD, place)
    for file in (role / "tasks").iterdir():
        if file.stem not in parts:
            file.unlink()
    return role


@pytest.mark.parametrize(
    "role, question, words",
    [
        pytest.param("broken_form", "lint", "requried", id="a form with mistakes"),
        pytest.param("asks_for_both", "form", "no values can be found", id="nothing fits the form"),
        pytest.param("forgets_the_optional", "install", "'farewell' is undefined", id="optional"),
        pytest.param("needs_what_nobody_asks", "install", "'account_number' is undefined", id="not asked"),
        pytest.param("always_changes", "again", "task 'Write it down' has changed", id="not idempotent"),
        pytest.param("another_answer_each_time", "again", "the fact 'ticket' is another", id="unsteady"),
        pytest.param("refuses_its_own_record", "again", "412", id="fails the second time"),
        pytest.param("another_answer_when_scaled", "scale", "the fact 'page' was", id="scaled"),
        pytest.param("cannot_go_on", "crash", "before task 'Finish the record'", id="half done"),
        pytest.param("cannot_say_goodbye", "delete", "task 'Close the account'", id="delete fails"),
        pytest.param("leaves_a_record", "delete", "outside there is 'finished'", id="leaves something"),
        pytest.param("waits_for_ever", "bounds", "'Wait for the light': it took longer", id="waits"),
        pytest.param("prints_without_end", "bounds", "it printed more than", id="prints"),
        pytest.param("tells_the_secret", "secrets", "'password' can be read backwards", id="a secret"),
        pytest.param("has_another_id", "upgrade", "its template was 'greeter'", id="renamed"),
    ],
)  # fmt: skip
async def test_each_fault_is_caught_for_its_own_reason(
    tried: Try, tmp_path: Path, role: str, question: str, words: str
) -> None:
    older = GOOD if question == "upgrade" else None
    seconds = 20.0 if role == "waits_for_ever" else 120.0
    # All other questions are answered well: `make soak` asks them too. The last two look at the runs of the others.
    looks_at_runs = question in ("bounds", "secrets")
    only = () if SOAKING else ("install", question) if looks_at_runs else (question,)

    report = await tried(ROLES / role, tmp_path, older=older, part_seconds=seconds, only=only)

    failed = [one for one in report.results if one.state == FAILED]
    assert [one.question for one in failed] == [question], report.to_dict()
    assert words in "\n".join(failed[0].format_lines())
    assert failed[0].remedy
    assert not report.has_passed


async def test_a_good_role_passes_every_question(tried: Try, tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(GOOD, older)
    tasks = older / "tasks" / "delete.yaml"
    tasks.write_text(tasks.read_text().replace("Goodbye", "Farewell"))

    report = await tried(GOOD, tmp_path, older=older)

    assert {one.question: one.state for one in report.results} == dict.fromkeys(
        ("lint", "form", "install", "again", "scale", "delete", "crash", "upgrade", "bounds", "secrets"),
        PASSED,
    ), report.to_dict()  # fmt: skip
    crash = next(one for one in report.results if one.question == "crash")
    # Two tasks, three, one, one and one, and after the last of each; validate is run once more after scaling.
    assert crash.summary.startswith("15 kills")


async def test_a_role_that_decides_what_is_done_passes_too(tried: Try, tmp_path: Path) -> None:
    report = await tried(DECIDES, tmp_path)

    assert [one.question for one in report.results if one.state == FAILED] == [], report.to_dict()
    crash = next(one for one in report.results if one.question == "crash")
    assert crash.summary == "8 kills, at every task of install, delete"


async def test_an_admission_that_takes_everything_is_found(
    tried: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(
        form: Form, given: Mapping[str, Any], violations: object, *, at: str
    ) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name in form.options}

    monkeypatch.setattr(parameters, "check_values", take)

    report = await tried(GOOD, tmp_path, only=("form",))

    (form,) = [one for one in report.results if one.state == FAILED]
    assert form.question == "form"
    # Every bad set is told, also those at which the server stumbles when it keeps them.
    assert form.summary == "20 of 62 sets went wrong"
    assert "a parameter that is not asked for: taken, although the form forbids it" in form.problems


async def test_a_data_centre_that_keeps_something_is_found(
    tried: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kept(*_: object) -> Done:
        return Done()

    monkeypatch.setattr(SimDns, "release_record", kept)

    report = await tried(SHIPPED / "kubernetes_small", tmp_path, only=("delete",))

    (delete,) = [one for one in report.results if one.state == FAILED]
    assert delete.question == "delete"
    assert "cluster 'most': record api-name is still there" in delete.problems


async def test_a_kill_that_does_not_come_is_not_counted(
    tried: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instrumented_runs, "DIE_AT_TASK", "NOBODY_READS_IT")
    role = role_with(tmp_path / "short", "pre_install")

    report = await tried(role, tmp_path, only=("crash",))

    (crash,) = [one for one in report.results if one.state == FAILED]
    assert crash.question == "crash"
    assert "pre_install did not come to its task 1 in cluster 'crash-1'" in crash.problems


async def test_what_a_role_asks_of_a_data_centre_is_there(tried: Try, tmp_path: Path) -> None:
    role = role_with(tmp_path / "picky", "validate")
    (role / "meta" / "template.yaml").write_text(
        "title: A picky one\n"
        "platform: elsewhere\n"
        "hub_labels: {disks: fast}\n"
        "versions: {from: '7.1', below: '7.2'}\n"
        "node_sets: {compute: {host_type: bm-odd, size: 1}}\n"
        "allowed_host_types: [bm-odder]\n"
    )

    report = await tried(role, tmp_path, only=("install",))

    assert report.has_passed, report.to_dict()


async def test_only_what_was_asked_for_is_asked(tried: Try, tmp_path: Path) -> None:
    report = await tried(role_with(tmp_path / "short", "validate"), tmp_path, only=("again",))

    assert [one.question for one in report.results] == ["lint", "install", "again", "bounds"]
    assert all(one.state != SKIPPED for one in report.results)


def typed(
    home: Path, environment: AnsibleEnvironment, *words: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    ansible = {"BOATYARD_ANSIBLE": str(environment.directory)}
    return run("template", "test", *words, home=home, environ=ansible | environ, seconds=300)


def test_the_command_tells_answers_and_writes_the_report(
    tmp_path: Path, environment: AnsibleEnvironment
) -> None:
    file = tmp_path / "report.json"

    done = typed(tmp_path, environment, str(ROLES / "broken_form"), "--json", str(file))

    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("✗ lint      2 mistakes")
    assert "broken_form: not good: lint" in done.stdout
    report = json.loads(file.read_text())
    assert report["passed"] is False
    assert [one["question"] for one in report["questions"]] == ["lint"]


async def test_the_roles_that_come_along_pass(tried: Try, tmp_path: Path) -> None:
    """Every question of all of them, side by side: they wait more than they work."""
    names = sorted(one.name for one in SHIPPED.iterdir())

    async def ask(name: str) -> dict[str, str]:
        place = tmp_path / name
        place.mkdir()
        # Eleven clusters for its tasks: `make soak` kills them all, here those of the role that decides are killed.
        short = name == "step_by_step" and not SOAKING
        only = tuple(one for one in QUESTION_NAMES if one != "crash") if short else ()
        report = await tried(SHIPPED / name, place, only=only)
        assert report.has_passed, report.to_dict()
        return {one.question: one.state for one in report.results}

    answered = dict(zip(names, await asyncio.gather(*map(ask, names)), strict=True))

    # Nothing was published before, and none asks for a secret; of two nothing is run.
    unasked = {"upgrade", "secrets"}
    step_by_step = answers(unasked)
    if not SOAKING:
        del step_by_step["crash"]
    assert answered == {
        "kubernetes_small": answers(unasked | {"crash"}),
        "ocp_4_17_small": answers(unasked | {"crash"}),
        "step_by_step": step_by_step,
        "team_space": answers(unasked),
    }


def answers(unasked: set[str]) -> dict[str, str]:
    return {name: SKIPPED if name in unasked else PASSED for name in QUESTION_NAMES}


def test_the_command_leaves_nothing_behind(tmp_path: Path, environment: AnsibleEnvironment) -> None:
    temporary = Path(tempfile.mkdtemp(prefix="by-"))  # short: sockets live in it
    temporary.chmod(0o711)
    role = role_with(tmp_path / "good_role", "validate")
    words = (str(role), "--only", "install", "--seed", "3")

    done = typed(tmp_path, environment, *words, TMPDIR=str(temporary))

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("good_role: good (3 questions in ")
    assert list(temporary.iterdir()) == []
    assert processes_with(str(temporary)) == {}
    temporary.rmdir()


async def test_a_trial_that_is_given_up_leaves_no_run_behind(tried: Try, tmp_path: Path) -> None:
    trial = asyncio.create_task(tried(ROLES / "waits_for_ever", tmp_path, only=("install",)))
    runs = tmp_path / "test" / "automation" / "runs"
    waiting = await until(
        lambda: [one.parent for one in runs.glob("*/events.jsonl") if b"light" in one.read_bytes()],
        trial,
    )
    held = run_lock.find_holder(waiting[0] / "lock")
    assert held is not None

    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial

    assert run_lock.wait_for_end(held, 0)
    os.close(held)
    assert list(runs.iterdir()) == []


async def until(look: Callable[[], list[Path]], trial: asyncio.Task[RoleTestReport]) -> list[Path]:
    while not (found := look()):
        assert not trial.done(), trial.result()
        await asyncio.sleep(0.05)
    return found
