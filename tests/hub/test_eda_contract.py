"""The automation port's promises, kept by the driver `eda` on a real API server; and what it promises beyond them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from boatyard.automation.port import Automation, RunSpec
from boatyard.kube.kinds import SECRETS
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from tests.contracts import test_automation
from tests.contracts.test_automation import Rule, Started
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place
from tests.support.kube_hub.eda_listener import EdaHarness, eda_harness

WANTED = RunSpec("act", "")


@pytest.fixture
async def eda(plane: ControlPlane) -> AsyncIterator[EdaHarness]:
    client = admin(plane)
    try:
        _, system = await new_place(client)
        async with eda_harness(client, system) as harness:
            yield harness
    finally:
        await hang_up(client)


@dataclass
class EdaAutomationHarness:
    """As the contract's rules want it."""

    eda: EdaHarness
    automation: Automation
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def order(self) -> str:
        return f"order-{next(self.numbers)}"

    def started(self) -> Sequence[Started]:
        return [
            Started(
                one.action,
                one.content["run"]["attempt"],
                {
                    name: value
                    for name, value in one.content.items()
                    if name not in ("run", "order", "callback")
                },
            )
            for one in self.eda.listener.events
        ]

    async def finish(self, *, message: str = "", **facts: str) -> None:
        result = "failed" if message else "succeeded"
        for event in self.eda.listener.events:
            # Those of earlier runs are answered with what they said, or turned away.
            await event.report({"result": result, "message": message, "facts": facts})

    async def misbehave(self, mood: str) -> None:
        settings = {"eda__url": "http://127.0.0.1:9"} if mood == "dead" else {}
        self.automation = self.eda.driver(**settings)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("rule", test_automation.RULES, ids=lambda rule: rule.__name__)
async def test_automation(rule: Rule, eda: EdaHarness) -> None:
    await rule(EdaAutomationHarness(eda, eda.driver()))


# --- beyond the port -----------------------------------------------------------------------------


async def test_an_event_is_recorded_before_it_is_sent(eda: EdaHarness) -> None:
    eda.listener.status = 503
    with pytest.raises(Unavailable):
        await eda.driver().ensure_run("o-1/run", WANTED)
    kept = await eda.runs.get("o-1/run")
    assert kept is not None
    assert (kept.run.state, kept.run.action) == ("recorded", "act")

    eda.listener.status = 200
    await eda.driver().ensure_run("o-1/run", WANTED)
    (event,) = eda.listener.events
    assert event.run == kept.run.id


async def test_what_was_acknowledged_and_never_answered_is_sent_again_under_the_same_id(
    eda: EdaHarness,
) -> None:
    driver = eda.driver(eda__resend_seconds="600")
    await driver.ensure_run("o-1/run", WANTED)
    eda.ahead = 599
    await driver.ensure_run("o-1/run", WANTED)
    assert len(eda.listener.events) == 1
    eda.ahead = 601
    await driver.ensure_run("o-1/run", WANTED)
    await driver.ensure_run("o-1/run", WANTED)
    first, second = eda.listener.events
    assert first.run == second.run
    assert first.content["callback"] == second.content["callback"]


async def test_whoever_could_not_carry_it_out_now_gets_it_again(eda: EdaHarness) -> None:
    driver = eda.driver()
    await driver.ensure_run("o-1/run", WANTED)
    status, _ = await eda.listener.events[0].report({"result": "again", "message": "no answer"})
    assert status == 200
    await driver.ensure_run("o-1/run", WANTED)
    first, second = eda.listener.events
    assert first.run == second.run
    await second.report({"result": "succeeded"})
    assert await driver.ensure_run("o-1/run", WANTED) == Done()


async def test_a_hub_sends_no_more_a_second_than_it_may(eda: EdaHarness) -> None:
    driver = eda.driver(eda__per_second="2")
    eda.ahead = 0.0
    answers = [await driver.ensure_run(f"o-{number}/run", WANTED) for number in range(5)]
    late = [one for one in answers if isinstance(one, Waiting) and one.reason == "RateLimited"]
    # On a slow machine a token comes back meanwhile.
    assert 1 <= len(late) <= 3
    assert len(eda.listener.events) == 5 - len(late)
    eda.ahead = 60.0
    for number in range(5):
        await driver.ensure_run(f"o-{number}/run", WANTED)
        eda.ahead += 1.0
    assert len({one.run for one in eda.listener.events}) == len(eda.listener.events) == 5


async def test_of_many_who_ask_at_once_one_run_comes(eda: EdaHarness) -> None:
    drivers = [eda.driver() for _ in range(6)]
    await asyncio.gather(*(one.ensure_run("o-1/run", WANTED) for one in drivers))
    await drivers[0].ensure_run("o-1/run", WANTED)
    assert len({event.run for event in eda.listener.events}) == 1


async def test_secrets_and_files_are_not_put_into_events(eda: EdaHarness) -> None:
    for wanted in (
        RunSpec("act", "", secrets={"password": "x"}),
        RunSpec("act", "", files={"kubeconfig": "x"}),
        RunSpec("../etc", ""),
    ):
        with pytest.raises(Refused):
            await eda.driver().ensure_run("o-1/run", wanted)
    assert await eda.driver().list_owned() == []


async def test_a_token_is_shown_to_the_webhook_and_in_no_error(eda: EdaHarness) -> None:
    driver = eda.driver(eda__secret="eda")
    with pytest.raises(Unavailable) as caught:
        await driver.check_ready()
    assert caught.value.reason == "NoSecret"
    body = {"metadata": {"name": "eda"}, "stringData": {"token": "hunter2\n"}}
    await eda.client.create(SECRETS, body, eda.system)
    await driver.check_ready()
    await driver.ensure_run("o-1/run", WANTED)
    (event,) = eda.listener.events
    assert event.headers["Authorization"] == "Bearer hunter2"
    eda.listener.status = 401
    with pytest.raises(Unavailable) as caught:
        await driver.ensure_run("o-2/run", WANTED)
    assert "hunter2" not in str(caught.value)
    await eda.client.merge_patch(SECRETS, "eda", {"stringData": {"token": "a\r\nb"}}, eda.system)
    with pytest.raises(Refused) as refused:
        await driver.check_ready()
    assert refused.value.reason == "BadSettings"


async def test_another_hub_on_the_same_api_server_sees_its_own_runs(eda: EdaHarness) -> None:
    await eda.driver().ensure_run("o-1/run", WANTED)
    eda.hub = "hub-2"
    assert await eda.driver().list_owned() == []


async def test_the_record_shows_everything_but_the_secret(eda: EdaHarness) -> None:
    await eda.driver().ensure_run("o-1/run", WANTED)
    (event,) = eda.listener.events
    (kept,) = (await eda.client.list(SECRETS, eda.system)).items
    secret = event.content["callback"]["secret"]
    assert len(secret) >= 32
    assert secret not in str(kept["metadata"])
    assert secret not in repr(await eda.runs.get("o-1/run"))
