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

from boatyard.api import run_logs as stories_module
from boatyard.ledger.changes import Archive, Insert, Replace
from boatyard.ledger.run_logs import StoredLogLine
from boatyard.model import wire
from boatyard.model.generated.boatyard import Order, OrderStatus, Step, StepState
from boatyard.model.generated.osac import Cluster, ClusterState, Metadata
from tests.api import samples
from tests.api.doors import OURS, PUBLIC, ApiEnvironment, Door, Failed, failed

pytestmark = pytest.mark.asyncio(loop_scope="module")

STORIES = f"{OURS}.RunLogs"
BY_KIND = {sample.kind: sample for sample in samples.SAMPLES}
RUNNING = Step(name="post_install", state=StepState.WAITING)
DOORS = pytest.mark.parametrize("name", ["grpc", "rest"])


async def _ordered(environment: ApiEnvironment, *steps: Step) -> Any:
    body = {"object": BY_KIND["Cluster"].fresh()}
    cluster = await environment.grpc.call(
        f"{PUBLIC}.Clusters", "Create", body, token=environment.token("operator")
    )
    now = environment.ledger.clock.now()
    order = Order(
        id=cluster["id"],
        metadata=Metadata(name=cluster["id"], tenant="acme", creation_timestamp=now, generation=1),
        status=OrderStatus(steps=steps),
    )
    await environment.ledger.commit([Insert(order)], now=now)
    return cluster


async def _tell(
    environment: ApiEnvironment, id: str, *texts: str, run: str = "post_install"
) -> None:
    last = await environment.ledger.run_logs.read_last_line(id, run)
    number = last.number if last else 0
    now = environment.ledger.clock.now()
    lines = [
        StoredLogLine(
            run, run.partition("/")[0], 1, "a", number + n, now, "ok", f"task {text}", text
        )
        for n, text in enumerate(texts, start=1)
    ]
    await environment.ledger.run_logs.store_lines(id, run, lines, now)


async def _now(environment: ApiEnvironment, id: str, state: ClusterState, *steps: Step) -> None:
    """What a worker writes after it has kept the lines."""
    order = await environment.ledger.documents.get(Order, id)
    cluster = await environment.ledger.documents.get(Cluster, id)
    assert order is not None
    assert cluster is not None
    seen = replace(cluster.status, state=state, observed_generation=cluster.metadata.generation)
    await environment.ledger.commit(
        [
            Replace(replace(order, status=replace(order.status, steps=steps))),
            Replace(replace(cluster, status=seen)),
        ],
        now=environment.ledger.clock.now(),
    )


async def _end(environment: ApiEnvironment, id: str) -> None:
    order, cluster = (
        await environment.ledger.documents.get(Order, id),
        await environment.ledger.documents.get(Cluster, id),
    )
    assert order is not None
    assert cluster is not None
    await environment.ledger.commit(
        [Archive(order), Archive(cluster)], now=environment.ledger.clock.now()
    )


async def _watch(
    environment: ApiEnvironment, name: str, cluster: str, token: str = "", **asked: Any
) -> AsyncIterator[dict[str, Any]]:
    token = token or environment.token("viewer")
    if name == "rest":
        path = f"/api/boatyard/v1/clusters/{cluster}/logs/watch"
        query = {key: str(value).lower() for key, value in asked.items()}
        headers = {"authorization": f"Bearer {token}"}
        async with environment.client.stream(
            "GET", path, params=query, headers=headers
        ) as response:
            if response.status_code != 200:
                told = json.loads(await response.aread())
                raise Failed(str(response.status_code), told["message"], {})
            async for line in response.aiter_lines():
                if line:
                    yield json.loads(line)["result"]
        return
    request = wire.message(f"{OURS}.RunLogsWatchRequest")(cluster=cluster, **asked)
    call = environment.channel.unary_stream(f"/{STORIES}/Watch")(
        request.SerializeToString(), metadata=(("authorization", f"Bearer {token}"),)
    )
    try:
        async for data in call:
            message: Any = wire.message(f"{OURS}.RunLogsWatchResponse").FromString(data)
            yield json_format.MessageToDict(message, preserving_proto_field_name=True)
    except grpc.aio.AioRpcError as error:
        raise failed(error) from error


