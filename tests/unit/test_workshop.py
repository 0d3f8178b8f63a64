"""How a hub's automation is put beside its platform: by name, and what becomes of runs that failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from boatyard.automation.port import RUN_FAILED, RunSpec
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted.cluster_automation import AutomationJob
from boatyard.twin.calls import LocalTwin
from boatyard.twin.layout import Layout
from boatyard.twin.world import TwinWorld
from boatyard.wiring.automated_clusters import AutomatedClusters, run_key
from boatyard.wiring.driver_factory import DriverFactory, LocalServers
from tests.support.simulated.twin import SteppedClock

EDA = {"platform": "hosted", "automation": "eda"}
SETTINGS = {
    "hosted.platform": "None",
    "eda.url": "http://127.0.0.1:9",
    "eda.callback-url": "http://127.0.0.1:9",
}
JOB = AutomationJob(number=7, order={"kind": "ClusterOrder"}, manifests=[{"kind": "HostedCluster"}])


@pytest.fixture
async def client() -> AsyncIterator[KubeClient]:
    client = KubeClient(KubeConfig("http://127.0.0.1:9"), timeout=1, patience=0)
    yield client
    await client.close()


def make(drivers: dict[str, str], client: KubeClient | None, **settings: str) -> Any:
    twin = LocalTwin(TwinWorld(Layout(hubs={})), SteppedClock())
    maker = DriverFactory(LocalServers(twin_socket="", connect_twin=lambda _: twin))
    return maker.make_drivers("hub-1", drivers, {**SETTINGS, **settings}, client=client)


def workshop_of(made: Any) -> object:
    return made.platform._hub.automation


async def test_without_automation_the_platform_works_by_itself(client: KubeClient) -> None:
    assert workshop_of(make({"platform": "hosted"}, client)) is None


async def test_automation_that_is_named_makes_the_clusters(client: KubeClient) -> None:
    assert isinstance(workshop_of(make(EDA, client)), AutomatedClusters)


async def test_what_cannot_be_made_says_why(client: KubeClient) -> None:
    with pytest.raises(Refused, match="there is no automation driver 'edda'; there is local, eda"):
        make({**EDA, "automation": "edda"}, client)
    with pytest.raises(Refused, match=r"settings.eda.url"):
        make(EDA, client, **{"eda.url": ""})
    with pytest.raises(Unavailable) as caught:
        make({"automation": "eda"}, None)
    assert caught.value.reason == "Embedded"


class FakeAutomation:
    """Answers what a test tells it to."""

    def __init__(self, answer: Outcome | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, RunSpec]] = []
        self.released: list[str] = []

    async def ensure_run(self, key: str, wanted: RunSpec) -> Outcome:
        self.asked.append((key, wanted))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def release_run(self, key: str) -> Outcome:
        self.released.append(key)
        return Done()


def workshop(answer: Outcome | Exception) -> tuple[AutomatedClusters, FakeAutomation]:
    automation = FakeAutomation(answer)
    return AutomatedClusters(automation), automation  # type: ignore[arg-type]


async def test_creating_and_deleting_are_runs_of_one_key() -> None:
    shop, automation = workshop(Waiting("it runs"))
    await shop.create("o-1/cluster", JOB)
    await shop.delete("o-1/cluster", JOB)
    assert {key for key, _ in automation.asked} == {run_key("o-1/cluster")}
    assert [wanted.action for _, wanted in automation.asked] == [
        "create-hosted-cluster",
        "delete-hosted-cluster",
    ]
    wanted = automation.asked[0][1]
    assert (wanted.attempt, wanted.order) == (7, {"kind": "ClusterOrder"})
    assert wanted.values == {"manifests": [{"kind": "HostedCluster"}]}
    assert automation.released == []


async def test_a_run_that_failed_is_told_once_and_can_be_tried_again() -> None:
    shop, automation = workshop(Refused("Apply: no", reason=RUN_FAILED))
    with pytest.raises(Refused, match="Apply: no"):
        await shop.create("o-1/cluster", JOB)
    assert automation.released == [run_key("o-1/cluster")]


async def test_a_deletion_that_failed_is_tried_again_by_itself() -> None:
    shop, automation = workshop(Refused("Delete: no", reason=RUN_FAILED))
    with pytest.raises(Unavailable, match="Delete: no"):
        await shop.delete("o-1/cluster", JOB)
    assert automation.released == [run_key("o-1/cluster")]


async def test_another_refusal_stays_what_it_is() -> None:
    shop, automation = workshop(Refused("no", reason="BadSettings"))
    for ask in (shop.create, shop.delete):
        with pytest.raises(Refused):
            await ask("o-1/cluster", JOB)
    assert automation.released == []
