"""A node that leaves respects disruption budgets, but not for ever: the keeper's own clock, across its deaths."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from boatyard.kube.kinds import DISRUPTION_BUDGETS, NODES, PODS, SERVICE_ACCOUNTS
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.local.keeper import DRAIN_SECONDS
from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

SLOT = "compute-0"


async def guarded(cluster: LocalCluster) -> None:
    """A pod on the node that its budget lets nobody evict."""
    labels = {"app": "web"}
    pod: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {
            "nodeName": SLOT,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "web", "image": "web"}],
        },
    }
    budget = {"spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}}}
    async with cluster.api() as api:

        async def admits_pods() -> bool:
            accounts = (await api.list(SERVICE_ACCOUNTS, "default")).items
            return any(account["metadata"]["name"] == "default" for account in accounts)

        await until(admits_pods, "the controller has made the account that pods need")
        await api.apply(DISRUPTION_BUDGETS, "web", budget, "default")
        await api.apply(PODS, "web", pod, "default")

        async def runs() -> bool:
            status = (await api.get(PODS, "web", "default"))["status"]
            return bool(status.get("phase") == "Running")

        await until(runs, "the pod runs")


async def leave(cluster: LocalCluster) -> Outcome:
    """Asked once by somebody who bears with a keeper and an API that are only just back."""
    key = f"{cluster.order}/node/{SLOT}"
    answer: list[Outcome] = []

    async def answered() -> bool:
        try:
            answer.append(await cluster.platform.release_node(key, cluster.key, SLOT))
        except Unavailable:
            return False
        return True

    await until(answered, "the keeper answers")
    return answer[0]


async def has_been_leaving(cluster: LocalCluster, seconds: float) -> None:
    """The keeper dies, and time passes before the next one comes."""
    await cluster.environment.keeper.end(signal.SIGKILL)
    record = cluster.record()
    for node in record["nodes"].values():
        node["leaving_since"] -= seconds
    (cluster.directory / "cluster.json").write_text(json.dumps(record))
    await cluster.environment.keeper.start()


async def test_a_disruption_budget_holds_a_node_until_the_deadline(
    shared: LocalEnvironment,
) -> None:
    cluster = LocalCluster(shared, "leaving-1")
    await cluster.ensure()
    await cluster.join(SLOT)
    await guarded(cluster)
    before = await leave(cluster)
    assert isinstance(before, Waiting)
    assert before.reason == "DisruptionBudget"

    await has_been_leaving(cluster, DRAIN_SECONDS / 2)
    still = await leave(cluster)
    assert isinstance(still, Waiting)
    assert still.reason == "DisruptionBudget"

    await has_been_leaving(cluster, DRAIN_SECONDS / 2)

    async def gone() -> bool:
        return isinstance(await leave(cluster), Done)

    await until(gone, "the node has left")
    async with cluster.api() as api:
        assert (await api.list(NODES)).items == []
    await cluster.release()
