"""How simulated nodes stand, what is written about them, and which of them leaves first."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local.nodes.delay_queue import DelayQueue
from boatyard.platforms.drivers.local.nodes.machines import MachineState, TwinMachineSource
from boatyard.platforms.drivers.local.nodes.node_drain import Candidate, choose_leaving
from boatyard.platforms.drivers.local.nodes.node_health import (
    NodeHealth,
    assess_health,
    boot_id,
    to_node_state,
)
from boatyard.platforms.drivers.local.nodes.objects import (
    NodeCondition,
    NodeLease,
    is_current,
    node_body,
    node_status,
    summarize_node,
)
from boatyard.platforms.drivers.local.nodes.pod_addresses import PodAddresses
from boatyard.platforms.drivers.local.nodes.simulated_node import SimulatedNode
from boatyard.platforms.drivers.local.nodes.spec import NodeSpec, NodeState
from boatyard.twin.layout import demo_layout
from boatyard.twin.world import TwinWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC = NodeSpec("compute-0", "compute", "r1-n1", "10.1.7.10", "1.36.3", "10.128.3.0/24")
STARTED = 1000.0
MACHINE = MachineState(started_at=STARTED, boot_seconds=30.0)
UP, DOWN, DETACHED = NodeHealth.UP, NodeHealth.DOWN, NodeHealth.DETACHED


@pytest.mark.parametrize(
    "machine, now, expected",
    [
        pytest.param(None, 2000.0, NodeHealth.UNKNOWN, id="nobody knows the machine yet"),
        pytest.param(MACHINE, 1029.9, NodeHealth.BOOTING, id="it boots slowly"),
        pytest.param(MACHINE, 1030.0, UP, id="it has booted"),
        pytest.param(replace(MACHINE, unready=True), 1030.0, NodeHealth.UNREADY, id="unready"),
        pytest.param(replace(MACHINE, unready=True), 1000.0, NodeHealth.BOOTING, id="boots first"),
        pytest.param(replace(MACHINE, power=False), 2000.0, DOWN, id="without power"),
        pytest.param(replace(MACHINE, broken=True), 2000.0, DOWN, id="broken"),
        pytest.param(replace(MACHINE, attached=False), 2000.0, DETACHED, id="unplugged"),
    ],
)
def test_a_node_stands_as_its_machine_lets_it(
    machine: MachineState | None, now: float, expected: NodeHealth
) -> None:
    assert assess_health(SPEC, machine, booted_before=False, now=now) is expected


def test_a_node_boots_from_the_moment_it_was_asked_for() -> None:
    asked = replace(SPEC, since=5000.0)

    assert assess_health(asked, MACHINE, booted_before=False, now=5029.0) is NodeHealth.BOOTING
    assert assess_health(asked, MACHINE, booted_before=False, now=5030.0) is UP


def test_a_node_seen_after_its_present_boot_has_booted_also_when_boots_become_slower() -> None:
    slower = replace(MACHINE, boot_seconds=9000.0)
    kept = SimulatedNode(SPEC)
    kept.summary = summarize_node(as_kept(node_body(SPEC, MACHINE, NOW)), SPEC)

    for machine, expected in (
        (slower, UP),
        (replace(slower, started_at=1500.0), NodeHealth.BOOTING),
    ):
        kept.machine = machine
        assert kept.update_health(2000.0)
        assert kept.health is expected
        assert not kept.update_health(2000.1)


@pytest.mark.parametrize(
    "standing, joined, reported, expected",
    [
        (NodeHealth.BOOTING, False, False, NodeState(False, False, "The node is joining.")),
        (NodeHealth.BOOTING, True, True, NodeState(True, False, "The node's host is starting.")),
        (UP, False, False, NodeState(False, False, "The node is joining.")),
        (UP, True, False, NodeState(True, False, "The node is joining.")),
        (UP, True, True, NodeState(True, True)),
        (DOWN, True, True, NodeState(True, False, "The node's host does not answer.")),
        (NodeHealth.UNKNOWN, True, True, NodeState(True, True)),
    ],
)
def test_what_the_keeper_is_told(
    standing: NodeHealth, joined: bool, reported: bool, expected: NodeState
) -> None:
    assert to_node_state(standing, joined=joined, reported_ready=reported) == expected


def as_kept(body: dict[str, Any]) -> dict[str, Any]:
    about = {**body["metadata"], "uid": "u", "resourceVersion": "12"}
    return {**body, "metadata": about}


def test_a_node_says_what_is_true_of_it_and_no_name_of_the_data_centre() -> None:
    body = node_body(SPEC, MACHINE, NOW)
    seen = summarize_node(as_kept(body), SPEC)

    assert (seen.ready_status, seen.version, seen.has_labels) == ("True", "v1.36.3", True)
    assert body["spec"]["podCIDR"] == "10.128.3.0/24"
    assert body["status"]["addresses"] == [{"type": "InternalIP", "address": "10.1.7.10"}]
    assert "r1-n1" not in json.dumps(body)


@pytest.mark.parametrize(
    "spec, machine",
    [
        pytest.param(SPEC, replace(MACHINE, unready=True), id="ready"),
        pytest.param(SPEC, replace(MACHINE, started_at=2000.0), id="boot"),
        pytest.param(replace(SPEC, version="1.37.0"), MACHINE, id="version"),
        pytest.param(replace(SPEC, address="10.1.7.11"), MACHINE, id="address"),
    ],
)
def test_what_is_no_longer_true_is_noticed(spec: NodeSpec, machine: MachineState) -> None:
    seen = summarize_node(as_kept(node_body(SPEC, MACHINE, NOW)), SPEC)

    assert is_current(seen, SPEC, MACHINE, boot_id(SPEC, MACHINE))
    assert not is_current(seen, spec, machine, boot_id(spec, machine))


def test_a_missing_label_is_noticed_and_further_ones_are_nobody_s_business() -> None:
    item = as_kept(node_body(SPEC, MACHINE, NOW))
    item["metadata"]["labels"]["more"] = "yes"

    assert summarize_node(item, SPEC).has_labels
    assert not summarize_node(item, replace(SPEC, labels={"zone": "a"})).has_labels


def test_a_condition_without_moments_is_read_and_kept() -> None:
    """What an API server shows of one that somebody wrote with a type and a status alone."""
    node = as_kept(node_body(SPEC, MACHINE, NOW))
    bare = {"type": "Odd", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}
    ready = {**bare, "type": "Ready"}
    node["status"]["conditions"] = [bare, ready]

    seen = summarize_node(node, SPEC)
    found = {
        one["type"]: one for one in node_status(SPEC, MACHINE, seen.conditions, NOW)["conditions"]
    }

    assert found["Odd"]["lastTransitionTime"] is None
    assert found["Ready"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_conditions_keep_their_transition_and_those_of_others_stay() -> None:
    foreign = NodeCondition(
        "NetworkUnavailable", "False", last_transition_time="2020-01-01T00:00:00Z"
    )
    lost = NodeCondition("Ready", "Unknown", last_transition_time="2020-01-01T00:00:00Z")
    calm = NodeCondition("DiskPressure", "False", last_transition_time="2021-01-01T00:00:00Z")

    status = node_status(SPEC, MACHINE, (foreign, lost, calm), NOW)

    found = {one["type"]: one for one in status["conditions"]}
    assert found["NetworkUnavailable"]["status"] == "False"
    assert found["DiskPressure"]["lastTransitionTime"] == "2021-01-01T00:00:00Z"
    assert found["Ready"]["status"] == "True"
    assert found["Ready"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_a_lease_is_the_same_but_for_version_and_moment() -> None:
    lease = NodeLease("compute-0", "u1", 40)
    first = json.loads(lease.render(NOW))
    lease.resource_version = "77"
    second = json.loads(lease.render(NOW))

    assert first["spec"] == {
        "holderIdentity": "compute-0",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T12:00:00.000000Z",
    }
    assert first["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert "resourceVersion" not in first["metadata"]
    assert second["metadata"]["resourceVersion"] == "77"


def test_a_thousand_heartbeats_spread_evenly_over_their_period() -> None:
    counts = [0] * 10
    for number in range(1000):
        kept = SimulatedNode(replace(SPEC, name=f"compute-{number}"))
        kept.schedule_heartbeat(now=123.0, every=10.0)
        assert 123.0 < kept.lease_at <= 133.1
        counts[int(kept.lease_at) % 10] += 1

    assert max(counts) < 140
    assert min(counts) > 60


def test_pod_addresses_are_given_once_and_come_back() -> None:
    addresses = PodAddresses()
    addresses.record("10.0.0.3", "old")
    given = [addresses.allocate("10.0.0.0/29", "n", f"p{number}") for number in range(5)]

    assert given == ["10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6", ""]
    assert addresses.allocate("10.0.0.0/29", "n", "p0") == "10.0.0.2"
    addresses.release("p1")
    assert addresses.allocate("10.0.0.0/29", "n", "late") == "10.0.0.4"


def test_nodes_without_a_range_have_addresses_that_differ() -> None:
    addresses = PodAddresses()
    given = {addresses.allocate("", f"n{number % 50}", f"p{number}") for number in range(2000)}

    assert len(given) == 2000


@pytest.mark.parametrize(
    "count, expected",
    [(0, []), (1, ["c-5"]), (2, ["c-5", "c-2"]), (3, ["c-5", "c-2", "c-1"]), (9, 6)],
)
def test_who_leaves_first(count: int, expected: list[str] | int) -> None:
    ready, lost = NodeState(True, True), NodeState(True, False)
    known = {
        "c-0": Candidate(ready, made_at=10),
        "c-1": Candidate(lost, made_at=10),
        "c-2": Candidate(NodeState(False, False), made_at=10),
        "c-3": Candidate(ready, made_at=30),
        "c-4": Candidate(ready, made_at=30),
    }
    slots = ["c-0", "c-1", "c-2", "c-3", "c-4", "c-5"]

    chosen = choose_leaving(slots, count, known)

    assert (len(chosen) if isinstance(expected, int) else chosen) == expected
    assert choose_leaving(slots, 6, known)[3:] == ["c-4", "c-3", "c-0"]


async def test_a_key_is_due_once_at_the_earlier_moment_and_with_one_taker_at_a_time() -> None:
    agenda = DelayQueue()
    now = asyncio.get_running_loop().time()
    agenda.put("b", now + 0.02)
    agenda.put("a", now + 60)
    agenda.put("a", now + 0.01)
    agenda.put("a", now + 30)

    assert [await agenda.take(), await agenda.take()] == ["a", "b"]
    agenda.put("a")
    waiting = asyncio.create_task(agenda.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    agenda.done("a")
    assert await waiting == "a"


async def test_nothing_is_given_while_all_rest_and_nothing_is_lost_by_a_taker_that_leaves() -> None:
    agenda = DelayQueue()
    now = asyncio.get_running_loop().time()
    agenda.pause_until(now + 0.05)
    agenda.put("a")
    early = asyncio.create_task(agenda.take())
    await asyncio.sleep(0)
    early.cancel()
    await asyncio.gather(early, return_exceptions=True)

    assert await agenda.take() == "a"
    assert asyncio.get_running_loop().time() >= now + 0.05


class CountingTwin:
    def __init__(self) -> None:
        self.world = TwinWorld(demo_layout())
        self.calls: list[list[str]] = []

    async def call(self, verb: str, /, **args: Any) -> Any:
        reply = self.world.call(verb, args, 1_000_000.0)
        if verb == "inventory.machines":
            self.calls.append(list(args["names"]))
        if reply.error is not None:
            raise reply.error
        return reply.value

    async def close(self) -> None:
        return None


async def test_clusters_of_one_hub_share_one_look_at_the_twin() -> None:
    twin = CountingTwin()
    machines = TwinMachineSource(twin, "boston-1")
    await twin.call("twin.power_off", hub="boston-1", host="r1-n2")

    first = await machines.read_states(["r1-n1", "nowhere"])
    second = await machines.read_states(["r1-n2"])
    third = await machines.read_states(["r1-n1", "r1-n2"])

    assert (first["r1-n1"].power, second["r1-n2"].power) == (True, False)
    assert first.keys() == {"r1-n1"}
    assert third["r1-n1"] is first["r1-n1"], "what has not changed is the same object"
    assert twin.calls == [["r1-n1", "nowhere"], ["r1-n2"]]


async def test_a_twin_that_does_not_answer_says_nothing_about_machines() -> None:
    twin = CountingTwin()
    await twin.call("twin.set_fault", hub="*", service="inventory", profile="dead")

    machines = TwinMachineSource(twin, "boston-1")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await machines.read_states(["r1-n1"])
    await twin.call("twin.clear_faults")
    assert (await machines.read_states(["r1-n1"]))["r1-n1"].power
    await twin.call("twin.set_fault", hub="*", service="inventory", profile="dead")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await machines.read_states(["r1-n1", "r1-n2"])
