"""The loop around the player's decisions, with an API server that answers as told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import pytest

from boatyard.fakes.hypershift import controller as loop
from boatyard.fakes.hypershift.api_client import ApiError, ApiServerClient
from boatyard.fakes.hypershift.controller import FakeHyperShift
from boatyard.fakes.hypershift.decision import decide_cluster as decide_as_ever
from boatyard.fakes.hypershift.kinds import ObjectKind
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot
from boatyard.fakes.hypershift.stage_delays import StageDelays
from boatyard.fakes.hypershift.writes import Decision
from tests.support.kube_hub.hypershift_manifests import hosted_cluster

Object = dict[str, Any]


class RefusingApi:
    """Holds objects, refuses what it is told to refuse, and counts what was asked."""

    def __init__(self, *things: Object) -> None:
        self.things = {(thing["kind"], thing["metadata"]["name"]): thing for thing in things}
        self.refuse: dict[str, list[ApiError]] = {}
        self.asked: list[str] = []
        self.version = 100
        for number, thing in enumerate(things):
            thing["metadata"] |= {
                "uid": f"00000000-0000-4000-8000-{number:012d}",
                "resourceVersion": str(number + 1),
                "creationTimestamp": "2027-01-15T08:00:00Z",
                "generation": 1,
            }

    async def list(self, kind: ObjectKind, query: Mapping[str, str]) -> tuple[list[Object], str]:
        if kind.name == "Agent":
            raise ApiError(404, "NotFound", "no such kind")
        label = query.get("labelSelector")
        things = [thing for (its, _), thing in self.things.items() if its == kind.name]
        return [
            thing
            for thing in things
            if label is None or label in thing["metadata"].get("labels", {})
        ], "50"

    async def watch(self, *_: object) -> AsyncIterator[tuple[str, Object]]:
        await asyncio.Event().wait()
        yield "", {}

    async def get(self, kind: ObjectKind, _: str, name: str) -> Object:
        self._answer(f"GET {kind.name}")
        if kind.name == "Secret":
            return {"metadata": {"name": name}, "data": {".dockerconfigjson": ""}}
        return self.things[kind.name, name]

    async def create(self, kind: ObjectKind, body: Object) -> Object:
        self._answer(f"POST {kind.name}")
        return self._put(kind, {**body, "metadata": {**body["metadata"], "uid": "u"}})

    async def merge(self, kind: ObjectKind, _: str, name: str, patch: Object) -> Object:
        self._answer(f"PATCH {kind.name}")
        thing = self.things[kind.name, name]
        metadata = {**thing["metadata"], **patch.get("metadata", {})}
        spec = {**thing.get("spec", {}), **patch.get("spec", {})}
        return self._put(kind, {**thing, "metadata": metadata, "spec": spec})

    async def apply_status(self, kind: ObjectKind, seen: Object, status: Object) -> Object:
        self._answer(f"STATUS {kind.name}")
        return self._put(kind, {**seen, "status": status})

    def _answer(self, what: str) -> None:
        self.asked.append(what)
        if self.refuse.get(what):
            raise self.refuse[what].pop(0)

    def _put(self, kind: ObjectKind, thing: Object) -> Object:
        self.version += 1
        metadata = {**thing["metadata"], "resourceVersion": str(self.version)}
        put = {**thing, "metadata": metadata}
        self.things[kind.name, metadata["name"]] = put
        return put

    def available(self, name: str) -> bool:
        status = self.things["HostedCluster", name].get("status") or {}
        told = {one["type"]: one["status"] for one in status.get("conditions") or []}
        return told.get("Available") == "True"


@contextlib.asynccontextmanager
async def played(api: RefusingApi) -> AsyncIterator[FakeHyperShift]:
    clock = asyncio.get_running_loop().time
    player = FakeHyperShift(
        cast(ApiServerClient, api),
        FakeSettings(StageDelays(0.0)),
        lambda: 1_800_000_000.0 + clock(),
    )
    task = asyncio.ensure_future(player.run(lambda: None))
    try:
        yield player
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(right: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not right():  # noqa: ASYNC110 - nobody tells of what the player writes
            await asyncio.sleep(0.01)


async def test_a_kind_that_is_not_there_holds_up_nothing() -> None:
    api = RefusingApi(hosted_cluster("t", "c"))
    async with played(api):
        await until(lambda: api.available("c"))


@pytest.mark.parametrize(
    "what, error",
    [
        pytest.param("STATUS HostedCluster", ApiError(409, "Conflict", "changed"), id="too late"),
        pytest.param("STATUS HostedCluster", ApiError(429, "TooMany", "busy", 0.1), id="busy"),
        pytest.param("POST Secret", ApiError(0, "Unreachable", "cut"), id="cut"),
        pytest.param("PATCH HostedCluster", ApiError(500, "Internal", "etcd"), id="broken"),
        pytest.param("POST ConfigMap", ApiError(403, "Forbidden", "no"), id="not allowed yet"),
    ],
)
async def test_what_could_not_be_written_is_written_later(what: str, error: ApiError) -> None:
    api = RefusingApi(hosted_cluster("t", "c"))
    api.refuse[what] = [error, error]
    async with played(api):
        await until(
            lambda: api.available("c") and ("ConfigMap", "supported-versions") in api.things
        )

    assert api.asked.count(what) >= 3


async def test_a_namespace_that_is_there_is_taken_over() -> None:
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t-c"}}
    api = RefusingApi(hosted_cluster("t", "c"), home)
    api.refuse["POST Namespace"] = [ApiError(409, "AlreadyExists", "there")] * 2
    async with played(api):
        await until(lambda: "PATCH Namespace" in api.asked)
        await until(lambda: api.available("c"))


async def test_a_bug_about_one_cluster_does_not_end_the_play_for_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(seen: HostedClusterSnapshot, manner: FakeSettings, now: float) -> Decision:
        if seen.cluster is not None and seen.cluster["metadata"]["name"] == "odd":
            raise KeyError("planted")
        return decide_as_ever(seen, manner, now)

    monkeypatch.setattr(loop, "decide_cluster", decide)
    api = RefusingApi(hosted_cluster("t", "odd"), hosted_cluster("t", "c"))
    async with played(api):
        await until(lambda: api.available("c"))
        await until(lambda: "decision failed with an internal error" in caplog.text)

    assert not api.available("odd")
