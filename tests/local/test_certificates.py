"""Certificates of a running cluster: renewed before they end, and everybody uses the new ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import KubeKind
from boatyard.pki.authority import read_expiry
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import LocalEnvironment, local_environment, until
from tests.support.real_clusters.local_cluster import LocalCluster

pytestmark = pytest.mark.timeout(420)

KEEPER = (sys.executable, "-m", "tests.support.real_clusters.short_lived_keeper")
DEPLOYMENTS = KubeKind("apps", "v1", "deployments", "Deployment", True)


@pytest.fixture
async def environment() -> AsyncIterator[LocalEnvironment]:
    async with local_environment(needs_assets(), command=KEEPER) as environment:
        yield environment


async def end_of_access(cluster: LocalCluster) -> datetime:
    access = await cluster.platform.access(cluster.key)
    return read_expiry(read_kubeconfig(access.kubeconfig).certificate)


async def test_a_cluster_outlives_its_certificates(environment: LocalEnvironment) -> None:
    cluster = LocalCluster(environment, "order-1")
    await cluster.ensure()
    await cluster.join("compute-0")
    await cluster.until_whole()
    # All that is used now has ended by then: whoever goes on has read new ones.
    end = datetime.now(UTC) + timedelta(seconds=102)
    before, kept = cluster.running(), await cluster.put()

    while datetime.now(UTC) < end:
        seen = await cluster.platform.observe(cluster.key)
        assert seen.available, seen.message
        await asyncio.sleep(1)

    after = cluster.running()
    for name in ("etcd-0", "kube-apiserver-0"):
        assert after[name] == before[name], "who reads its files again by itself is left alone"
    for name in ("kube-controller-manager-0", "kube-scheduler-0"):
        assert after[name] != before[name], "who does not is started anew"
    assert await end_of_access(cluster) > datetime.now(UTC)
    assert await cluster.get() == kept
    await cluster.ensure()

    async with cluster.api() as api:
        await api.create(DEPLOYMENTS, deployment(), "default")

        async def rolled_out() -> bool:
            status = (await api.get(DEPLOYMENTS, "web", "default")).get("status") or {}
            return bool(status.get("readyReplicas"))

        await until(rolled_out, "controllers, scheduler and the nodes' agent are believed")


def deployment() -> dict[str, object]:
    labels = {"app": "web"}
    containers = [{"name": "web", "image": "web:1"}]
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
