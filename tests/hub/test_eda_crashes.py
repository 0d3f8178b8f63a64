"""Whoever asks for a run dies by SIGKILL between record, post and mark: the run is found, and its net result is one."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from boatyard.automation.port import RunSpec
from boatyard.model.outcome import Done, Waiting
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place
from tests.support.kube_hub.eda_listener import EdaHarness, eda_harness
from tests.support.kube_hub.killed_sender import PLACES

WANTED = RunSpec("act", "", values={"text": "{{ x }}"})
KEY = "o-1/run"
# What is there when it has died: the record's state, and how many events were taken.
FOUND = {
    "before the record": ("", 0),
    "after the record": ("recorded", 0),
    "before the post": ("recorded", 0),
    "after the post": ("recorded", 1),
    "after the mark": ("sent", 1),
}


@pytest.fixture
async def eda(plane: ControlPlane) -> AsyncIterator[EdaHarness]:
    client = admin(plane)
    try:
        _, system = await new_place(client)
        async with eda_harness(client, system) as harness:
            yield harness
    finally:
        await hang_up(client)


async def die(eda: EdaHarness, plane: ControlPlane, place: str) -> None:
    told = {
        "kubeconfig": plane.kubeconfig(),
        "system": eda.system,
        "settings": eda.settings,
        "key": KEY,
        "dies": place,
    }
    words = (sys.executable, "-m", "tests.support.kube_hub.killed_sender", json.dumps(told))
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("place", PLACES)
async def test_the_run_goes_on_wherever_somebody_dies(
    eda: EdaHarness, plane: ControlPlane, place: str
) -> None:
    await die(eda, plane, place)
    kept = await eda.runs.get(KEY)
    state = kept.run.state if kept is not None else ""
    assert (state, len(eda.listener.events)) == FOUND[place]

    driver = eda.driver()
    assert isinstance(await driver.ensure_run(KEY, WANTED), Waiting)

    # Every event is of the one run, however often it was sent; each of them reports, and one result stays.
    assert {event.run for event in eda.listener.events} == {(await driver.list_owned())[0].name}
    if kept is not None:
        assert eda.listener.events[-1].run == kept.run.id
    for number, event in enumerate(eda.listener.events):
        status, said = await event.report({"result": "succeeded", "facts": {"n": str(number)}})
        assert (status, said["result"]["facts"]) == (200, {"n": "0"})
    assert await driver.ensure_run(KEY, WANTED) == Done({"n": "0"})
    assert len(await driver.list_owned()) == 1


async def test_dying_at_every_place_one_after_the_other_is_still_one_run(
    eda: EdaHarness, plane: ControlPlane
) -> None:
    for place in ("after the record", "before the post", "after the post", "after the post"):
        await die(eda, plane, place)
    await eda.driver().ensure_run(KEY, WANTED)
    assert len(eda.listener.events) == 3
    assert len({event.run for event in eda.listener.events}) == 1
