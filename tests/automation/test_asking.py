"""A role that decides asks for steps: by the command line and forked alike, once, and told in the steps' own words."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from boatyard.api.authentication import TokenIssuer
from boatyard.automation.drivers.local import run_lock
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.run_records import STARTING
from boatyard.automation.port import RunSpec
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.boatyard import Order
from tests.support.role_requests_api import (
    DONE,
    FAILED,
    ID,
    KEY,
    KUBECONFIG,
    WAITING,
    RoleRequestsApi,
    asked_api,
)
from tests.support.role_runs import (
    PATIENCE,
    RoleEnvironment,
    Tasks,
    again,
    at_task,
    ended,
    event_texts,
    facts,
    processes_with,
    released,
    shell,
)

STEPS = ("hosts", "network", "addresses", "names", "install")


@pytest.fixture
async def api(ledger: Ledger, tmp_path: Path) -> AsyncIterator[RoleRequestsApi]:
    async with asked_api(ledger, TokenIssuer.load_or_create(tmp_path / "issuer.key")) as asked:
        yield asked


@pytest.fixture(params=["plain", "warm"])
def driver(
    request: pytest.FixtureRequest, role_environment: RoleEnvironment, api: RoleRequestsApi
) -> LocalAutomation:
    if request.param == "warm":
        return role_environment.warm_driver(make_run_token=api.passes)
    return role_environment.driver(make_run_token=api.passes)


def deciding(role_environment: RoleEnvironment, *tasks: dict[str, Any], **more: Any) -> RunSpec:
    wanted = role_environment.role("deciding", install=list(tasks))
    return again(wanted, may_request_steps=True, order={"id": ID}, **more)


def ask(step: str, **arguments: Any) -> dict[str, Any]:
    return {"name": step, f"boatyard.service.{step}": arguments, "register": step}


async def test_steps_are_asked_for_waited_for_and_told(
    role_environment: RoleEnvironment, api: RoleRequestsApi, driver: LocalAutomation
) -> None:
    wanted = deciding(
        role_environment,
        ask("hosts"),
        ask("names"),
        ask("platform"),
        shell("stat -c %a {{ platform.kubeconfig }}; cat {{ boatyard_kubeconfig }}", register="seen"),
        {"name": "same", "ansible.builtin.assert": {"that": ["seen.stdout_lines == wish"]}},
        facts(
            host="{{ hosts.nodes[0].host }}",
            name="{{ names.api_name }}",
            url="{{ platform.api_url }}",
            simulated="{{ platform.simulated }}",
            states="{{ [hosts.state, names.state, platform.state] | join(' ') }}",
        ),
        values={"wish": ["600", KUBECONFIG]},
    )  # fmt: skip
    await at_task(driver, KEY, wanted, "hosts")
    await api.until_asked("hosts")
    assert await api.asks() == {"hosts"}
    await api.steps(WAITING, "hosts", message="in its own time")
    await api.steps(DONE, "hosts")
    await api.until_asked("names")
    assert await api.asks() == {"hosts", "network", "addresses", "names"}
    await api.steps(DONE, "network", "addresses", "names")
    await api.until_asked("install")
    await api.steps(DONE, "install")

    done = await ended(driver, KEY, wanted)

    assert done.facts == {
        "host": "r1",
        "name": "api.web",
        "url": "https://api.web:6443",
        "simulated": "true",
        "states": "DONE DONE DONE",
    }
    story = list(await driver.events(KEY))
    assert event_texts(story, "changed")[:3] == ["hosts", "names", "platform"]
    await assert_nowhere(role_environment, driver, *api.tokens, "kubeconfig-secret")


async def assert_nowhere(
    role_environment: RoleEnvironment, driver: LocalAutomation, *secrets: str
) -> None:
    story = [f"{event.task} {event.text}" for event in await driver.events(KEY)]
    kept = [path.read_text(errors="replace") for path in role_environment.everything()]
    for secret in secrets:
        assert not [text for text in (*story, *kept) if secret in text]


async def test_asked_again_it_is_ok_and_not_changed(
    role_environment: RoleEnvironment, api: RoleRequestsApi, driver: LocalAutomation
) -> None:
    wanted = deciding(
        role_environment, ask("platform", wait=False), ask("hosts"), ask("names", wait="no"),
        {"name": "wait", "boatyard.service.wait": {"steps": ["network", "hosts"]}, "register": "w"},
        facts(cidr="{{ w.cidr }}", host="{{ w.nodes[0].host }}", state="{{ platform.state }}"),
    )  # fmt: skip
    await driver.ensure_run(KEY, wanted)
    await api.until_asked(*STEPS)
    await api.steps(DONE, "hosts", "network")

    done = await ended(driver, KEY, wanted)

    assert done.facts == {"cidr": "", "host": "r1", "state": "QUEUED"}
    story = list(await driver.events(KEY))
    assert event_texts(story, "changed") == ["platform"]
    assert event_texts(story, "ok") == ["hosts", "names", "wait", "report"]


@pytest.mark.parametrize(
    "step, stuck",
    [
        pytest.param("hosts", "hosts", id="the step itself"),
        pytest.param("names", "hosts", id="one that it needs"),
        pytest.param("platform", "pre_install", id="a part of the role before it"),
    ],
)
async def test_a_step_that_failed_fails_the_task_in_its_own_words(
    role_environment: RoleEnvironment, api: RoleRequestsApi, step: str, stuck: str
) -> None:
    driver = role_environment.driver(make_run_token=api.passes)
    wanted = deciding(role_environment, ask(step))
    await driver.ensure_run(KEY, wanted)
    await api.until_asked("hosts")
    await api.steps(FAILED, stuck, message="host r1 of hub boston has no power")

    with pytest.raises(Refused, match=f"'{step}': {stuck}: a host of the hub has no power"):
        await ended(driver, KEY, wanted)


WRONG: list[Any] = [
    pytest.param([{"boatyard.service.hosts": {"count": 3}}], "count: there is no such", id="names"),
    pytest.param([ask("hosts", timeout="soon")], "timeout: a number", id="a timeout"),
    pytest.param([ask("hosts", wait="perhaps")], "wait: true or false", id="a truth"),
    pytest.param(
        [{"boatyard.service.wait": {"steps": ["storage"]}}],
        "'storage' is no step; there is hosts, network, addresses, names, platform",
        id="a step",
    ),
    pytest.param([{"boatyard.service.wait": {}}], "steps: name at least one", id="no step"),
    pytest.param(
        [{"boatyard.service.wait": {"steps": "names"}}],
        "names was not asked for: use boatyard.service.names before",
        id="one that nobody asked for",
    ),
]


@pytest.mark.parametrize("tasks, words", WRONG)
async def test_what_is_wrong_is_told_at_once(
    role_environment: RoleEnvironment, api: RoleRequestsApi, tasks: Tasks, words: str
) -> None:
    driver = role_environment.driver(make_run_token=api.passes)
    with pytest.raises(Refused, match=words):
        await ended(driver, KEY, deciding(role_environment, *tasks))
    assert await api.asks() == frozenset()


async def test_a_timeout_says_what_it_waited_for(
    role_environment: RoleEnvironment, api: RoleRequestsApi
) -> None:
    driver = role_environment.driver(make_run_token=api.passes)
    wanted = deciding(role_environment, ask("hosts", timeout=1))
    await driver.ensure_run(KEY, wanted)
    await api.steps(WAITING, "hosts", message="one of three is there")

    with pytest.raises(
        Refused, match=r"not done after 1 s: hosts \((one of three is there|queued)\)"
    ):
        await ended(driver, KEY, wanted)


async def test_other_parts_of_a_role_have_no_pass(
    role_environment: RoleEnvironment, api: RoleRequestsApi
) -> None:
    driver = role_environment.driver(make_run_token=api.passes)
    wanted = again(deciding(role_environment, ask("hosts")), may_request_steps=False)
    with pytest.raises(Refused, match=r"only tasks/install\.yaml may ask"):
        await ended(driver, KEY, wanted)
    assert api.tokens == []


async def test_where_no_pass_can_be_made_it_is_not_begun(role_environment: RoleEnvironment) -> None:
    driver = role_environment.driver()
    with pytest.raises(Unavailable):
        await driver.ensure_run(KEY, deciding(role_environment, ask("hosts")))
    assert await driver.list_owned() == []
    assert {
        path.name
        for path in role_environment.everything()
        if path.parent == role_environment.place(KEY)
    } == {STARTING}


async def test_the_token_is_on_no_command_line_in_no_environment_and_in_no_story(
    role_environment: RoleEnvironment, api: RoleRequestsApi, driver: LocalAutomation
) -> None:
    wanted = deciding(
        role_environment,
        {"name": "show", "ansible.builtin.debug": {"var": "boatyard_api"}},
        shell("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'", "look", register="seen"),
        {"name": "print", "ansible.builtin.debug": {"msg": "{{ boatyard_api.token }} {{ seen.stdout }}"}},
        ask("hosts"),
    )  # fmt: skip
    await at_task(driver, KEY, wanted, "hosts")

    (token,) = api.tokens
    assert processes_with(token) == {}
    await assert_nowhere(role_environment, driver, token)
    story = list(await driver.events(KEY))
    assert [event.text for event in story if "********" in event.text], "it was said and hidden"
    environ = next(event.text for event in story if event.task == "print" and event.kind == "ok")
    assert environ.count("********") == 1, "only where the role said it"
    await released(driver, KEY)


async def test_a_run_killed_and_begun_again_asks_again_and_nothing_is_doubled(
    role_environment: RoleEnvironment, api: RoleRequestsApi, driver: LocalAutomation
) -> None:
    wanted = deciding(role_environment, ask("hosts"), facts(host="{{ hosts.nodes[0].host }}"))
    await at_task(driver, KEY, wanted, "hosts")
    await api.until_asked("hosts")
    version = (await api.order()).metadata.version
    killed(role_environment)
    await at_task(driver, KEY, wanted, "hosts")
    assert (await api.order()).metadata.version == version, "asking again wrote nothing"
    await api.steps(DONE, "hosts")

    assert (await ended(driver, KEY, wanted)).facts == {"host": "r1"}
    assert len(api.tokens) == 2, "one for each start"
    assert event_texts(list(await driver.events(KEY)), "changed") == []


def killed(role_environment: RoleEnvironment) -> None:
    """Its supervisor, and with it the run."""
    held = run_lock.find_holder(role_environment.place(KEY) / "lock")
    assert held is not None
    run_lock.send_signal(held, signal.SIGKILL)
    assert run_lock.wait_for_end(held, PATIENCE)
    os.close(held)


async def test_an_order_that_is_deleted_makes_the_token_worthless(
    role_environment: RoleEnvironment, api: RoleRequestsApi, driver: LocalAutomation
) -> None:
    wanted = deciding(role_environment, ask("hosts"))
    await at_task(driver, KEY, wanted, "hosts")
    await api.until_asked("hosts")

    def leave(order: Order) -> Order:
        now = order.metadata.creation_timestamp
        return replace(order, metadata=replace(order.metadata, deletion_timestamp=now))

    await api.change(leave)

    with pytest.raises(Refused, match="no longer good: its run is over"):
        await ended(driver, KEY, wanted)
