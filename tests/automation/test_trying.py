"""`boatyard template test`: each faulty role is caught for its own reason, and a good one passes.

A role that writes into something of its author's own is given a notebook on the network; what is in it afterwards is
told by the command of `--outside`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from boatyard.app.trying.report import FAILED, PASSED, SKIPPED, Answer, Report
from boatyard.app.trying.road import try_role
from boatyard.app.trying.trial import Options
from boatyard.client.roles import roles_at
from tests.support.notebook import notebook

ROLES = Path(__file__).parent.parent / "faulty_roles"
GOOD = Path(__file__).parent.parent / "good_role"

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("environment")]


async def tried(folder: Path, place: Path, *, older: Path | None = None, **more: object) -> Report:
    (found,) = roles_at(folder)
    pages = place / "pages"
    yard = place / "yard"
    for one in (pages, yard):
        one.mkdir()
    told: list[Answer] = []
    with notebook(pages) as address:
        asks = found.role is not None and "notebook" in found.role.form.options
        options = Options(
            values={"notebook": address} if asks else {},
            outside=f"sh -c 'cat {pages}/$BOATYARD_CLUSTER 2>/dev/null || true'" if asks else "",
            older=roles_at(older)[0] if older else None,
            **more,  # type: ignore[arg-type]
        )
        report = await try_role(found, yard, options, told.append)
    assert list(report.answers) == told
    return report


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
    tmp_path: Path, role: str, question: str, words: str
) -> None:
    older = GOOD if question == "upgrade" else None
    seconds = 20.0 if role == "waits_for_ever" else 120.0

    report = await tried(ROLES / role, tmp_path, older=older, part_seconds=seconds)

    failed = [one for one in report.answers if one.state == FAILED]
    assert [one.question for one in failed] == [question], report.plain()
    assert words in "\n".join(failed[0].lines())
    assert failed[0].remedy
    assert not report.passed


async def test_a_good_role_passes_every_question(tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(GOOD, older)
    tasks = older / "tasks" / "delete.yaml"
    tasks.write_text(tasks.read_text().replace("Goodbye", "Farewell"))

    report = await tried(GOOD, tmp_path, older=older)

    assert {one.question: one.state for one in report.answers} == dict.fromkeys(
        ("lint", "form", "install", "again", "scale", "delete", "crash", "upgrade", "bounds", "secrets"),
        PASSED,
    ), report.plain()  # fmt: skip
    crash = next(one for one in report.answers if one.question == "crash")
    # Two tasks, four, one, one and one; and after the last of each.
    assert crash.said.startswith("14 kills")


async def test_only_what_was_asked_for_is_asked(tmp_path: Path) -> None:
    report = await tried(GOOD, tmp_path, only=("again",))

    assert [one.question for one in report.answers] == ["lint", "install", "again", "bounds"]
    assert all(one.state != SKIPPED for one in report.answers)
