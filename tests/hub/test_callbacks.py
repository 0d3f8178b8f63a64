"""The door for results of automation: who is heard, what is kept, what strangers learn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from boatyard.operator.callbacks import LARGEST_BODY
from tests.support.control_plane import ControlPlane, free_port
from tests.support.kube_hub.api_server import admin, hang_up, new_place, until
from tests.support.kube_hub.eda_listener import EdaEvent, EdaHarness, eda_harness, report
from tests.support.kube_hub.environment import KubeHubEnvironment

WANTED = RunSpec("act", "")
GOOD = {"result": "succeeded", "facts": {"url": "x"}}


@pytest.fixture
async def eda(plane: ControlPlane) -> AsyncIterator[EdaHarness]:
    client = admin(plane)
    try:
        _, system = await new_place(client)
        async with eda_harness(client, system) as harness:
            yield harness
    finally:
        await hang_up(client)


async def sent(eda: EdaHarness, key: str = "o-1/run") -> EdaEvent:
    await eda.driver().ensure_run(key, WANTED)
    return eda.listener.events[-1]


async def test_a_result_is_stored_and_its_replay_is_answered_with_it(eda: EdaHarness) -> None:
    event = await sent(eda)
    first = await event.report(GOOD)
    assert first[0] == 200
    assert first[1]["result"]["facts"] == {"url": "x"}
    for late in (GOOD, {"result": "failed", "message": "no"}, {"result": "again"}):
        assert await event.report(late) == first
    assert await eda.driver().ensure_run("o-1/run", WANTED) == Done({"url": "x"})


async def test_the_very_same_message_again_changes_nothing(eda: EdaHarness) -> None:
    event = await sent(eda)
    timestamp = str(int(time.time()) - 10)
    first = await event.report({"result": "failed", "message": "no"}, timestamp=timestamp)
    again = await event.report({"result": "failed", "message": "no"}, timestamp=timestamp)
    assert first == again
    ends = [one for one in await eda.driver().events("o-1/run") if one.kind == "end"]
    assert len(ends) == 1


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"secret": "another"}, id="another secret"),
        pytest.param({"signature": ""}, id="no signature"),
        pytest.param({"signature": "sha256=00"}, id="a made up one"),
        pytest.param({"timestamp": "1"}, id="an old one"),
        pytest.param({"timestamp": str(int(time.time()) + 3600)}, id="one from the future"),
        pytest.param({"timestamp": "soon"}, id="no time at all"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whoever_cannot_sign_is_answered_like_one_who_asks_for_nothing(
    eda: EdaHarness, how: dict[str, Any], method: str
) -> None:
    event = await sent(eda)
    callback = event.content["callback"]
    body = GOOD if method == "POST" else None
    nowhere = {**callback, "url": callback["url"][:-1] + "a"}
    assert nowhere["url"] != callback["url"] or callback["url"].endswith("a")
    stranger = await report(callback, body, method=method, **how)
    lost = await report(nowhere, body, method=method, **how)
    other = await report({**callback, "url": f"{eda.door}/automation/runs/boatyard-hub"}, body)
    assert stranger == lost == other == (403, {"error": "refused"})
    kept = await eda.runs.get("o-1/run")
    assert kept is not None
    assert not kept.run.is_over


async def test_the_secret_of_one_run_opens_no_other(eda: EdaHarness) -> None:
    one, other = await sent(eda, "o-1/run"), await sent(eda, "o-2/run")
    mixed = {**one.content["callback"], "secret": other.content["callback"]["secret"]}
    assert (await report(mixed, GOOD))[0] == 403


async def test_a_run_whose_place_was_taken_is_not_heard(eda: EdaHarness) -> None:
    event = await sent(eda)
    await eda.driver().ensure_run("o-1/run", RunSpec("act", "", attempt=2))
    for body, method in ((GOOD, "POST"), (None, "GET")):
        assert (await event.report(body, method=method))[0] == 403
    assert (await eda.listener.events[-1].report(GOOD))[0] == 200


async def test_the_holder_of_the_secret_may_ask_how_it_stands(eda: EdaHarness) -> None:
    event = await sent(eda)
    assert await event.report(None, method="GET") == (200, {"state": "sent", "result": None})
    await event.report(GOOD)
    status, said = await event.report(None, method="GET")
    assert (status, said["state"]) == (200, "succeeded")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        {},
        {"result": "maybe"},
        {"result": "succeeded", "facts": {"a": 1}},
        {"result": "succeeded", "more": 1},
        {"result": "succeeded", "facts": {str(n): "x" for n in range(51)}},
        {"result": "succeeded", "facts": {"a": "x" * 5000}},
    ],
)
async def test_what_is_no_result_is_told_to_its_author_and_not_kept(
    eda: EdaHarness, body: object
) -> None:
    event = await sent(eda)
    status, _ = await event.report(body)
    assert status == 400
    assert (await event.report(GOOD))[0] == 200


async def test_nobody_can_fill_the_operator_with_a_large_body(eda: EdaHarness) -> None:
    event = await sent(eda)
    status, _ = await event.report(b" " * (LARGEST_BODY + 1))
    assert status == 413


async def test_words_of_failure_are_cut_to_a_length(eda: EdaHarness) -> None:
    event = await sent(eda)
    await event.report({"result": "failed", "message": "x" * 5000})
    with pytest.raises(Refused) as caught:
        await eda.driver().ensure_run("o-1/run", WANTED)
    assert caught.value.reason == RUN_FAILED
    assert len(str(caught.value)) == 1000


async def test_of_many_results_at_once_one_stays(eda: EdaHarness) -> None:
    event = await sent(eda)
    bodies = [{"result": "succeeded", "facts": {"n": str(number)}} for number in range(8)]
    answers = await asyncio.gather(*(event.report(body) for body in bodies))
    told = {str(said) for status, said in answers if status == 200}
    assert len(told) == 1
    done = await eda.driver().ensure_run("o-1/run", WANTED)
    assert isinstance(done, Done)
    assert str({"n": done.facts["n"]}) in told.pop()


async def test_a_result_and_the_mark_of_the_sender_do_not_undo_each_other(eda: EdaHarness) -> None:
    """A playbook may be quicker than the driver's own note that it has sent the event."""
    driver = eda.driver()
    post = driver._sender.post_event

    async def reported_at_once(action: str, body: Any) -> None:
        await post(action, body)
        assert (await eda.listener.events[-1].report(GOOD))[0] == 200

    driver._sender.post_event = reported_at_once  # type: ignore[method-assign]
    await driver.ensure_run("o-1/run", WANTED)
    assert await driver.ensure_run("o-1/run", WANTED) == Done({"url": "x"})
    assert len(eda.listener.events) == 1


async def test_every_replica_hears_results_whether_it_leads_or_not(
    hub: KubeHubEnvironment, plane: ControlPlane
) -> None:
    ports = (free_port(), free_port())
    async with (
        eda_harness(hub.client, hub.system) as eda,
        hub.operator(callbacks=f"127.0.0.1:{ports[0]}") as one,
        hub.operator(callbacks=f"127.0.0.1:{ports[1]}") as other,
    ):

        async def led() -> bool:
            return one.operator.leadership.is_leader != other.operator.leadership.is_leader

        await until(led, "one of them leads")
        for number, port in enumerate(ports):
            driver = eda.driver(eda__callback_url=f"http://127.0.0.1:{port}")
            await driver.ensure_run(f"o-{number}/run", WANTED)
            assert (await eda.listener.events[-1].report(GOOD))[0] == 200
            assert await driver.ensure_run(f"o-{number}/run", WANTED) == Done({"url": "x"})
