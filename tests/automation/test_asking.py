"""A role that decides asks for steps: by the command line and forked alike, once, and told in the steps' own words."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from boatyard.api.callers import Issuer
from boatyard.automation.drivers.local import holding
from boatyard.automation.drivers.local.driver import LocalAutomation
from boatyard.automation.drivers.local.records import STARTING
from boatyard.automation.port import RunWanted
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.boatyard import Order
from tests.support.asking import DONE, FAILED, ID, KEY, KUBECONFIG, WAITING, Asked, asked_api
from tests.support.automation import (
    PATIENCE,
    Site,
    Tasks,
    again,
    at_task,
    ended,
    facts,
    processes_with,
    released,
    shell,
    told,
)

STEPS = ("hosts", "network", "addresses", "names", "install")


@pytest.fixture
async def api(ledger: Ledger, tmp_path: Path) -> AsyncIterator[Asked]:
    async with asked_api(ledger, Issuer.load_or_create(tmp_path / "issuer.key")) as asked:
        yield asked


@pytest.fixture(params=["plain", "warm"])
def driver(request: pytest.FixtureRequest, site: Site, api: Asked) -> LocalAutomation:
    if request.param == "warm":
        return site.warm_driver(passes=api.passes)
    return site.driver(passes=api.passes)


def deciding(site: Site, *tasks: dict[str, Any], **more: Any) -> RunWanted:
    wanted = site.role("deciding", install=list(tasks))
    return again(wanted, may_ask=True, order={"id": ID}, **more)


def ask(step: str, **arguments: Any) -> dict[str, Any]:
    return {"name": step, f"boatyard.service.{step}": arguments, "register": step}


async def test_steps_are_asked_for_waited_for_and_told(
    site: Site, api: Asked, driver: LocalAutomation
) -> None:
    wanted = deciding(
        site,
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
    assert told(story, "changed")[:3] == ["hosts", "names", "platform"]
    await assert_nowhere(site, driver, *api.tokens, "kubeconfig-secret")


async def assert_nowhere(site: Site, driver: LocalAutomation, *secrets: str) -> None:
    story = [f"{event.task} {event.text}" for event in await driver.events(KEY)]
    kept = [path.read_text(errors="replace") for path in site.everything()]
    for secret in secrets:
        assert not [text for text in (*story, *kept) if secret in text]


async def test_asked_again_it_is_ok_and_not_changed(
    site: Site, api: Asked, driver: LocalAutomation
) -> None:
    wanted = deciding(
        site, ask("platform", wait=False), ask("hosts"), ask("names", wait="no"),
        {"name": "wait", "boatyard.service.wait": {"steps": ["network", "hosts"]}, "register": "w"},
        facts(cidr="{{ w.cidr }}", host="{{ w.nodes[0].host }}", state="{{ platform.state }}"),
    )  # fmt: skip
    await driver.ensure_run(KEY, wanted)
    await api.until_asked(*STEPS)
    await api.steps(DONE, "hosts", "network")

    done = await ended(driver, KEY, wanted)

    assert done.facts == {"cidr": "", "host": "r1", "state": "QUEUED"}
    story = list(await driver.events(KEY))
    assert told(story, "changed") == ["platform"]
    assert told(story, "ok") == ["hosts", "names", "wait", "report"]


@pytest.mark.parametrize(
    "step, stuck",
    [
        pytest.param("hosts", "hosts", id="the step itself"),
        pytest.param("names", "hosts", id="one that it needs"),
        pytest.param("platform", "pre_install", id="a part of the role before it"),
    ],
)
async def test_a_step_that_failed_fails_the_task_in_its_own_words(
    site: Site, api: Asked, step: str, stuck: str
) -> None:
    driver = site.driver(passes=api.passes)
    wanted = deciding(site, ask(step))
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
    site: Site, api: Asked, tasks: Tasks, words: str
) -> None:
    driver = site.driver(passes=api.passes)
    with pytest.raises(Refused, match=words):
        await ended(driver, KEY, deciding(site, *tasks))
    assert await api.asks() == frozenset()


async def test_a_timeout_says_what_it_waited_for(site: Site, api: Asked) -> None:
    driver = site.driver(passes=api.passes)
    wanted = deciding(site, ask("hosts", timeout=1))
    await driver.ensure_run(KEY, wanted)
    await api.steps(WAITING, "hosts", message="one of three is there")

    with pytest.raises(
        Refused, match=r"not done after 1 s: hosts \((one of three is there|queued)\)"
    ):
        await ended(driver, KEY, wanted)


async def test_other_parts_of_a_role_have_no_pass(site: Site, api: Asked) -> None:
    driver = site.driver(passes=api.passes)
    wanted = again(deciding(site, ask("hosts")), may_ask=False)
    with pytest.raises(Refused, match=r"only tasks/install\.yaml may ask"):
        await ended(driver, KEY, wanted)
    assert api.tokens == []


async def test_where_no_pass_can_be_made_it_is_not_begun(site: Site) -> None:
    driver = site.driver()
    with pytest.raises(Unavailable):
        await driver.ensure_run(KEY, deciding(site, ask("hosts")))
    assert await driver.list_owned() == []
    assert {path.name for path in site.everything() if path.parent == site.place(KEY)} == {STARTING}


async def test_the_token_is_on_no_command_line_in_no_environment_and_in_no_story(
    site: Site, api: Asked, driver: LocalAutomation
) -> None:
    wanted = deciding(
        site,
        {"name": "show", "ansible.builtin.debug": {"var": "boatyard_api"}},
        shell("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'", "look", register="seen"),
        {"name": "print", "ansible.builtin.debug": {"msg": "{{ boatyard_api.token }} {{ seen.stdout }}"}},
        ask("hosts"),
    )  # fmt: skip
    await at_task(driver, KEY, wanted, "hosts")

    (token,) = api.tokens
    assert processes_with(token) == {}
    await assert_nowhere(site, driver, token)
    story = list(await driver.events(KEY))
    assert [event.text for event in story if "********" in event.text], "it was said and hidden"
    environ = next(event.text for event in story if event.task == "print" and event.kind == "ok")
    assert environ.count("********") == 1, "only where the role said it"
    await released(driver, KEY)


async def test_a_run_killed_and_begun_again_asks_again_and_nothing_is_doubled(
    site: Site, api: Asked, driver: LocalAutomation
) -> None:
    wanted = deciding(site, ask("hosts"), facts(host="{{ hosts.nodes[0].host }}"))
    await at_task(driver, KEY, wanted, "hosts")
    await api.until_asked("hosts")
    version = (await api.order()).metadata.version
    killed(site)
    await at_task(driver, KEY, wanted, "hosts")
    assert (await api.order()).metadata.version == version, "asking again wrote nothing"
    await api.steps(DONE, "hosts")

    assert (await ended(driver, KEY, wanted)).facts == {"host": "r1"}
    assert len(api.tokens) == 2, "one for each start"
    assert told(list(await driver.events(KEY)), "changed") == []


def killed(site: Site) -> None:
    """Its supervisor, and with it the run."""
    held = holding.holder(site.place(KEY) / "lock")
    assert held is not None
    holding.send(held, signal.SIGKILL)
    assert holding.wait_for_end(held, PATIENCE)
    os.close(held)


async def test_an_order_that_is_deleted_makes_the_token_worthless(
    site: Site, api: Asked, driver: LocalAutomation
) -> None:
    wanted = deciding(site, ask("hosts"))
    await at_task(driver, KEY, wanted, "hosts")
    await api.until_asked("hosts")

    def leave(order: Order) -> Order:
        now = order.metadata.creation_timestamp
        return replace(order, metadata=replace(order.metadata, deletion_timestamp=now))

    await api.change(leave)

    with pytest.raises(Refused, match="no longer good: its run is over"):
        await ended(driver, KEY, wanted)