async def _all(
    environment: ApiEnvironment, name: str, cluster: str, token: str = "", **asked: Any
) -> list[Any]:
    async with asyncio.timeout(30):
        return [part async for part in _watch(environment, name, cluster, token, **asked)]


def texts(parts: list[Any]) -> list[str]:
    return [part["line"]["text"] for part in parts]


async def test_a_story_is_read_by_id_and_by_name(environment: ApiEnvironment, door: Door) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one", "two")
    for key in (cluster["id"], cluster["metadata"]["name"]):
        for role in ("viewer", "member", "operator"):
            shown = await door.call(
                STORIES, "Read", {"cluster": key}, token=environment.token(role)
            )
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


async def test_a_story_goes_on_after_a_line_and_is_chosen_by_run(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one", "two")
    await _tell(environment, cluster["id"], "three", run="scale/2")
    for more, expected in (
        ({"after": "1"}, ["two", "three"]),
        ({"limit": 1}, ["one"]),
        ({"run": "scale"}, ["three"]),
        ({"run": "scale/2", "after": "3"}, []),
        ({"run": "nothing"}, []),
    ):
        body = {"cluster": cluster["id"], **more}
        shown = await door.call(STORIES, "Read", body, token=environment.token("viewer"))
        assert [one["text"] for one in shown.get("items", [])] == expected, more


async def test_a_cluster_whose_runs_told_nothing_has_an_empty_story(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment)
    asked = {"cluster": cluster["id"]}
    assert await door.call(STORIES, "Read", asked, token=environment.token("viewer")) == {}
    assert await _all(environment, door.name, cluster["id"]) == []


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
    environment: ApiEnvironment, door: Door, field: str, value: Any
) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one")
    body = {"cluster": cluster["id"], field: value}
    with pytest.raises(Failed) as refused:
        await door.call(STORIES, "Read", body, token=environment.token("viewer"))
    assert refused.value.code == "INVALID_ARGUMENT"
    assert list(refused.value.violations) == [field]


@DOORS
async def test_a_stranger_learns_nothing(environment: ApiEnvironment, name: str) -> None:
    cluster = await _ordered(environment, RUNNING)
    await _tell(environment, cluster["id"], "one")
    keys = (cluster["id"], cluster["metadata"]["name"], "0" * len(cluster["id"]))
    answers = set()
    for key in keys:
        for asked in ({}, {"follow": True}, {"after": "1"}, {"after": "99"}):
            with pytest.raises(Failed) as refused:
                await _all(environment, name, key, environment.token("admin", "globex"), **asked)
            answers.add((refused.value.code, refused.value.message.replace(key, "KEY")))
        body = {"cluster": key}
        with pytest.raises(Failed) as refused:
            await environment.door(name).call(
                STORIES, "Read", body, token=environment.token("admin", "globex")
            )
        assert refused.value.code == "NOT_FOUND"
    assert len(answers) == 1


