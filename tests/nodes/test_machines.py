"""Nodes live and die with their machines, and neither a killed agent nor a lost API server changes that."""

from __future__ import annotations

import asyncio

from boatyard.kube.kinds import LEASES, NODES
from tests.support.node_field import Field, deployment


async def test_a_machine_without_power_is_lost_and_its_pods_go_elsewhere(field: Field) -> None:
    first, second = field.add(2)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 4))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    boot = (await field.node(first))["status"]["nodeInfo"]["bootID"]

    field.twin.do("twin.power_off", host=field.host_of(first))
    async with asyncio.timeout(5):
        while field.state(first).ready:
            await field.agent.wait_changed()
    assert field.state(first).message == "The node's host does not answer."
    assert field.state(first).joined

    async def is_lost() -> bool:
        return await field.condition(first) == "Unknown"

    async def runs_elsewhere() -> bool:
        pods = await field.pods(second)
        return len([pod for pod in pods if pod["status"]["phase"] == "Running"]) == 4

    await field.until(is_lost, "NotReady")
    await field.until(runs_elsewhere, "four pods on the other node")

    field.twin.do("twin.power_off", host=field.host_of(first), on=True)
    await field.until_ready(first)
    assert await field.condition(first) == "True"
    assert (await field.node(first))["status"]["nodeInfo"]["bootID"] != boot

    async def nothing_is_left() -> bool:
        return await field.pods(first) == []

    await field.until(nothing_is_left, "pods that were to leave have left")


async def test_a_short_outage_restarts_the_pods_where_they_are(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 2))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    await asyncio.sleep(1.1)  # moments in objects are whole seconds: the boot must be a later one

    field.twin.do("twin.power_off", host=field.host_of(name))
    field.twin.do("twin.power_off", host=field.host_of(name), on=True)

    async def restarted() -> bool:
        counts = [
            one["restartCount"]
            for pod in await field.pods(name)
            for one in pod["status"]["containerStatuses"]
        ]
        return counts == [1, 1]

    await field.until(restarted, "two restarted containers")
    assert field.state(name).ready


async def test_a_machine_that_says_it_is_unready_is_not_ready_at_once(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()

    field.twin.do("twin.node_not_ready", host=field.host_of(name))

    async def says_so() -> bool:
        return await field.condition(name) == "False"

    await field.until(says_so, "Ready is False", longest=5)
    assert field.state(name).message == "The node reports that it is not ready."
    field.twin.do("twin.node_not_ready", host=field.host_of(name), ready=True)
    await field.until_ready()


async def test_a_node_deleted_by_hand_comes_back(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    uid = (await field.node(name))["metadata"]["uid"]

    await field.kubectl("delete", "node", name)

    async def is_another() -> bool:
        found = await field.client.list(NODES, fields=f"metadata.name={name}")
        return [one["metadata"]["uid"] for one in found.items] not in ([], [uid])

    await field.until(is_another, "another Node object")

    async def heartbeats() -> bool:
        lease = await field.client.list(LEASES, "kube-node-lease", fields=f"metadata.name={name}")
        owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in lease.items]
        return owners == [(await field.node(name))["metadata"]["uid"]]

    await field.until(heartbeats, "a lease of the new node")


async def test_a_node_taken_out_is_no_longer_kept_alive(field: Field) -> None:
    first, second = field.add(2)
    field.start()
    await field.until_ready()

    field.agent.set_nodes({second: field.specs[second]})

    async def is_lost() -> bool:
        return await field.condition(first) == "Unknown"

    await field.until(is_lost, "NotReady")
    assert first not in field.agent.seen()
    assert await field.condition(second) == "True"


async def test_a_new_version_and_new_labels_are_shown(field: Field) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    spec = field.specs[name]

    changed = {"version": "1.37.0", "labels": {"zone": "a"}}
    field.agent.set_nodes({name: type(spec)(**{**vars(spec), **changed})})

    async def shows_them() -> bool:
        node = await field.node(name)
        version = node["status"]["nodeInfo"]["kubeletVersion"]
        return version == "v1.37.0" and node["metadata"]["labels"].get("zone") == "a"

    await field.until(shows_them, "version and label", longest=5)


async def test_a_twin_that_is_away_ends_no_node_also_when_the_agent_starts_anew(
    field: Field,
) -> None:
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    await field.stop()
    field.twin.do("twin.set_fault", service="inventory", profile="dead")
    field.agent = field.new_agent()
    field.agent.set_nodes(field.specs)
    field.start()

    await field.until_ready()
    await field.until_it_beats(name)


async def test_a_second_agent_finds_the_nodes_as_the_first_left_them(field: Field) -> None:
    field.twin.set_boot(0.5)
    (name,) = field.add(1)
    field.start()
    await field.until_ready()
    await field.apply(deployment("web", 3))
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    node = await field.node(name)
    pods = {pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in await field.pods()}

    await field.stop()
    field.twin.set_boot(3600)  # whoever boots now takes an hour; this one has booted
    field.agent = field.new_agent()
    field.agent.set_nodes(field.specs)
    field.start()
    await field.until_ready()
    await field.kubectl("scale", "deployment/web", "--replicas=5")
    await field.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    found = await field.node(name)
    assert found["metadata"]["uid"] == node["metadata"]["uid"]
    assert found["status"]["nodeInfo"]["bootID"] == node["status"]["nodeInfo"]["bootID"]
    addresses = {pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in await field.pods()}
    assert pods.items() <= addresses.items()
    assert len(set(addresses.values())) == 5


async def test_a_bare_condition_written_by_hand_stops_no_heartbeat(field: Field) -> None:
    """`kubectl edit --subresource=status` is enough to write one without any moment."""
    first, second = field.add(2)
    field.start()
    await field.until_ready()

    bare = '{"status": {"conditions": [{"type": "Odd", "status": "True"}]}}'
    await field.kubectl("patch", "node", first, "--subresource=status", "-p", bare)

    await field.until_it_beats(first)
    await field.until_it_beats(second)
    field.check_running()
    assert await field.condition(first, "Odd") == "True"
