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
from boatyard.platforms.drivers.hosted.automated import shown_order
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS, NODE_POOLS
from boatyard.platforms.drivers.hosted.workshop import Job
from tests.support.control_plane import ControlPlane
from tests.support.crds import crds
from tests.support.hosted_play import ORDERS, Play, Spy
from tests.support.hosted_values import well, wish
from tests.support.hub_plane import install

KINDS = {"HostedCluster": HOSTED_CLUSTERS, "NodePool": NODE_POOLS}


@pytest.fixture(scope="module")
def ordered_plane(hosting_plane: ControlPlane) -> ControlPlane:
    """HyperShift's kinds and ours."""
    asyncio.run(install(hosting_plane, crds()))
    return hosting_plane


class Workshop:
    """Does what a test lets it, and remembers what it was asked for."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.asked: list[tuple[str, Job]] = []
        self.forgotten = 0
        self.answer: Outcome | Exception = Waiting("it works")

    async def check_ready(self) -> None:
        """Always."""

    async def create(self, key: str, job: Job) -> Outcome:
        return self._answer("create", job)

    async def delete(self, key: str, job: Job) -> Outcome:
        return self._answer("delete", job)

    async def forget(self, key: str) -> None:
        self.forgotten += 1

    def _answer(self, verb: str, job: Job) -> Outcome:
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


class Site(Play):
    """A cluster with its ClusterOrder, and the workshop that makes it."""

    def __init__(self, client: KubeClient) -> None:
        self.workshop = Workshop(client)
        super().__init__(client, "KubeVirt")
        self.wanted = replace(self.wanted, host_types=("large",))

    def another_driver(self) -> HostedPlatform:
        return HostedPlatform(self.client, self.settings, self.hub, workshop=self.workshop)

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
async def site(ordered_plane: ControlPlane) -> AsyncIterator[Site]:
    client = KubeClient(read_kubeconfig(ordered_plane.kubeconfig()), timeout=30)
    made = Site(client)
    await made.put_order()
    yield made
    await client.close()


async def test_the_ground_is_prepared_and_the_hosted_cluster_is_asked_for(site: Site) -> None:
    assert isinstance(await site.ensure(), Waiting)
    assert await site.all(HOSTED_CLUSTERS) == []
    names = {one["metadata"]["name"] for one in await site.all(SECRETS)}
    assert hub_names.pull_secret_name(site.order) in names
    ((verb, job),) = site.workshop.asked
    assert verb == "create"
    assert job.order["metadata"]["name"] == site.order
    assert job.order["spec"]["templateID"] == "small"
    cluster, pool = job.manifests
    assert (cluster["kind"], cluster["metadata"]["name"]) == ("HostedCluster", site.order)
    assert (pool["kind"], pool["spec"]["replicas"]) == ("NodePool", 0)
    assert pool["metadata"]["name"] == hub_names.node_pool_name(site.order, "compute")
    assert pool["spec"]["platform"]["kubevirt"]["compute"] == {"cores": 8, "memory": "64Gi"}


async def test_what_is_refused_is_asked_of_nobody(site: Site) -> None:
    with pytest.raises(Refused):
        await site.ensure(wish("KubeVirt", pod_cidr="172.30.0.0/16"))
    assert site.workshop.asked == []
    assert await site.namespaces() == []


async def test_its_conditions_are_followed_whatever_the_run_says(site: Site) -> None:
    await site.make()
    assert isinstance(await site.ensure(), Done)
    assert len(site.workshop.asked) == 1


async def test_a_run_under_way_costs_the_hub_no_writes(site: Site) -> None:
    await site.ensure()
    await site.ensure()  # now it knows the namespace it has made
    spy = site.client = Spy(site.client)  # type: ignore[assignment]
    site.driver._hub.client = spy  # type: ignore[assignment]
    for _ in range(5):
        await site.ensure()
    assert spy.written == []
    numbers = {job.number for _, job in site.workshop.asked}
    assert len(numbers) == 1


async def test_another_wish_is_another_job_without_node_pools(site: Site) -> None:
    await site.make()
    await site.ensure()
    before = site.workshop.asked[-1][1].number
    assert isinstance(await site.ensure(wish("KubeVirt", "4.17.2")), Waiting)
    _, job = site.workshop.asked[-1]
    assert job.number != before
    assert [one["kind"] for one in job.manifests] == ["HostedCluster"]


async def test_what_was_put_right_and_is_not_so_is_asked_for_again(site: Site) -> None:
    site.workshop.answer = Done()  # it lies
    assert isinstance(await site.ensure(), Waiting)
    assert site.workshop.forgotten == 1
    await site.workshop.carry_out()
    await site.say(well())
    assert isinstance(await site.ensure(), Done)
    assert site.workshop.forgotten == 1


async def test_a_failed_job_is_told_to_whoever_ordered(site: Site) -> None:
    site.workshop.answer = Refused("Create the HostedCluster: no", reason="RunFailed")
    with pytest.raises(Refused) as caught:
        await site.ensure()
    assert caught.value.reason == "RunFailed"


async def test_without_its_order_there_is_nothing_to_hand_on(site: Site) -> None:
    await site.client.delete(CLUSTER_ORDERS, site.order, ORDERS)
    with pytest.raises(Unavailable) as caught:
        await site.driver.ensure_cluster(site.key, site.wanted)
    # It is looked for beside the order, and there is none: the place is that of hubs without orders.
    assert caught.value.reason == "NoOrder"


async def test_nodes_join_by_the_driver_as_ever(site: Site) -> None:
    await site.make()
    await site.ensure()
    await site.join("compute-0", "host-1", host_type="large")
    assert await site.slots() == {"compute-0": False}
    assert (await site.pool())["spec"]["replicas"] == 1


async def test_a_release_that_is_refused_is_taken_back_without_the_workshop(site: Site) -> None:
    await site.make()
    await site.ensure()
    newer = wish("KubeVirt", "4.17.2")
    await site.ensure(newer)
    await site.workshop.carry_out()
    bad = {
        "type": "ValidReleaseImage",
        "status": "False",
        "reason": "InvalidImage",
        "message": "cannot be pulled",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    said = well(bad)
    said["conditions"][-1]["observedGeneration"] = (await site.cluster())["metadata"]["generation"]
    await site.say(said)
    asked = len(site.workshop.asked)
    with pytest.raises(Refused) as caught:
        await site.ensure(newer)
    assert caught.value.reason == "UpgradeFailed"
    assert len(site.workshop.asked) == asked
    image = (await site.cluster())["spec"]["release"]["image"]
    assert image == site.wanted.release_image


# --- taking away -------------------------------------------------------------------------------


async def release(site: Site) -> Any:
    return await site.driver.release_cluster(site.key)


async def test_deletion_is_asked_for_and_its_end_is_observed(site: Site) -> None:
    await site.make()
    await site.ensure()
    (cluster,) = await site.all(HOSTED_CLUSTERS)
    assert isinstance(await release(site), Waiting)
    verb, job = site.workshop.asked[-1]
    assert verb == "delete"
    assert {one["kind"] for one in job.manifests} == {"HostedCluster", "NodePool"}
    uids = {one["metadata"]["uid"] for one in job.manifests}
    assert cluster["metadata"]["uid"] in uids

    site.workshop.answer = Done()  # it lies: nothing has gone yet
    assert isinstance(await release(site), Waiting)
    assert site.namespace in await site.namespaces()
    assert len(await site.all(HOSTED_CLUSTERS)) == 1

    await site.workshop.carry_out()
    for _ in range(300):
        if isinstance(await release(site), Done):
            break
        await asyncio.sleep(0.1)
    assert await site.namespaces() == []


async def test_an_order_that_automation_holds_is_let_go_also_when_nothing_is_left(
    site: Site,
) -> None:
    await site.hold_order(hub_names.AUTOMATION_FINALIZER)
    assert isinstance(await release(site), Waiting)
    verb, job = site.workshop.asked[-1]
    assert (verb, list(job.manifests)) == ("delete", [])
    await site.hold_order()
    assert await release(site) == Done()
    assert site.workshop.forgotten == 1


async def test_a_creation_that_was_never_carried_out_is_called_off(site: Site) -> None:
    await site.ensure()
    for _ in range(300):
        if isinstance(await release(site), Done):
            break
        await asyncio.sleep(0.1)
    assert [verb for verb, _ in site.workshop.asked] == ["create"]
    assert site.workshop.forgotten >= 1


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
    shown = shown_order(order)
    assert "hunter2" not in json.dumps(shown)
    assert json.loads(shown["spec"]["templateParameters"]) == {"motd": "hello"}
    assert shown["kind"] == "ClusterOrder"
    assert "managedFields" not in shown["metadata"]
    assert shown["metadata"]["annotations"] == {hub_names.TENANT: "acme"}


def test_parameters_that_cannot_be_read_are_not_shown_where_some_are_secret() -> None:
    order = {"spec": {"templateParameters": "hunter2", "boatyard": {"secretParameters": ["x"]}}}
    assert "hunter2" not in json.dumps(shown_order(order))