async def test_a_strangers_story_stays_theirs_when_the_cluster_is_gone(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one")
    await _end(environment, cluster["id"])
    for key in (cluster["id"], cluster["metadata"]["name"]):
        body = {"cluster": key}
        shown = await door.call(STORIES, "Read", body, token=environment.token("viewer"))
        assert [one["text"] for one in shown["items"]] == ["one"]
        assert texts(await _all(environment, door.name, key, follow=True)) == ["one"]
        with pytest.raises(Failed) as refused:
            await door.call(STORIES, "Read", body, token=environment.token("admin", "globex"))
        assert refused.value.code == "NOT_FOUND"


async def test_names_of_the_provider_are_for_operators(
    environment: ApiEnvironment, door: Door
) -> None:
    cluster = await _ordered(environment)
    now = environment.ledger.clock.now()
    line = StoredLogLine(
        "role", "install", 1, "a", 1, now, "ok", "ask rack1-07", "rack1-07 is up",
        shown_task="ask a host", shown_text="a host is up",
    )  # fmt: skip
    await environment.ledger.run_logs.store_lines(cluster["id"], "role", [line], now)
    body = {"cluster": cluster["id"]}
    for role, expected in (("admin", "a host is up"), ("operator", "rack1-07 is up")):
        shown = await door.call(STORIES, "Read", body, token=environment.token(role))
        assert shown["items"][0]["text"] == expected
        (part,) = await _all(environment, door.name, cluster["id"], environment.token(role))
        assert part["line"]["text"] == expected
        assert ("rack1" in json.dumps([shown, part])) is (role == "operator")


@DOORS
async def test_lines_that_are_no_longer_kept_are_told(
    environment: ApiEnvironment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await _ordered(environment)
    monkeypatch.setattr(environment.ledger.run_logs, "_most_lines", 3)
    await _tell(environment, cluster["id"], *map(str, range(1, 11)))
    parts = await _all(environment, name, cluster["id"])
    assert parts[0] == {"missing": "7"}
    assert texts(parts[1:]) == ["8", "9", "10"]
    parts = await _all(environment, name, cluster["id"], after="5")
    assert parts[0] == {"missing": "2"}
    assert texts(await _all(environment, name, cluster["id"], after="8")) == ["9", "10"]


@DOORS
async def test_a_long_story_is_sent_page_by_page(
    environment: ApiEnvironment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stories_module, "PAGE_LINES", 4)
    cluster = await _ordered(environment)
    told = [str(number) for number in range(12)]
    await _tell(environment, cluster["id"], *told)
    assert texts(await _all(environment, name, cluster["id"])) == told


@DOORS
async def test_following_sends_what_comes_and_ends_with_the_work(
    environment: ApiEnvironment, name: str
) -> None:
    cluster = await _ordered(environment, RUNNING)
    id = cluster["id"]
    await _tell(environment, id, "one")
    seen: list[str] = []
    async with asyncio.timeout(30):
        async for part in _watch(environment, name, id, follow=True):
            seen.append(part["line"]["text"])
            if seen == ["one"]:
                await _tell(environment, id, "two")
                await _now(environment, id, ClusterState.PROGRESSING, RUNNING)
            elif seen[-1] == "two":
                await _tell(environment, id, "three", "four")
                done = Step(name="post_install", state=StepState.DONE)
                await _now(environment, id, ClusterState.READY, done)
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
    environment: ApiEnvironment, name: str, state: ClusterState, step: StepState, expected: bool
) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one")
    await _now(environment, cluster["id"], state, Step(name="post_install", state=step))
    stream = _watch(environment, name, cluster["id"], follow=True)
    assert (await anext(stream))["line"]["text"] == "one"
    rest = asyncio.ensure_future(anext(stream, None))
    done, _ = await asyncio.wait({rest}, timeout=20 if expected else 0.5)
    assert bool(done) is expected
    if not done:
        await _end(environment, cluster["id"])
        await asyncio.wait({rest}, timeout=20)
    assert rest.result() is None
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_browser_goes_on_after_the_last_line_it_has(environment: ApiEnvironment) -> None:
    cluster = await _ordered(environment)
    await _tell(environment, cluster["id"], "one", "two")
    headers = {
        "authorization": f"Bearer {environment.token('viewer')}",
        "accept": "text/event-stream",
        "last-event-id": "1",
    }
    path = f"/api/boatyard/v1/clusters/{cluster['id']}/logs/watch"
    answer = await environment.client.get(path, headers=headers)
    assert "id: 2\n" in answer.text
    assert '"two"' in answer.text
    assert '"one"' not in answer.text
