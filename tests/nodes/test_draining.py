"""A node is taken out for good: nothing of it stays, budgets are respected, and it always ends."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from boatyard.kube.kinds import LEASES, NODES, PODS
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.drivers.local.nodes.node_drain import drain_node
from tests.support.real_clusters.simulated_nodes import NodeEnvironment, deployment


async def drained(
    node_environment: NodeEnvironment, name: str, *, longest: float = 40, **options: Any
) -> list[str]:
    """Drains to the end, as its caller would; the reasons given on the way."""
    reasons = []
    end = time.monotonic() + longest
    while True:
        began = time.monotonic()
        outcome = await drain_node(node_environment.client, name, **options)
        assert time.monotonic() - began < 10
        if isinstance(outcome, Done):
            return reasons
        reasons.append(outcome.reason)
        assert time.monotonic() < end, f"still waiting: {outcome}"
        await asyncio.sleep(outcome.look_again)


async def is_gone(node_environment: NodeEnvironment, name: str) -> bool:
    nodes = await node_environment.client.list(NODES, fields=f"metadata.name={name}")
    leases = await node_environment.client.list(
        LEASES, "kube-node-lease", fields=f"metadata.name={name}"
    )
    pods = await node_environment.client.list(PODS, fields=f"spec.nodeName={name}")
    return not (nodes.items or leases.items or pods.items)


async def test_a_drained_node_is_gone_with_all_of_it_and_stays_gone(
    node_environment: NodeEnvironment,
) -> None:
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()
    template = deployment("agent", 1)["spec"]["template"]
    await node_environment.apply(
        deployment("web", 6),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
        },
    )
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    await node_environment.kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")

    reasons = await drained(node_environment, first)

    assert set(reasons) == {"Draining"}
    # The agent still has the node on its list: it must have understood that this one left for good.
    for _ in range(10):
        await asyncio.sleep(0.2)
        assert (
            await node_environment.client.list(NODES, fields=f"metadata.name={first}")
        ).items == []
    assert await is_gone(node_environment, first)
    assert await drain_node(node_environment.client, first) == Done()
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert {pod["spec"]["nodeName"] for pod in await node_environment.pods()} == {second}


async def test_a_node_put_back_on_the_list_after_it_left_registers_again(
    node_environment: NodeEnvironment,
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await drained(node_environment, name)
    node_environment.agent.set_nodes({})
    node_environment.agent.set_nodes(node_environment.specs)

    await node_environment.until_ready()
    assert not (await node_environment.node(name))["spec"].get("unschedulable")


async def test_a_disruption_budget_is_waited_for_until_the_bound(
    node_environment: NodeEnvironment,
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(
        deployment("web", 2),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    for _ in range(3):
        outcome = await drain_node(node_environment.client, name)
        assert isinstance(outcome, Waiting)
        assert outcome.reason == "DisruptionBudget"
    running = [
        one for one in await node_environment.pods(name) if one["status"]["phase"] == "Running"
    ]
    assert len(running) == 2

    await drained(node_environment, name, deadline_passed=True)

    assert await is_gone(node_environment, name)


async def test_a_node_whose_machine_is_dead_can_still_be_taken_out(
    node_environment: NodeEnvironment,
) -> None:
    first, _ = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 4, terminationGracePeriodSeconds=2))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert await node_environment.pods(first) != []
    node_environment.twin.do("twin.fail_host", host=node_environment.host_of(first))

    await drained(node_environment, first)

    assert await is_gone(node_environment, first)


@pytest.mark.parametrize("deadline_passed", [False, True])
async def test_a_pod_that_a_finalizer_holds_is_waited_for_only_until_the_bound(
    node_environment: NodeEnvironment, deadline_passed: bool
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await node_environment.kubectl("run", "p", "--image=web:1")
    await node_environment.client.merge_patch(PODS, "p", held, node_environment.namespace)
    await node_environment.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")
    try:
        if deadline_passed:
            await drained(node_environment, name, deadline_passed=True)
            nodes = await node_environment.client.list(NODES, fields=f"metadata.name={name}")
            assert nodes.items == []
        else:
            with pytest.raises(AssertionError, match="still waiting"):
                await drained(node_environment, name, longest=3)
    finally:
        free = {"metadata": {"finalizers": None}}
        await node_environment.client.merge_patch(PODS, "p", free, node_environment.namespace)
