"""The driver `hosted` against the player of HyperShift: whole changes, and the player's faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from boatyard.model import hub_names
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted.kinds import (
    AGENTS,
    HOSTED_CLUSTERS,
    NODE_POOLS,
    labels_of,
)
from boatyard.platforms.port import DesiredCluster, DesiredNode
from tests.contracts.harness import cluster_wanted
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hosted_harness import FAULT, HostedHarness, hosted_harness, played_hub

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

ORDER = "order-1"
KEY = f"{ORDER}/cluster"
NAME = hub_names.order_name(ORDER)


@pytest.fixture(scope="module")
def hub() -> Iterator[ControlPlane]:
    with played_hub() as plane:
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def there(hub: ControlPlane, platform: str) -> AsyncIterator[HostedHarness]:
    hosted = await hosted_harness(hub, platform)
    yield hosted
    await hosted.take_away()


async def ensure(there: HostedHarness, wanted: DesiredCluster) -> None:
    await there.harness.until_done(partial(there.platform.ensure_cluster, KEY, wanted))


async def join(there: HostedHarness, slot: str) -> DesiredNode:
    host, address = await there.harness.host_with_agent(ORDER, slot)
    node = DesiredNode(slot, "compute", host, address)
    await there.harness.until_done(
        partial(there.platform.ensure_node, f"{ORDER}/node/{slot}", KEY, node)
    )
    return node


async def leave(there: HostedHarness, slot: str) -> None:
    key = f"{ORDER}/node/{slot}"
    await there.harness.until_done(partial(there.platform.release_node, key, KEY, slot))


async def plant(there: HostedHarness, kind: Any, name: str, fault: str | None) -> None:
    namespace = f"{there.orders}-{NAME}"
    marked = {"metadata": {"annotations": {FAULT: fault}}}
    await there.client.merge_patch(kind, name, marked, namespace)


async def ready(there: HostedHarness) -> dict[str, bool]:
    return {node.slot: node.ready for node in (await there.platform.observe(KEY)).nodes}


@pytest.mark.parametrize("platform", ["Agent", "KubeVirt"])
async def test_a_new_version_reaches_the_nodes(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    for slot in ("compute-0", "compute-1"):
        await join(there, slot)
    await ensure(there, cluster_wanted("4.18.3"))

    async def nodes_are_replaced() -> bool:  # a node on its way to the new version is not ready
        cluster = await there.platform.observe(KEY)
        return (cluster.version, cluster.degraded) == ("4.18.3", False)

    await there.harness.until(nodes_are_replaced)
    (pool,) = (await there.client.list(NODE_POOLS, f"{there.orders}-{NAME}")).items
    assert pool["status"]["version"] == "4.18.3"
    assert pool["spec"]["replicas"] == 2

    async def all_ready() -> bool:
        return await ready(there) == {"compute-0": True, "compute-1": True}

    await there.harness.until(all_ready)
    await leave(there, "compute-0")
    assert await ready(there) == {"compute-1": True}


@pytest.mark.parametrize("platform", ["Agent", "KubeVirt"])
async def test_the_right_node_leaves_though_another_was_let_go(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    hosts = {slot: await join(there, slot) for slot in ("compute-0", "compute-1", "compute-2")}
    pool = hub_names.node_pool_name(NAME, "compute")
    await plant(there, NODE_POOLS, pool, "wrong-machine")
    await leave(there, "compute-0")
    await plant(there, NODE_POOLS, pool, None)

    async def others_are_ready() -> bool:
        return await ready(there) == {"compute-1": True, "compute-2": True}

    await there.harness.until(others_are_ready)
    if there.agents:
        marks = {
            slot: bool(
                labels_of(await there.client.get(AGENTS, node.host, there.agents)).get(
                    hub_names.ORDER
                )
            )
            for slot, node in hosts.items()
        }
        assert marks == {"compute-0": False, "compute-1": True, "compute-2": True}


@pytest.mark.parametrize("platform", ["KubeVirt"])
async def test_a_control_plane_short_of_a_replica_is_degraded(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    await join(there, "compute-0")
    await plant(there, HOSTED_CLUSTERS, NAME, "degraded")

    async def is_degraded(wanted: bool) -> bool:
        return (await there.platform.observe(KEY)).degraded is wanted

    await there.harness.until(partial(is_degraded, True))
    await plant(there, HOSTED_CLUSTERS, NAME, None)
    await there.harness.until(partial(is_degraded, False))


@pytest.mark.parametrize("platform", ["KubeVirt"])
async def test_an_api_that_is_down_is_not_available(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    await plant(there, HOSTED_CLUSTERS, NAME, "down")

    async def is_down() -> bool:
        seen = await there.platform.observe(KEY)
        return not seen.available and bool(seen.message)

    await there.harness.until(is_down)
    answer = await there.platform.ensure_cluster(KEY, cluster_wanted())
    assert isinstance(answer, Waiting)
    assert answer.reason == "ControlPlaneStarting"


@pytest.mark.parametrize("platform", ["None"])
async def test_a_cluster_without_machines_is_made_and_updated(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    await ensure(there, cluster_wanted("4.17.2"))
    assert (await there.platform.observe(KEY)).version == "4.17.2"


@pytest.mark.parametrize("platform", ["KubeVirt"])
async def test_a_secret_that_comes_later_is_rolled_out(there: HostedHarness) -> None:
    await ensure(there, cluster_wanted())
    await ensure(there, replace(cluster_wanted(), pull_secret='{"auths":{"other":{}}}'))
    cluster = await there.client.get(HOSTED_CLUSTERS, NAME, f"{there.orders}-{NAME}")
    assert cluster["spec"]["pullSecret"]["name"] != hub_names.pull_secret_name(NAME)
