"""Stories of a cluster's runs over both doors: read, watched, followed; by tenants, operators and strangers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from msgspec.structs import replace

from boatyard.api import stories as stories_module
from boatyard.ledger.changes import Archive, Insert, Replace
from boatyard.ledger.stories import StoryLine
from boatyard.model import wire
from boatyard.model.generated.boatyard import Order, OrderStatus, Step, StepState
from boatyard.model.generated.osac import Cluster, ClusterState, Metadata
from tests.api import samples
from tests.api.doors import OURS, PUBLIC, Door, Failed, Yard, failed

pytestmark = pytest.mark.asyncio(loop_scope="module")

STORIES = f"{OURS}.Stories"
BY_KIND = {sample.kind: sample for sample in samples.SAMPLES}
RUNNING = Step(name="post_install", state=StepState.WAITING)
DOORS = pytest.mark.parametrize("name", ["grpc", "rest"])


async def _ordered(yard: Yard, *steps: Step) -> Any:
    body = {"object": BY_KIND["Cluster"].fresh()}
    cluster = await yard.grpc.call(
        f"{PUBLIC}.Clusters", "Create", body, token=yard.token("operator")
    )
    now = yard.ledger.clock.now()
    order = Order(
        id=cluster["id"],
        metadata=Metadata(name=cluster["id"], tenant="acme", creation_timestamp=now, generation=1),
        status=OrderStatus(steps=steps),
    )
    await yard.ledger.commit([Insert(order)], now=now)
    return cluster


async def _tell(yard: Yard, id: str, *texts: str, run: str = "post_install") -> None:
    last = await yard.ledger.stories.last(id, run)
    number = last.number if last else 0
    now = yard.ledger.clock.now()
    lines = [
        StoryLine(run, run.partition("/")[0], 1, "a", number + n, now, "ok", f"task {text}", text)
        for n, text in enumerate(texts, start=1)
    ]
    await yard.ledger.stories.keep(id, run, lines, now)


async def _now(yard: Yard, id: str, state: ClusterState, *steps: Step) -> None:
    """What a worker writes after it has kept the lines."""
    order = await yard.ledger.documents.get(Order, id)
    cluster = await yard.ledger.documents.get(Cluster, id)
    assert order is not None
    assert cluster is not None
    seen = replace(cluster.status, state=state, observed_generation=cluster.metadata.generation)
    await yard.ledger.commit(
        [
            Replace(replace(order, status=replace(order.status, steps=steps))),
            Replace(replace(cluster, status=seen)),
        ],
        now=yard.ledger.clock.now(),
    )


async def _end(yard: Yard, id: str) -> None:
    order, cluster = (
        await yard.ledger.documents.get(Order, id),
        await yard.ledger.documents.get(Cluster, id),
    )
    assert order is not None
    assert cluster is not None
    await yard.ledger.commit([Archive(order), Archive(cluster)], now=yard.ledger.clock.now())


async def _watch(
    yard: Yard, name: str, cluster: str, token: str = "", **asked: Any
) -> AsyncIterator[dict[str, Any]]:
    token = token or yard.token("viewer")
    if name == "rest":
        path = f"/api/boatyard/v1/clusters/{cluster}/story/watch"
        query = {key: str(value).lower() for key, value in asked.items()}
        headers = {"authorization": f"Bearer {token}"}
        async with yard.client.stream("GET", path, params=query, headers=headers) as response:
            if response.status_code != 200:
                told = json.loads(await response.aread())
                raise Failed(str(response.status_code), told["message"], {})
            async for line in response.aiter_lines():
                if line:
                    yield json.loads(line)["result"]
        return
    request = wire.message(f"{OURS}.StoriesWatchRequest")(cluster=cluster, **asked)
    call = yard.channel.unary_stream(f"/{STORIES}/Watch")(
        request.SerializeToString(), metadata=(("authorization", f"Bearer {token}"),)
    )
    try:
        async for data in call:
            message: Any = wire.message(f"{OURS}.StoriesWatchResponse").FromString(data)
            yield json_format.MessageToDict(message, preserving_proto_field_name=True)
    except grpc.aio.AioRpcError as error:
        raise failed(error) from error


async def _all(yard: Yard, name: str, cluster: str, token: str = "", **asked: Any) -> list[Any]:
    async with asyncio.timeout(30):
        return [part async for part in _watch(yard, name, cluster, token, **asked)]


def texts(parts: list[Any]) -> list[str]:
    return [part["line"]["text"] for part in parts]


async def test_a_story_is_read_by_id_and_by_name(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one", "two")
    for key in (cluster["id"], cluster["metadata"]["name"]):
        for role in ("viewer", "member", "operator"):
            shown = await door.call(STORIES, "Read", {"cluster": key}, token=yard.token(role))
            assert [one["text"] for one in shown["items"]] == ["one", "two"]
            assert "missing" not in shown
    line = shown["items"][1]
    assert line.pop("at")
    assert line == {
        "id": "2",
        "run": "post_install",
        "part": "post_install",
        "attempt": 1,
        "number": "2",
        "kind": "ok",
        "task": "task two",
        "text": "two",
    }


async def test_a_story_goes_on_after_a_line_and_is_chosen_by_run(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one", "two")
    await _tell(yard, cluster["id"], "three", run="scale/2")
    for more, expected in (
        ({"after": "1"}, ["two", "three"]),
        ({"limit": 1}, ["one"]),
        ({"run": "scale"}, ["three"]),
        ({"run": "scale/2", "after": "3"}, []),
        ({"run": "nothing"}, []),
    ):
        body = {"cluster": cluster["id"], **more}
        shown = await door.call(STORIES, "Read", body, token=yard.token("viewer"))
        assert [one["text"] for one in shown.get("items", [])] == expected, more


async def test_a_cluster_whose_runs_told_nothing_has_an_empty_story(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard)
    asked = {"cluster": cluster["id"]}
    assert await door.call(STORIES, "Read", asked, token=yard.token("viewer")) == {}
    assert await _all(yard, door.name, cluster["id"]) == []


@pytest.mark.parametrize(
    "field, value",
    [
        pytest.param("after", "nonsense", id="no number"),
        pytest.param("after", "-1", id="negative"),
        pytest.param("after", "٣", id="a number in another script"),
        pytest.param("after", "9" * 40, id="too long"),
        pytest.param("after", "7", id="not told yet"),
        pytest.param("limit", -1, id="a negative limit"),
        pytest.param("run", "x" * 500, id="a run too long"),
        pytest.param("run", "a\0b", id="a run with a zero"),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field(
    yard: Yard, door: Door, field: str, value: Any
) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one")
    body = {"cluster": cluster["id"], field: value}
    with pytest.raises(Failed) as refused:
        await door.call(STORIES, "Read", body, token=yard.token("viewer"))
    assert refused.value.code == "INVALID_ARGUMENT"
    assert list(refused.value.violations) == [field]


@DOORS
async def test_a_stranger_learns_nothing(yard: Yard, name: str) -> None:
    cluster = await _ordered(yard, RUNNING)
    await _tell(yard, cluster["id"], "one")
    keys = (cluster["id"], cluster["metadata"]["name"], "0" * len(cluster["id"]))
    answers = set()
    for key in keys:
        for asked in ({}, {"follow": True}, {"after": "1"}, {"after": "99"}):
            with pytest.raises(Failed) as refused:
                await _all(yard, name, key, yard.token("admin", "globex"), **asked)
            answers.add((refused.value.code, refused.value.message.replace(key, "KEY")))
        body = {"cluster": key}
        with pytest.raises(Failed) as refused:
            await yard.door(name).call(STORIES, "Read", body, token=yard.token("admin", "globex"))
        assert refused.value.code == "NOT_FOUND"
    assert len(answers) == 1


async def test_a_strangers_story_stays_theirs_when_the_cluster_is_gone(
    yard: Yard, door: Door
) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one")
    await _end(yard, cluster["id"])
    for key in (cluster["id"], cluster["metadata"]["name"]):
        body = {"cluster": key}
        shown = await door.call(STORIES, "Read", body, token=yard.token("viewer"))
        assert [one["text"] for one in shown["items"]] == ["one"]
        assert texts(await _all(yard, door.name, key, follow=True)) == ["one"]
        with pytest.raises(Failed) as refused:
            await door.call(STORIES, "Read", body, token=yard.token("admin", "globex"))
        assert refused.value.code == "NOT_FOUND"


async def test_names_of_the_provider_are_for_operators(yard: Yard, door: Door) -> None:
    cluster = await _ordered(yard)
    now = yard.ledger.clock.now()
    line = StoryLine(
        "role", "install", 1, "a", 1, now, "ok", "ask rack1-07", "rack1-07 is up",
        shown_task="ask a host", shown_text="a host is up",
    )  # fmt: skip
    await yard.ledger.stories.keep(cluster["id"], "role", [line], now)
    body = {"cluster": cluster["id"]}
    for role, expected in (("admin", "a host is up"), ("operator", "rack1-07 is up")):
        shown = await door.call(STORIES, "Read", body, token=yard.token(role))
        assert shown["items"][0]["text"] == expected
        (part,) = await _all(yard, door.name, cluster["id"], yard.token(role))
        assert part["line"]["text"] == expected
        assert ("rack1" in json.dumps([shown, part])) is (role == "operator")


@DOORS
async def test_lines_that_are_no_longer_kept_are_told(
    yard: Yard, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await _ordered(yard)
    monkeypatch.setattr(yard.ledger.stories, "_most_lines", 3)
    await _tell(yard, cluster["id"], *map(str, range(1, 11)))
    parts = await _all(yard, name, cluster["id"])
    assert parts[0] == {"missing": "7"}
    assert texts(parts[1:]) == ["8", "9", "10"]
    parts = await _all(yard, name, cluster["id"], after="5")
    assert parts[0] == {"missing": "2"}
    assert texts(await _all(yard, name, cluster["id"], after="8")) == ["9", "10"]


@DOORS
async def test_a_long_story_is_sent_page_by_page(
    yard: Yard, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stories_module, "PAGE", 4)
    cluster = await _ordered(yard)
    told = [str(number) for number in range(12)]
    await _tell(yard, cluster["id"], *told)
    assert texts(await _all(yard, name, cluster["id"])) == told


@DOORS
async def test_following_sends_what_comes_and_ends_with_the_work(yard: Yard, name: str) -> None:
    cluster = await _ordered(yard, RUNNING)
    id = cluster["id"]
    await _tell(yard, id, "one")
    seen: list[str] = []
    async with asyncio.timeout(30):
        async for part in _watch(yard, name, id, follow=True):
            seen.append(part["line"]["text"])
            if seen == ["one"]:
                await _tell(yard, id, "two")
                await _now(yard, id, ClusterState.PROGRESSING, RUNNING)
            elif seen[-1] == "two":
                await _tell(yard, id, "three", "four")
                done = Step(name="post_install", state=StepState.DONE)
                await _now(yard, id, ClusterState.READY, done)
    assert seen == ["one", "two", "three", "four"]


@DOORS
@pytest.mark.parametrize(
    "state, step, expected",
    [
        pytest.param(ClusterState.FAILED, StepState.FAILED, True, id="a failed run is over"),
        pytest.param(ClusterState.FAILED, StepState.WAITING, False, id="another still runs"),
        pytest.param(ClusterState.PROGRESSING, StepState.DONE, False, id="more may come"),
        pytest.param(ClusterState.READY, StepState.DONE, True, id="all is done"),
    ],
)
async def test_a_watch_ends_when_no_more_is_to_be_expected(
    yard: Yard, name: str, state: ClusterState, step: StepState, expected: bool
) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one")
    await _now(yard, cluster["id"], state, Step(name="post_install", state=step))
    stream = _watch(yard, name, cluster["id"], follow=True)
    assert (await anext(stream))["line"]["text"] == "one"
    rest = asyncio.ensure_future(anext(stream, None))
    done, _ = await asyncio.wait({rest}, timeout=20 if expected else 0.5)
    assert bool(done) is expected
    if not done:
        await _end(yard, cluster["id"])
        await asyncio.wait({rest}, timeout=20)
    assert rest.result() is None
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_browser_goes_on_after_the_last_line_it_has(yard: Yard) -> None:
    cluster = await _ordered(yard)
    await _tell(yard, cluster["id"], "one", "two")
    headers = {
        "authorization": f"Bearer {yard.token('viewer')}",
        "accept": "text/event-stream",
        "last-event-id": "1",
    }
    path = f"/api/boatyard/v1/clusters/{cluster['id']}/story/watch"
    answer = await yard.client.get(path, headers=headers)
    assert "id: 2\n" in answer.text
    assert '"two"' in answer.text
    assert '"one"' not in answer.text
