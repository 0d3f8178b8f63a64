"""The Kubernetes client is patient where that helps, and says what happened where it does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.kube.errors import Expired
from boatyard.kube.kinds import CONFIG_MAPS, NODES, PODS, SECRETS, KubeKind
from boatyard.model.errors import Conflict, Exists, NotFound, Refused, Unavailable
from tests.support.scripted_kube import (
    Says,
    Silence,
    connected,
    failure,
    listing,
    scripted_kube,
    thing,
)

# --- paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, place, path",
    [
        pytest.param(NODES, ("", "n1"), "/api/v1/nodes/n1", id="without a namespace"),
        pytest.param(PODS, ("",), "/api/v1/pods", id="all namespaces"),
        pytest.param(PODS, ("a", "b", "status"), "/api/v1/namespaces/a/pods/b/status", id="part"),
        pytest.param(PODS, ("a", "b/../c"), "/api/v1/namespaces/a/pods/b%2F..%2Fc", id="a slash"),
        pytest.param(
            KubeKind("x.io", "v2", "things", "Thing", True),
            ("a", "b"),
            "/apis/x.io/v2/namespaces/a/things/b",
            id="a group",
        ),
    ],
)
def test_paths(kind: KubeKind, place: tuple[str, ...], path: str) -> None:
    assert kind.path(*place) == path


@pytest.mark.parametrize("place", [("a", ".."), ("", "b"), ("..", "b")])
def test_a_path_that_would_lead_elsewhere_is_refused(place: tuple[str, str]) -> None:
    with pytest.raises(Refused):
        PODS.path(*place)


# --- patience ---------------------------------------------------------------------------------


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    async with connected() as (told, client):
        told.tell(
            failure(429, "TooManyRequests", retry=3), failure(429, retry=2), Says(thing("a", 1))
        )

        assert (await client.get(CONFIG_MAPS, "a", "ns"))["metadata"]["name"] == "a"

        assert len(told.asked) == 3
        assert told.pauses == [3, 2]


async def test_patience_with_a_busy_server_is_bounded() -> None:
    async with connected() as (told, client):
        told.tell(*[failure(429, retry=9)] * 9)

        with pytest.raises(Unavailable):
            await client.get(CONFIG_MAPS, "a", "ns")

        assert told.pauses == [9, 9]  # a third would be beyond 20 seconds
        assert len(told.asked) == 3


async def test_a_server_that_asks_for_too_long_is_unavailable_at_once() -> None:
    async with connected() as (told, client):
        told.tell(failure(429, retry=3600))

        with pytest.raises(Unavailable):
            await client.get(CONFIG_MAPS, "a", "ns")

        assert (len(told.asked), told.pauses) == (1, [])


async def test_a_server_that_starts_is_asked_again_when_it_says() -> None:
    async with connected() as (told, client):
        told.tell(failure(503, retry=1), Says(thing("a", 1)))
        await client.get(CONFIG_MAPS, "a", "ns")
        assert (len(told.asked), told.pauses) == (2, [1])

        told.tell(failure(503))
        with pytest.raises(Unavailable):
            await client.get(CONFIG_MAPS, "a", "ns")
        assert len(told.asked) == 3


@pytest.mark.parametrize(
    "first", [pytest.param(failure(504), id="504"), pytest.param(Silence(cut=True), id="cut")]
)
@pytest.mark.parametrize("verb", ["get", "apply", "merge_patch", "replace", "delete"])
async def test_what_may_be_done_twice_is_asked_again_after_a_doubtful_answer(
    first: Says | Silence, verb: str
) -> None:
    async with connected() as (told, client):
        told.tell(first, Says(thing("a", 1)))

        match verb:
            case "get":
                await client.get(CONFIG_MAPS, "a", "ns")
            case "apply":
                await client.apply(CONFIG_MAPS, "a", {}, "ns")
            case "merge_patch":
                await client.merge_patch(CONFIG_MAPS, "a", {}, "ns")
            case "replace":
                await client.replace(CONFIG_MAPS, thing("a", 1))
            case "delete":
                assert await client.delete(CONFIG_MAPS, "a", "ns")

        assert len(told.asked) == 2
        assert len({(asked.method, asked.path, asked.body) for asked in told.asked}) == 1


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(failure(504), id="504"),
        pytest.param(failure(503, retry=1), id="503"),
        pytest.param(Silence(cut=True), id="cut"),
    ],
)
async def test_a_create_is_not_asked_twice_after_a_doubtful_answer(first: Says | Silence) -> None:
    async with connected() as (told, client):
        told.tell(first, Says(thing("a", 1)))

        with pytest.raises(Unavailable):
            await client.create(CONFIG_MAPS, thing("a", 1))

        assert len(told.asked) == 1


async def test_a_create_is_asked_again_when_nothing_was_done() -> None:
    async with connected() as (told, client):
        told.tell(failure(429, retry=1), Says(thing("a", 1), 201))

        await client.create(CONFIG_MAPS, thing("a", 1))

        assert len(told.asked) == 2


async def test_a_deletion_whose_answer_was_lost_is_one_that_was_done() -> None:
    async with connected() as (told, client):
        told.tell(failure(504), failure(404, "NotFound"), failure(404, "NotFound"))

        assert await client.delete(CONFIG_MAPS, "a", "ns") is True
        assert await client.delete(CONFIG_MAPS, "a", "ns") is False


async def test_a_deletion_cut_off_and_asked_again_is_one_that_was_done() -> None:
    async with connected() as (told, client):
        told.tell(Silence(cut=True), failure(404, "NotFound"))

        assert await client.delete(CONFIG_MAPS, "a", "ns") is True


async def test_every_request_that_is_cut_passes_the_gate() -> None:
    """Nobody below asks again by itself: a hub that fails would get twice as many requests as it is to get."""
    gate = CircuitBreaker(failures=2, spacing=60.0)
    async with connected(circuit_breaker=gate) as (told, client):
        told.tell(*[Silence(cut=True)] * 8)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await client.get(CONFIG_MAPS, "a", "ns")

        assert gate.is_open
        assert len(told.asked) == 2


async def test_a_server_that_does_not_answer_is_unavailable_in_time() -> None:
    async with connected(timeout=0.05) as (told, client):
        told.tell(Silence())

        async with asyncio.timeout(5):
            with pytest.raises(Unavailable) as raised:
                await client.get(CONFIG_MAPS, "a", "ns")

        assert raised.value.reason == "Timeout"
        assert len(told.asked) == 1


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with scripted_kube() as told:
        config = KubeConfig(told.url)
    client = KubeClient(config)

    with pytest.raises(Unavailable) as raised:
        await client.get(CONFIG_MAPS, "a", "ns")

    assert raised.value.reason == "Unreachable"
    await client.close()


async def test_closing_ends_what_is_under_way() -> None:
    async with connected() as (told, client):
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            asking = group.create_task(_error_of(client.create(CONFIG_MAPS, thing("a", 1))))
            await told.until_asked(1)
            await client.close()
            assert isinstance(await asking, Unavailable)

        with pytest.raises(Unavailable):
            await client.get(CONFIG_MAPS, "a", "ns")
        await client.close()
        assert len(told.asked) == 1


async def test_connections_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boatyard.kube.transport.MOST_CONNECTIONS", 3)
    async with connected() as (told, client):
        told.tell(*[Says(thing("a", 1))] * 30)

        await asyncio.gather(*[client.get(CONFIG_MAPS, "a", "ns") for _ in range(30)])

        assert len({asked.connection for asked in told.asked}) <= 3


# --- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, kind",
    [
        pytest.param(failure(400, "BadRequest"), Refused, id="400"),
        pytest.param(failure(401, "Unauthorized"), Refused, id="401"),
        pytest.param(failure(403, "Forbidden"), Refused, id="403"),
        pytest.param(failure(404, "NotFound"), NotFound, id="404"),
        pytest.param(failure(409, "AlreadyExists"), Exists, id="409 exists"),
        pytest.param(failure(409, "Conflict"), Conflict, id="409 conflict"),
        pytest.param(failure(410), Expired, id="410"),
        pytest.param(failure(400, "Expired"), Expired, id="expired by its reason"),
        pytest.param(failure(422, "Invalid"), Refused, id="422"),
        pytest.param(failure(500, "InternalError"), Unavailable, id="500"),
        pytest.param(
            failure(403, "Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]}),
            Unavailable,
            id="a namespace on its way out",
        ),
        pytest.param(
            failure(500, "", ".spec.x: field not declared in schema"), Refused, id="unknown field"
        ),
        pytest.param(Says(b"<html>", 502), Unavailable, id="a proxy between"),
        pytest.param(Says(b"", 302, {"Location": "/"}), Unavailable, id="sent elsewhere"),
        pytest.param(Says(b"{", 200), Unavailable, id="broken JSON"),
        pytest.param(Says(b"\xff\xfe", 200), Unavailable, id="no text"),
        pytest.param(Says(b"[]", 200), Unavailable, id="no object"),
    ],
)
async def test_answers_become_errors(answer: Says, kind: type[Exception]) -> None:
    async with connected() as (told, client):
        told.tell(answer)

        with pytest.raises(kind):
            await client.get(CONFIG_MAPS, "a", "ns")

        assert len(told.asked) == 1


async def test_a_refusal_has_the_servers_words() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.x", "message": "too small"}]
    async with connected() as (told, client):
        told.tell(failure(422, "Invalid", 'Thing "a" is invalid', details={"causes": causes}))

        with pytest.raises(Refused, match='Thing "a" is invalid') as refused:
            await client.create(CONFIG_MAPS, thing("a", 1))

        assert refused.value.reason == "Invalid"
        assert [violation.path for violation in refused.value.violations] == ["spec.x"]


async def test_words_about_the_contents_of_a_secret_are_left_out() -> None:
    causes = [{"field": "data[password]", "message": "Invalid value: hunter2"}]
    async with connected() as (told, client):
        told.tell(failure(422, "Invalid", "Invalid value: hunter2", details={"causes": causes}))

        with pytest.raises(Refused, match="data") as refused:
            await client.create(SECRETS, thing("a", 1))

        assert "hunter2" not in f"{refused.value!r} {refused.value.violations}"


# --- verbs ------------------------------------------------------------------------------------


async def test_a_list_is_read_in_pages() -> None:
    async with connected() as (told, client):
        told.tell(listing(7, thing("a", 1), more="p2"), listing(7, thing("b", 2)))

        listed = await client.list(CONFIG_MAPS, "ns", labels="x=y", page=1)

        assert [item["metadata"]["name"] for item in listed.items] == ["a", "b"]
        assert listed.resource_version == "7"
        assert [asked.query for asked in told.asked] == [
            {"labelSelector": "x=y", "limit": "1"},
            {"labelSelector": "x=y", "limit": "1", "continue": "p2"},
        ]


async def test_a_list_whose_pages_expire_starts_over() -> None:
    async with connected() as (told, client):
        told.tell(listing(7, thing("gone", 1), more="p2"), failure(410, "Expired"))
        told.tell(listing(9, thing("a", 8)))

        listed = await client.list(CONFIG_MAPS, "ns")

        assert [item["metadata"]["name"] for item in listed.items] == ["a"]
        assert listed.resource_version == "9"
        assert "continue" not in told.asked[2].query


async def test_a_list_whose_pages_always_expire_is_read_in_one() -> None:
    async with connected() as (told, client):
        told.tell(*[listing(7, thing("x", 1), more="p2"), failure(410, "Expired")] * 2)
        told.tell(listing(9, thing("a", 8)))

        assert len((await client.list(CONFIG_MAPS, "ns")).items) == 1

        assert "limit" not in told.asked[4].query


async def test_apply_says_who_and_with_how_much_force() -> None:
    async with connected(manager="me") as (told, client):
        told.tell(*[Says(thing("a", 1))] * 2)

        await client.apply(CONFIG_MAPS, "a", {"data": {}}, "ns")
        await client.apply(CONFIG_MAPS, "a", {}, "ns", subresource="status", force=False)

        first, second = told.asked
        assert first.method == "PATCH"
        assert first.query == {"fieldManager": "me", "force": "true"}
        assert first.headers["Content-Type"] == "application/apply-patch+yaml"
        assert json.loads(first.body) == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {},
        }
        assert second.path.endswith("/configmaps/a/status")
        assert second.query == {"fieldManager": "me"}


async def test_strict_writes_and_other_managers_are_asked_for() -> None:
    async with connected(manager="me") as (told, client):
        told.tell(*[Says(thing("a", 1))] * 2)

        await client.apply(CONFIG_MAPS, "a", {}, "ns", strict=True, manager="my-nodes")
        await client.merge_patch(CONFIG_MAPS, "a", {}, "ns", strict=True)

        strict = {"fieldValidation": "Strict"}
        assert told.asked[0].query == {"fieldManager": "my-nodes", "force": "true", **strict}
        assert told.asked[1].query == {"fieldManager": "me", **strict}


async def test_deletion_options_are_sent() -> None:
    async with connected() as (told, client):
        told.tell(Says({}))

        await client.delete(PODS, "p", "ns", grace=0, uid="u", propagation="Foreground")

        options = json.loads(told.asked[0].body)
        assert options["gracePeriodSeconds"] == 0
        assert options["preconditions"] == {"uid": "u"}
        assert options["propagationPolicy"] == "Foreground"


async def test_an_eviction_that_a_budget_forbids_is_answered_with_no() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "needs 2 healthy pods"}]
    async with connected() as (told, client):
        told.tell(failure(429, "TooManyRequests", retry=10, details={"causes": causes}))
        assert await client.evict("p", "ns") is False
        assert (len(told.asked), told.pauses) == (1, [])

        told.tell(failure(429, "TooManyRequests", retry=1), Says({}, 201))
        assert await client.evict("p", "ns") is True  # that was a busy server
        assert len(told.asked) == 3

        told.tell(failure(404, "NotFound"))
        assert await client.evict("p", "ns") is True


async def _error_of(asking: Any) -> BaseException | None:
    try:
        await asking
    except Unavailable as error:
        return error
    return None
