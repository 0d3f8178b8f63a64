"""Stories of real runs in the ledger: all of it, once, without secrets, and kept after the run is gone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest

from boatyard.ledger.ledger import Ledger
from boatyard.ledger.run_logs import StoredLogLine
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import Item, ItemState, Order, OrderSpec
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.steps import role
from boatyard.resources.orders.steps.context import StepContext
from boatyard.roles.parameter_values import encode_secrets
from tests.support.orders import NOW
from tests.support.role_runs import PATIENCE, RoleEnvironment, until, whole_story

SECRET = "correct-horse-battery"
RUN = Item(
    key="pre_install",
    kind="pre_install",
    step="pre_install",
    state=ItemState.PLANNED,
    facts={"attempt": "1"},
)


@dataclass(frozen=True)
class AutomationHub:
    automation: Any


def _text(value: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": value}


def look(ledger: Ledger, driver: Any, template: str, secret: str = "") -> StepContext:
    spec = OrderSpec(
        hub="hub",
        template=template,
        template_digest=template,
        secret_values=encode_secrets({"password": _text(secret)}) if secret else "",
    )
    book: Any = None
    return StepContext(
        order=Order(id="o-1", spec=spec),
        drivers=AutomationHub(driver),  # type: ignore[arg-type]
        book=book,
        now=NOW,
        items={RUN.key: RUN},
        run_logs=ledger.run_logs,
    )


async def ended(context: StepContext) -> Outcome:
    end = time.monotonic() + PATIENCE
    while isinstance(outcome := await role.ensure_run(context, RUN), Waiting):
        assert time.monotonic() < end, outcome
        await asyncio.sleep(0.05)
    return outcome


async def released(context: StepContext) -> None:
    await until(lambda: role.release_run(context, RUN), lambda outcome: outcome == Done())


async def kept(ledger: Ledger) -> tuple[StoredLogLine, ...]:
    return (await ledger.run_logs.read_lines("o-1")).lines


async def test_the_whole_story_is_in_the_ledger_and_outlives_the_run(
    role_environment: RoleEnvironment, ledger: Ledger
) -> None:
    tasks = [
        {"name": "say", "ansible.builtin.debug": {"msg": "hello"}},
        {"name": "change", "ansible.builtin.command": "true"},
    ]
    role_environment.role("web", pre_install=tasks)
    driver = role_environment.driver()
    context = look(ledger, driver, "web")

    outcome = await ended(context)

    assert outcome == Done({"run.tasks": "2", "run.changed": "1"})
    told = await whole_story(driver, "o-1/pre_install")
    lines = await kept(ledger)
    assert [(one.number, one.kind, one.task, one.text) for one in lines] == [
        (one.number, one.kind, one.task, one.text) for one in told
    ]
    assert [one.kind for one in lines] == ["task", "ok", "task", "changed", "end"]
    assert lines[1].text == "hello"
    await released(context)
    assert await driver.events("o-1/pre_install") == ()
    assert await kept(ledger) == lines


async def test_a_run_after_a_release_is_told_too(
    role_environment: RoleEnvironment, ledger: Ledger
) -> None:
    """As a farewell is, when we die between its release and writing that down."""
    role_environment.role(
        "web", pre_install=[{"name": "say", "ansible.builtin.debug": {"msg": "hello"}}]
    )
    context = look(ledger, role_environment.driver(), "web")
    for _ in range(2):
        await ended(context)
        await released(context)

    lines = await kept(ledger)

    assert [one.kind for one in lines] == ["task", "ok", "end"] * 2
    assert [one.number for one in lines] == [1, 2, 3] * 2


async def test_a_secret_is_in_no_line(role_environment: RoleEnvironment, ledger: Ledger) -> None:
    tasks = [
        {"name": "say {{ password }}", "ansible.builtin.debug": {"msg": "it is {{ password }}"}},
        {"name": "shout", "ansible.builtin.command": "echo {{ password }}"},
        {"name": "fail", "ansible.builtin.fail": {"msg": "no {{ password | b64encode }}"}},
    ]
    role_environment.role("leaky", pre_install=tasks)
    context = look(ledger, role_environment.driver(), "leaky", SECRET)

    with pytest.raises(Refused):
        await ended(context)

    rows = await ledger.read("looking", "select l::text from story_lines l")
    everything = "\n".join(row[0] for row in rows)
    assert "it is ********" in everything, "it did tell"
    assert "failed" in everything
    assert SECRET not in everything
    assert "Y29ycmVjdC1ob3JzZ" not in everything
