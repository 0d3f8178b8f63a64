"""A node is taken out for good: nothing of it stays, budgets are respected, and it always ends."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from boatyard.kube.kinds import LEASES, NODES, PODS
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.drivers.local.nodes.draining import drain
from tests.support.node_field import Field, deployment


async def drained(field: Field, name: str, *, longest: float = 40, **options: Any) -> list[str]:
    """Drains to the end, as its caller would; the reasons given on the way."""
    reasons = []
    end = time.monotonic() + longest
    while True:
        began = time.monotonic()
        outcome = await drain(field.client, name, **options)
        assert time.monotonic() - began < 10
        if isinstance(outcome, Done):
            return reasons
        reasons.append(outcome.reason)
        assert time.monotonic() < end, f"still waiting: {outcome}"
        await asyncio.sleep(outcome.look_again)


async def is_gone(field: Field, name: str) -> bool:
    nodes = await field.client.list(NODES, fields=f"metadata.name={name}")
    leases = await field.client.list(LEASES, "kube-node-lease", fields=f"metadata.name={name}")
    pods = await field.client.list(PODS, fields=f"spec.nodeName={name}")
    return not (nodes.items or leases.items or pods.items)


async def test_a_drained_node_is_gone_with_all_of_it_and_stays_gone(field: Field) -> None:
    first, second = field.add(2)
    field.start()
    await field.until_ready()
    template = deployment("agent", 1)["spec"]["template"]
    await field.apply(
        deployment("web", 6),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
        },
    )
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    await field.kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")

    reasons = await drained(field, first)

    assert set(reasons) == {"Draining"}
    # The agent still has the node on its list: it must have understood that this one left for good.
    for _ in range(10):
        await asyncio.sleep(0.2)
        assert (await field.client.list(NODES, fields=f"metadata.name={first}")).items == []
    assert await is_gone(field, first)
    assert await drain(field.client, first) == Done()
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert {pod["spec"]["nodeName"] for pod in await field.pods()} == {second}


async def test_a_node_put_back_on_the_list_after_it_left_registers_again(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    await drained(field, name)
    field.agent.set_nodes({})
    field.agent.set_nodes(field.specs)

    await field.until_ready()
    assert not (await field.node(name))["spec"].get("unschedulable")


async def test_a_disruption_budget_is_waited_for_until_the_bound(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    await field.apply(
        deployment("web", 2),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    for _ in range(3):
        outcome = await drain(field.client, name)
        assert isinstance(outcome, Waiting)
        assert outcome.reason == "DisruptionBudget"
    running = [one for one in await field.pods(name) if one["status"]["phase"] == "Running"]
    assert len(running) == 2

    await drained(field, name, deadline_passed=True)

    assert await is_gone(field, name)


async def test_a_node_whose_machine_is_dead_can_still_be_taken_out(field: Field) -> None:
    first, _ = field.add(2)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 4, terminationGracePeriodSeconds=2))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert await field.pods(first) != []
    field.twin.do("twin.fail_host", host=field.host_of(first))

    await drained(field, first)

    assert await is_gone(field, first)


@pytest.mark.parametrize("deadline_passed", [False, True])
async def test_a_pod_that_a_finalizer_holds_is_waited_for_only_until_the_bound(
    field: Field, deadline_passed: bool
) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await field.kubectl("run", "p", "--image=web:1")
    await field.client.merge_patch(PODS, "p", held, field.namespace)
    await field.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")
    try:
        if deadline_passed:
            await drained(field, name, deadline_passed=True)
            nodes = await field.client.list(NODES, fields=f"metadata.name={name}")
            assert nodes.items == []
        else:
            with pytest.raises(AssertionError, match="still waiting"):
                await drained(field, name, longest=3)
    finally:
        free = {"metadata": {"finalizers": None}}
        await field.client.merge_patch(PODS, "p", free, field.namespace)
