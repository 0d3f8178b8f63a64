"""The example of real clusters in tests/support/README.md."""

from __future__ import annotations

from tests.support.real_clusters.environment import LocalEnvironment
from tests.support.real_clusters.local_cluster import LocalCluster


async def test_a_cluster_is_there_again_after_its_keeper_was_killed(
    environment: LocalEnvironment,
) -> None:
    cluster = LocalCluster(environment, "order-1")
    await cluster.ensure()
    await cluster.join("compute-0")
    await environment.keeper.kill_and_start()
    await cluster.until_whole()
    access = await cluster.platform.access(cluster.key)
    assert "compute-0" in await environment.kubectl(access.kubeconfig, "get", "nodes")
    await cluster.release()
