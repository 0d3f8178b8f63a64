"""The platform `hosted` where a workshop writes HostedClusters: what it asks for, and what it believes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import NAMESPACES, SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS
from boatyard.platforms.drivers.hosted.automation_jobs import redact_order
from boatyard.platforms.drivers.hosted.cluster_automation import AutomationJob
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS, NODE_POOLS
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import install
from tests.support.kube_hub.crds import crds
from tests.support.kube_hub.hosted_values import well, wish
from tests.support.kube_hub.manual_hypershift import ORDERS, ManualHyperShift, RecordingWriter

KINDS = {"HostedCluster": HOSTED_CLUSTERS, "NodePool": NODE_POOLS}


@pytest.fixture(scope="module")
def ordered_plane(hosting_plane: ControlPlane) -> ControlPlane:
    """HyperShift's kinds and ours."""
    asyncio.run(install(hosting_plane, crds()))
    return hosting_plane


class RecordingWorkshop:
    """Does what a test lets it, and remembers what it was asked for."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.asked: list[tuple[str, AutomationJob]] = []
        self.forgotten = 0
        self.answer: Outcome | Exception = Waiting("it works")

    async def check_ready(self) -> None:
        """Always."""

    async def create(self, key: str, job: AutomationJob) -> Outcome:
        return self._answer("create", job)

    async def delete(self, key: str, job: AutomationJob) -> Outcome:
        return self._answer("delete", job)

    async def forget(self, key: str) -> None:
        self.forgotten += 1

    def _answer(self, verb: str, job: AutomationJob) -> Outcome:
        self.asked.append((verb, job))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def carry_out(self) -> None:
        """What was asked for last."""
        verb, job = self.asked[-1]
        for one in job.manifests:
            about = one["metadata"]
            kind, name, namespace = KINDS[one["kind"]], about["name"], about["namespace"]
            if verb == "create":
                await self.client.apply(kind, name, one, namespace, manager="playbook", strict=True)
            else:
                await self.client.delete(kind, name, namespace, uid=about["uid"])


class AutomatedHyperShift(ManualHyperShift):
    """A cluster with its ClusterOrder, and the workshop that makes it."""

    def __init__(self, client: KubeClient) -> None:
        self.workshop = RecordingWorkshop(client)
        super().__init__(client, "KubeVirt")
        self.wanted = replace(self.wanted, host_types=("large",))

    def another_driver(self) -> HostedPlatform:
        return HostedPlatform(self.client, self.settings, self.hub, automation=self.workshop)

    async def put_order(self, **spec: Any) -> None:
        await self.client.apply(NAMESPACES, ORDERS, {})
        request = {
            "nodeSet": "compute",
            "resourceClass": "large",
            "numberOfNodes": 3,
            "bareMetal": {"instanceType": "large"},
        }
        body = {
            "metadata": {"annotations": {hub_names.CLUSTER: self.id, hub_names.TENANT: "acme"}},
            "spec": {"templateID": "small", "nodeRequests": [request], **spec},
        }
        await self.client.apply(CLUSTER_ORDERS, self.order, body, ORDERS)

    async def hold_order(self, *finalizers: str) -> None:
        patch = {"metadata": {"finalizers": list(finalizers)}}
        await self.client.merge_patch(CLUSTER_ORDERS, self.order, patch, ORDERS)

    async def make(self) -> None:
        """Until the workshop has made it and HyperShift is content."""
        await self.ensure()
        await self.workshop.carry_out()
        await self.say(well())


@pytest.fixture
async def hypershift(ordered_plane: ControlPlane) -> AsyncIterator[AutomatedHyperShift]:
    client = KubeClient(read_kubeconfig(ordered_plane.kubeconfig()), timeout=30)
    made = AutomatedHyperShift(client)
    await made.put_order()
    yield made
    await client.close()


async def test_the_ground_is_prepared_and_the_hosted_cluster_is_asked_for(
    hypershift: AutomatedHyperShift,
) -> None:
    assert isinstance(await hypershift.ensure(), Waiting)
    assert await hypershift.all(HOSTED_CLUSTERS) == []
    names = {one["metadata"]["name"] for one in await hypershift.all(SECRETS)}
    assert hub_names.pull_secret_name(hypershift.order) in names
    ((verb, job),) = hypershift.workshop.asked
    assert verb == "create"
    assert job.order["metadata"]["name"] == hypershift.order
    assert job.order["spec"]["templateID"] == "small"
    cluster, pool = job.manifests
    assert (cluster["kind"], cluster["metadata"]["name"]) == ("HostedCluster", hypershift.order)
    assert (pool["kind"], pool["spec"]["replicas"]) == ("NodePool", 0)
    assert pool["metadata"]["name"] == hub_names.node_pool_name(hypershift.order, "compute")
    assert pool["spec"]["platform"]["kubevirt"]["compute"] == {"cores": 8, "memory": "64Gi"}


async def test_what_is_refused_is_asked_of_nobody(hypershift: AutomatedHyperShift) -> None:
    with pytest.raises(Refused):
        await hypershift.ensure(wish("KubeVirt", pod_cidr="172.30.0.0/16"))
    assert hypershift.workshop.asked == []
    assert await hypershift.namespaces() == []


async def test_its_conditions_are_followed_whatever_the_run_says(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.make()
    assert isinstance(await hypershift.ensure(), Done)
    assert len(hypershift.workshop.asked) == 1


async def test_a_run_under_way_costs_the_hub_no_writes(hypershift: AutomatedHyperShift) -> None:
    await hypershift.ensure()
    await hypershift.ensure()  # now it knows the namespace it has made
    spy = hypershift.client = RecordingWriter(hypershift.client)  # type: ignore[assignment]
    hypershift.driver._hub.client = spy  # type: ignore[assignment]
    for _ in range(5):
        await hypershift.ensure()
    assert spy.written == []
    numbers = {job.number for _, job in hypershift.workshop.asked}
    assert len(numbers) == 1


async def test_another_wish_is_another_job_without_node_pools(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.make()
    await hypershift.ensure()
    before = hypershift.workshop.asked[-1][1].number
    assert isinstance(await hypershift.ensure(wish("KubeVirt", "4.17.2")), Waiting)
    _, job = hypershift.workshop.asked[-1]
    assert job.number != before
    assert [one["kind"] for one in job.manifests] == ["HostedCluster"]


async def test_what_was_put_right_and_is_not_so_is_asked_for_again(
    hypershift: AutomatedHyperShift,
) -> None:
    hypershift.workshop.answer = Done()  # it lies
    assert isinstance(await hypershift.ensure(), Waiting)
    assert hypershift.workshop.forgotten == 1
    await hypershift.workshop.carry_out()
    await hypershift.say(well())
    assert isinstance(await hypershift.ensure(), Done)
    assert hypershift.workshop.forgotten == 1


async def test_a_failed_job_is_told_to_whoever_ordered(hypershift: AutomatedHyperShift) -> None:
    hypershift.workshop.answer = Refused("Create the HostedCluster: no", reason="RunFailed")
    with pytest.raises(Refused) as caught:
        await hypershift.ensure()
    assert caught.value.reason == "RunFailed"


async def test_without_its_order_there_is_nothing_to_hand_on(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.client.delete(CLUSTER_ORDERS, hypershift.order, ORDERS)
    with pytest.raises(Unavailable) as caught:
        await hypershift.driver.ensure_cluster(hypershift.key, hypershift.wanted)
    # It is looked for beside the order, and there is none: the place is that of hubs without orders.
    assert caught.value.reason == "NoOrder"


async def test_nodes_join_by_the_driver_as_ever(hypershift: AutomatedHyperShift) -> None:
    await hypershift.make()
    await hypershift.ensure()
    await hypershift.join("compute-0", "host-1", host_type="large")
    assert await hypershift.slots() == {"compute-0": False}
    assert (await hypershift.pool())["spec"]["replicas"] == 1


async def test_a_release_that_is_refused_is_taken_back_without_the_workshop(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.make()
    await hypershift.ensure()
    newer = wish("KubeVirt", "4.17.2")
    await hypershift.ensure(newer)
    await hypershift.workshop.carry_out()
    bad = {
        "type": "ValidReleaseImage",
        "status": "False",
        "reason": "InvalidImage",
        "message": "cannot be pulled",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    said = well(bad)
    said["conditions"][-1]["observedGeneration"] = (await hypershift.cluster())["metadata"][
        "generation"
    ]
    await hypershift.say(said)
    asked = len(hypershift.workshop.asked)
    with pytest.raises(Refused) as caught:
        await hypershift.ensure(newer)
    assert caught.value.reason == "UpgradeFailed"
    assert len(hypershift.workshop.asked) == asked
    image = (await hypershift.cluster())["spec"]["release"]["image"]
    assert image == hypershift.wanted.release_image


# --- taking away -------------------------------------------------------------------------------


async def release(hypershift: AutomatedHyperShift) -> Any:
    return await hypershift.driver.release_cluster(hypershift.key)


async def test_deletion_is_asked_for_and_its_end_is_observed(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.make()
    await hypershift.ensure()
    (cluster,) = await hypershift.all(HOSTED_CLUSTERS)
    assert isinstance(await release(hypershift), Waiting)
    verb, job = hypershift.workshop.asked[-1]
    assert verb == "delete"
    assert {one["kind"] for one in job.manifests} == {"HostedCluster", "NodePool"}
    uids = {one["metadata"]["uid"] for one in job.manifests}
    assert cluster["metadata"]["uid"] in uids

    hypershift.workshop.answer = Done()  # it lies: nothing has gone yet
    assert isinstance(await release(hypershift), Waiting)
    assert hypershift.namespace in await hypershift.namespaces()
    assert len(await hypershift.all(HOSTED_CLUSTERS)) == 1

    await hypershift.workshop.carry_out()
    for _ in range(300):
        if isinstance(await release(hypershift), Done):
            break
        await asyncio.sleep(0.1)
    assert await hypershift.namespaces() == []


async def test_an_order_that_automation_holds_is_let_go_also_when_nothing_is_left(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.hold_order(hub_names.AUTOMATION_FINALIZER)
    assert isinstance(await release(hypershift), Waiting)
    verb, job = hypershift.workshop.asked[-1]
    assert (verb, list(job.manifests)) == ("delete", [])
    await hypershift.hold_order()
    assert await release(hypershift) == Done()
    assert hypershift.workshop.forgotten == 1


async def test_a_creation_that_was_never_carried_out_is_called_off(
    hypershift: AutomatedHyperShift,
) -> None:
    await hypershift.ensure()
    for _ in range(300):
        if isinstance(await release(hypershift), Done):
            break
        await asyncio.sleep(0.1)
    assert [verb for verb, _ in hypershift.workshop.asked] == ["create"]
    assert hypershift.workshop.forgotten >= 1


# --- what is shown -----------------------------------------------------------------------------


def test_an_event_shows_nothing_secret_of_an_order() -> None:
    parameters = json.dumps({"motd": "hello", "password": "hunter2"})
    order = {
        "metadata": {
            "name": "order-a",
            "uid": "u",
            "managedFields": [{"manager": "x"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
                hub_names.TENANT: "acme",
            },
        },
        "spec": {
            "templateID": "small",
            "pullSecret": "hunter2",
            "templateParameters": parameters,
            "boatyard": {"secretParameters": ["password"]},
        },
        "status": {"boatyard": {"credentials": "hunter2"}},
    }
    shown = redact_order(order)
    assert "hunter2" not in json.dumps(shown)
    assert json.loads(shown["spec"]["templateParameters"]) == {"motd": "hello"}
    assert shown["kind"] == "ClusterOrder"
    assert "managedFields" not in shown["metadata"]
    assert shown["metadata"]["annotations"] == {hub_names.TENANT: "acme"}


def test_parameters_that_cannot_be_read_are_not_shown_where_some_are_secret() -> None:
    order = {"spec": {"templateParameters": "hunter2", "boatyard": {"secretParameters": ["x"]}}}
    assert "hunter2" not in json.dumps(redact_order(order))
