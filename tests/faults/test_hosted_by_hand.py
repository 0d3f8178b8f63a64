"""Labels, owners and finalizers taken off a hosted cluster by hand: put back or borne, and never a leak."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from boatyard.kube.kinds import NAMESPACES, KubeKind
from boatyard.model import hub_names
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS, NODE_POOLS
from boatyard.platforms.port import DesiredNode
from tests.contracts.harness import cluster_wanted
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hosted_harness import HostedHarness, hosted_harness, played_hub

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

ORDERS = ("order-1", "order-2")
NAME = hub_names.order_name("order-1")
BARE = {"labels": None, "ownerReferences": None, "finalizers": None}


@pytest.fixture(scope="module")
def played() -> Iterator[ControlPlane]:
    with played_hub() as plane:
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def there(played: ControlPlane) -> AsyncIterator[HostedHarness]:
    """Two clusters with a node each; whatever is done is done to the first."""
    hosted = await hosted_harness(played, "KubeVirt")
    for order in ORDERS:
        await ensure(hosted, order)
    yield hosted
    await hosted.take_away()


async def ensure(there: HostedHarness, order: str) -> None:
    key = f"{order}/cluster"
    await there.harness.until_done(partial(there.platform.ensure_cluster, key, cluster_wanted()))
    host, address = await there.harness.host_with_agent(order, "compute-0")
    node = DesiredNode("compute-0", "compute", host, address)
    await there.harness.until_done(
        partial(there.platform.ensure_node, f"{order}/node/compute-0", key, node)
    )


async def strip(there: HostedHarness, kind: KubeKind, name: str, namespace: str) -> None:
    await there.client.merge_patch(kind, name, {"metadata": BARE}, namespace)


async def strip_all(there: HostedHarness) -> None:
    namespace = f"{there.orders}-{NAME}"
    await strip(there, NAMESPACES, namespace, "")
    await strip(there, HOSTED_CLUSTERS, NAME, namespace)
    for pool in (await there.client.list(NODE_POOLS, namespace)).items:
        await strip(there, NODE_POOLS, pool["metadata"]["name"], namespace)


async def versions(there: HostedHarness, order: str) -> dict[str, Any]:
    """What was written of a cluster by us: the generations of its parts."""
    name = hub_names.order_name(order)
    namespace = f"{there.orders}-{name}"
    found = [await there.client.get(HOSTED_CLUSTERS, name, namespace)]
    found += (await there.client.list(NODE_POOLS, namespace)).items
    return {
        one["metadata"]["name"]: (one["metadata"]["uid"], one["metadata"]["generation"])
        for one in found
    }


async def test_a_cluster_stripped_of_its_marks_lives_on(there: HostedHarness) -> None:
    before, other = await versions(there, ORDERS[0]), await versions(there, ORDERS[1])
    await strip_all(there)
    for order in ORDERS:
        await ensure(there, order)
    assert await versions(there, ORDERS[0]) == before, "nothing was made anew"
    assert await versions(there, ORDERS[1]) == other, "the other's was not touched"
    hosted = await there.client.get(HOSTED_CLUSTERS, NAME, f"{there.orders}-{NAME}")
    assert hosted["metadata"]["labels"][hub_names.ORDER] == NAME, "its marks are put back"

    async def ready() -> bool:
        seen = await there.platform.observe(f"{ORDERS[0]}/cluster")
        return [node.ready for node in seen.nodes] == [True]

    await there.harness.until(ready)


async def test_a_cluster_stripped_of_its_marks_is_taken_back_whole(there: HostedHarness) -> None:
    """Before anybody has looked again: it is found by its names."""
    await strip_all(there)
    other = await versions(there, ORDERS[1])
    release = (f"{ORDERS[0]}/node/compute-0", f"{ORDERS[0]}/cluster", "compute-0")
    await there.harness.until_done(partial(there.platform.release_node, *release, drain=False))
    await there.harness.until_done(partial(there.platform.release_cluster, f"{ORDERS[0]}/cluster"))
    names = {one["metadata"]["name"] for one in (await there.client.list(NAMESPACES)).items}
    assert not [name for name in names if name.startswith(f"{there.orders}-{NAME}")]
    assert await versions(there, ORDERS[1]) == other, "the other's was not touched"
