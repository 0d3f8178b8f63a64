"""Nodes live and die with their machines, and neither a killed agent nor a lost API server changes that."""

from __future__ import annotations

import asyncio

from boatyard.kube.kinds import LEASES, NODES
from tests.support.real_clusters.simulated_nodes import NodeEnvironment, deployment


async def test_a_machine_without_power_is_lost_and_its_pods_go_elsewhere(
    node_environment: NodeEnvironment,
) -> None:
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 4))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    boot = (await node_environment.node(first))["status"]["nodeInfo"]["bootID"]

    node_environment.twin.do("twin.power_off", host=node_environment.host_of(first))
    async with asyncio.timeout(5):
        while node_environment.state(first).ready:
            await node_environment.agent.wait_changed()
    assert node_environment.state(first).message == "The node's host does not answer."
    assert node_environment.state(first).joined

    async def is_lost() -> bool:
        return await node_environment.condition(first) == "Unknown"

    async def runs_elsewhere() -> bool:
        pods = await node_environment.pods(second)
        return len([pod for pod in pods if pod["status"]["phase"] == "Running"]) == 4

    await node_environment.until(is_lost, "NotReady")
    await node_environment.until(runs_elsewhere, "four pods on the other node")

    node_environment.twin.do("twin.power_off", host=node_environment.host_of(first), on=True)
    await node_environment.until_ready(first)
    assert await node_environment.condition(first) == "True"
    assert (await node_environment.node(first))["status"]["nodeInfo"]["bootID"] != boot

    async def nothing_is_left() -> bool:
        return await node_environment.pods(first) == []

    await node_environment.until(nothing_is_left, "pods that were to leave have left")


async def test_a_short_outage_restarts_the_pods_where_they_are(
    node_environment: NodeEnvironment,
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 2))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    await asyncio.sleep(1.1)  # moments in objects are whole seconds: the boot must be a later one

    node_environment.twin.do("twin.power_off", host=node_environment.host_of(name))
    node_environment.twin.do("twin.power_off", host=node_environment.host_of(name), on=True)

    async def restarted() -> bool:
        counts = [
            one["restartCount"]
            for pod in await node_environment.pods(name)
            for one in pod["status"]["containerStatuses"]
        ]
        return counts == [1, 1]

    await node_environment.until(restarted, "two restarted containers")
    assert node_environment.state(name).ready


async def test_a_machine_that_says_it_is_unready_is_not_ready_at_once(
    node_environment: NodeEnvironment,
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()

    node_environment.twin.do("twin.node_not_ready", host=node_environment.host_of(name))

    async def says_so() -> bool:
        return await node_environment.condition(name) == "False"

    await node_environment.until(says_so, "Ready is False", longest=5)
    assert node_environment.state(name).message == "The node reports that it is not ready."
    node_environment.twin.do("twin.node_not_ready", host=node_environment.host_of(name), ready=True)
    await node_environment.until_ready()


async def test_a_node_deleted_by_hand_comes_back(node_environment: NodeEnvironment) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    uid = (await node_environment.node(name))["metadata"]["uid"]

    await node_environment.kubectl("delete", "node", name)

    async def is_another() -> bool:
        found = await node_environment.client.list(NODES, fields=f"metadata.name={name}")
        return [one["metadata"]["uid"] for one in found.items] not in ([], [uid])

    await node_environment.until(is_another, "another Node object")

    async def heartbeats() -> bool:
        lease = await node_environment.client.list(
            LEASES, "kube-node-lease", fields=f"metadata.name={name}"
        )
        owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in lease.items]
        return owners == [(await node_environment.node(name))["metadata"]["uid"]]

    await node_environment.until(heartbeats, "a lease of the new node")


async def test_a_node_taken_out_is_no_longer_kept_alive(node_environment: NodeEnvironment) -> None:
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()

    node_environment.agent.set_nodes({second: node_environment.specs[second]})

    async def is_lost() -> bool:
        return await node_environment.condition(first) == "Unknown"

    await node_environment.until(is_lost, "NotReady")
    assert first not in node_environment.agent.node_states()
    assert await node_environment.condition(second) == "True"


async def test_a_new_version_and_new_labels_are_shown(node_environment: NodeEnvironment) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    spec = node_environment.specs[name]

    changed = {"version": "1.37.0", "labels": {"zone": "a"}}
    node_environment.agent.set_nodes({name: type(spec)(**{**vars(spec), **changed})})

    async def shows_them() -> bool:
        node = await node_environment.node(name)
        version = node["status"]["nodeInfo"]["kubeletVersion"]
        return version == "v1.37.0" and node["metadata"]["labels"].get("zone") == "a"

    await node_environment.until(shows_them, "version and label", longest=5)


async def test_a_twin_that_is_away_ends_no_node_also_when_the_agent_starts_anew(
    node_environment: NodeEnvironment,
) -> None:
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.stop()
    node_environment.twin.do("twin.set_fault", service="inventory", profile="dead")
    node_environment.agent = node_environment.new_agent()
    node_environment.agent.set_nodes(node_environment.specs)
    node_environment.start()

    await node_environment.until_ready()
    await node_environment.until_it_beats(name)


async def test_a_second_agent_finds_the_nodes_as_the_first_left_them(
    node_environment: NodeEnvironment,
) -> None:
    node_environment.twin.set_boot(0.5)
    (name,) = node_environment.add(1)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.apply(deployment("web", 3))
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    node = await node_environment.node(name)
    pods = {pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in await node_environment.pods()}

    await node_environment.stop()
    node_environment.twin.set_boot(3600)  # whoever boots now takes an hour; this one has booted
    node_environment.agent = node_environment.new_agent()
    node_environment.agent.set_nodes(node_environment.specs)
    node_environment.start()
    await node_environment.until_ready()
    await node_environment.kubectl("scale", "deployment/web", "--replicas=5")
    await node_environment.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    found = await node_environment.node(name)
    assert found["metadata"]["uid"] == node["metadata"]["uid"]
    assert found["status"]["nodeInfo"]["bootID"] == node["status"]["nodeInfo"]["bootID"]
    addresses = {
        pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in await node_environment.pods()
    }
    assert pods.items() <= addresses.items()
    assert len(set(addresses.values())) == 5


async def test_a_bare_condition_written_by_hand_stops_no_heartbeat(
    node_environment: NodeEnvironment,
) -> None:
    """`kubectl edit --subresource=status` is enough to write one without any moment."""
    first, second = node_environment.add(2)
    node_environment.start()
    await node_environment.until_ready()

    bare = '{"status": {"conditions": [{"type": "Odd", "status": "True"}]}}'
    await node_environment.kubectl("patch", "node", first, "--subresource=status", "-p", bare)

    await node_environment.until_it_beats(first)
    await node_environment.until_it_beats(second)
    node_environment.check_running()
    assert await node_environment.condition(first, "Odd") == "True"
