"""The simulated data centre as a value: counts, truth, delays, moods, broken hosts, scale."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.twin.layout import (
    HubLayout,
    Layout,
    demo_layout,
    fleet_layout,
    read_layout,
    write_layout,
)
from boatyard.twin.state import TwinState
from boatyard.twin.world import TwinWorld

HUB = "boston-1"


class WorldCaller:
    """A world with hands: calls at its own moment, raises what is raised."""

    def __init__(self, world: TwinWorld | None = None) -> None:
        self.world = world or TwinWorld(demo_layout())
        self.now = 1_000_000.0

    def do(self, verb: str, **args: Any) -> Any:
        if not verb.startswith("twin."):
            args.setdefault("hub", HUB)
        reply = self.world.call(verb, args, self.now)
        if reply.error is not None:
            raise reply.error
        return reply.value

    def counts(self, prefix: str = "") -> dict[tuple[str, str], tuple[int, int]]:
        effects = self.do("twin.effects", prefix=prefix)
        return {(e["key"], e["kind"]): (e["applied"], e["removed"]) for e in effects}


def test_effects_are_counted_when_something_is_really_made_or_taken_away() -> None:
    caller = WorldCaller()
    for _ in range(3):
        caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    for _ in range(3):
        caller.do("inventory.release_held", key="o/host/a", host="r1-n1")

    (effect,) = caller.do("twin.effects", prefix="o/")

    counts = {"applied": 1, "removed": 1, "calls": 6}
    assert effect == {"key": "o/host/a", "kind": "host", **counts}


def test_a_second_host_under_the_same_key_shows_as_a_doubled_effect() -> None:
    caller = WorldCaller()
    caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    caller.do("inventory.ensure_held", key="o/host/a", host="r1-n2")

    assert caller.counts("o/") == {("o/host/a", "host"): (2, 0)}
    assert caller.do("twin.truth")[HUB]["host"] == {"o/host/a": ["r1-n1", "r1-n2"]}


def test_truth_is_what_is_held_now_by_hub_kind_and_key() -> None:
    caller = WorldCaller()
    caller.do("l2.ensure_network", key="o/l2", vlan=100)
    caller.do("l2.ensure_network", hub="lyon-1", key="p/l2", vlan=100)

    assert caller.do("twin.truth") == {
        HUB: {"network": {"o/l2": ["100"]}},
        "lyon-1": {"network": {"p/l2": ["100"]}},
    }
    assert caller.do("twin.truth", prefix="p/").keys() == {"lyon-1"}
    assert caller.do("twin.totals")[HUB]["network"] == 1


def test_history_is_numbered_without_gaps_and_bounded() -> None:
    caller = WorldCaller(TwinWorld(demo_layout(), TwinState(history_limit=4)))
    for _ in range(4):
        caller.do("l2.ensure_network", key="o/l2", vlan=100)
        caller.do("l2.release_network", key="o/l2")

    history = caller.do("twin.history", after=5)

    assert (history["oldest"], history["newest"]) == (5, 8)
    assert [(h["number"], h["change"]) for h in history["happenings"]] == [(6, -1), (7, 1), (8, -1)]


def test_counts_of_orders_that_hold_nothing_are_bounded() -> None:
    caller = WorldCaller(TwinWorld(demo_layout(), TwinState(settled_limit=3)))
    for number in range(10):
        caller.do("l2.ensure_network", key=f"o{number}/l2", vlan=100)
        caller.do("l2.release_network", key=f"o{number}/l2")

    assert [key for key, _ in caller.counts()] == ["o7/l2", "o8/l2", "o9/l2"]


def test_something_slow_is_waiting_until_its_moment_and_then_done() -> None:
    caller = WorldCaller()
    caller.do("twin.set_delays", profile="instant", overrides={"host": 4.0, "-host": 2.0})

    first = caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    caller.now += 1
    second = caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    due = caller.do("twin.next_event")
    caller.now = due
    third = caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")

    assert first == Waiting("A host is starting its agent.", 4.0)
    assert second == Waiting("A host is starting its agent.", 3.0)
    assert due == 1_000_004.0
    assert isinstance(third, Done)
    assert caller.do("twin.next_event") is None


def test_what_is_leaving_goes_by_itself_at_its_moment() -> None:
    caller = WorldCaller()
    caller.do("twin.set_delays", profile="instant", overrides={"-host": 2.0})
    caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")

    leaving = caller.do("inventory.release_held", key="o/host/a", host="r1-n1")
    again = caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    caller.now += 2

    assert isinstance(leaving, Waiting)
    assert again == Waiting("A host is still being wiped.", 2.0)
    assert caller.do("twin.truth") == {}
    assert isinstance(caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1"), Done)
    assert caller.counts() == {("o/host/a", "host"): (2, 1)}


def test_an_install_goes_through_stages_one_can_watch() -> None:
    caller = WorldCaller()
    caller.do("twin.set_delays", profile="demo")

    seen = []
    for _ in range(20):
        answer = install(caller)
        if isinstance(answer, Done):
            break
        seen.append(answer.why)
        caller.now += answer.look_again

    assert list(dict.fromkeys(seen)) == [
        "The control plane is being created.",
        "The API server is starting.",
        "The cluster's operators are settling.",
    ]


@pytest.mark.parametrize(
    "name, verb, expected",
    [
        pytest.param("stuck-at-dns", "names", "Stuck", id="names stay unpublished"),
        pytest.param("stuck-at-install", "install", "Stuck", id="the control plane stays away"),
        pytest.param("x-refused-at-install-y", "install", Refused, id="the platform refuses"),
        pytest.param("refused-at-dns", "names", Refused, id="the name server refuses"),
        pytest.param("unavailable-at-install", "install", Unavailable, id="nobody answers"),
        pytest.param("stuck-at-dnssec", "names", Done, id="only whole words are moods"),
        pytest.param("stuck-at-hosts", "names", Done, id="a mood is for its step only"),
    ],
)
def test_moods_by_name(name: str, verb: str, expected: Any) -> None:
    caller = WorldCaller()

    def ask() -> Any:
        if verb == "install":
            return install(caller, name)
        record = f"api.{name}-1a2b.boston.example"
        return caller.do("dns.ensure_record", key="o/n", name=record, address="1.2.3.4")

    if expected is Done:
        assert isinstance(ask(), Done)
    elif isinstance(expected, str):
        assert ask().reason == expected
        assert caller.do("twin.truth") != {}, "what is stuck is there, and must be released"
    else:
        with pytest.raises(expected):
            ask()


def test_moods_by_request_hold_one_order_at_one_step() -> None:
    caller = WorldCaller()
    caller.do("twin.set_mood", order_id="o", step="hosts", mood="stuck")

    assert caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1").reason == "Stuck"
    assert isinstance(caller.do("inventory.ensure_held", key="p/host/a", host="r1-n2"), Done)
    caller.do("twin.set_mood", order_id="o", step="hosts", mood="")
    assert isinstance(caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1"), Done)


def test_a_kept_thing_never_goes() -> None:
    caller = WorldCaller()
    caller.do("twin.set_mood", order_id="*", step="l2", mood="kept")
    caller.do("l2.ensure_network", key="o/l2", vlan=100)

    assert caller.do("l2.release_network", key="o/l2").reason == "Stuck"
    assert caller.counts() == {("o/l2", "network"): (1, 0)}


def test_a_broken_host_goes_back_unwiped_and_is_free_only_when_repaired() -> None:
    caller = WorldCaller()
    caller.do("inventory.ensure_held", key="o/host/a", host="r1-n1")
    caller.do("twin.fail_host", hub=HUB, host="r1-n1")

    assert caller.do("inventory.release_held", key="o/host/a", host="r1-n1") == Done()
    assert free(caller) == 23
    caller.do("twin.repair_host", hub=HUB, host="r1-n1")
    assert free(caller) == 24
    assert caller.do("inventory.capacity")["bm-small"] == 24


@pytest.mark.parametrize(
    "breaking, mending",
    [
        (("fail_host", {}), ("repair_host", {})),
        (("power_off", {}), ("power_off", {"on": True})),
        (("node_not_ready", {}), ("node_not_ready", {"ready": True})),
    ],
)
def test_a_host_in_trouble_degrades_its_cluster_until_it_is_mended(
    breaking: tuple[str, dict[str, Any]], mending: tuple[str, dict[str, Any]]
) -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")

    caller.do(f"twin.{breaking[0]}", hub=HUB, host="r1-n1", **breaking[1])
    broken = caller.do("platform.observe", cluster_key="o/cluster")
    caller.do(f"twin.{mending[0]}", hub=HUB, host="r1-n1", **mending[1])
    mended = caller.do("platform.observe", cluster_key="o/cluster")

    assert (broken["available"], broken["degraded"]) == (True, True)
    assert (mended["available"], mended["degraded"]) == (True, False)


def test_a_node_whose_host_was_taken_away_too_early_is_lost() -> None:
    caller = WorldCaller()
    install(caller)
    join(caller, "a", "r1-n1")

    caller.do("inventory.release_held", key="o/host/a", host="r1-n1")

    assert caller.do("platform.observe", cluster_key="o/cluster")["degraded"]


def test_agents_get_addresses_of_their_subnet_each_its_own() -> None:
    caller = WorldCaller()
    install(caller)
    for slot in ("a", "b"):
        join(caller, slot, f"r1-{slot}".replace("a", "n1").replace("b", "n2"))
    caller.do("l3.ensure_network", key="o/l3", cidr="10.1.7.0/24")
    caller.do("l3.ensure_binding", key="o/binding", network_key="o/l3", l2_key="o/l2")

    def address(slot: str, host: str) -> str:
        return str(
            caller.do("inventory.agent_address", key=f"o/host/{slot}", host=host).facts["address"]
        )

    assert [address("a", "r1-n1"), address("b", "r1-n2")] == ["10.1.7.10", "10.1.7.11"]
    assert address("a", "r1-n1") == "10.1.7.10"


@pytest.mark.parametrize(
    "verb, args",
    [
        ("no.such", {}),
        ("l2.ensure_network", {"hub": "nowhere", "key": "o/l2", "vlan": 100}),
        ("l2.ensure_network", {"hub": HUB, "key": "o/l2"}),
        ("l2.ensure_network", {"hub": HUB, "key": "o/l2", "vlan": "100"}),
        ("l2.ensure_network", {"hub": HUB, "key": "o/l2", "vlan": 99}),
        ("l2.ensure_network", {"hub": HUB, "key": "o/l2", "vlan": 100, "more": 1}),
        ("twin.set_fault", {"hub": HUB, "service": "l2", "profile": "moody"}),
        ("twin.set_fault", {"hub": HUB, "service": "l9", "profile": "dead"}),
        ("twin.set_mood", {"order_id": "o", "step": "nowhere", "mood": "stuck"}),
        ("twin.set_delays", {"profile": "never"}),
        ("twin.fail_host", {"hub": HUB, "host": "r9-n99"}),
        ("twin.add_hub", {"hub": "x", "layout": {"subnets": "10.0.0.0/33"}}),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(verb: str, args: dict[str, Any]) -> None:
    caller = WorldCaller()
    caller.world.take_changes()

    assert isinstance(caller.world.call(verb, args, caller.now).error, Refused)
    assert caller.world.take_changes() == []


def test_a_hub_that_holds_things_is_not_laid_out_anew() -> None:
    caller = WorldCaller()
    caller.do("twin.add_hub", hub="oslo-1", layout={"hosts": {"bm-small": 1}})
    caller.do("twin.add_hub", hub="oslo-1", layout={"hosts": {"bm-small": 2}})
    caller.do("inventory.ensure_held", hub="oslo-1", key="o/host/a", host="r1-n1")

    with pytest.raises(Refused):
        caller.do("twin.add_hub", hub="oslo-1", layout={"hosts": {"bm-small": 3}})


def test_a_layout_is_read_as_it_was_written(tmp_path: Any) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(write_layout(demo_layout()))
    assert read_layout(path) == demo_layout()

    path.write_text('{"hubs": {"a": {"subnets": "nonsense"}}}')
    with pytest.raises(Refused):
        read_layout(path)
    with pytest.raises(Refused):
        read_layout(tmp_path / "missing.json")


def test_a_fleet_is_laid_out_wide_enough() -> None:
    world = TwinWorld(fleet_layout(hubs=2, hosts={"bm-small": 10_000}))
    hub = world.state.hubs["hub-2"]

    assert len(hub.hosts) == 10_000
    assert min(len(hub.layout.subnet_list), len(hub.layout.floating_list) // 2) > 2_500


def test_access_differs_from_cluster_to_cluster_and_is_stable() -> None:
    caller = WorldCaller()
    install(caller)
    first = caller.do("platform.access", cluster_key="o/cluster")
    again = caller.do("platform.access", cluster_key="o/cluster")
    install(caller, key="p/cluster")

    assert first == again
    assert caller.do("platform.access", cluster_key="p/cluster")["password"] != first["password"]


def test_a_platform_with_a_list_of_versions_refuses_others() -> None:
    layout = HubLayout(hosts={"bm-small": 1}, versions=("4.17.2",))
    with pytest.raises(Refused):
        install(WorldCaller(TwinWorld(Layout(hubs={HUB: layout}))))


def install(caller: WorldCaller, name: str = "one", key: str = "o/cluster") -> Any:
    reached = {"api_name": "api.one", "api_address": "198.51.100.1"}
    reached |= {"ingress_name": "*.apps.one", "ingress_address": "198.51.100.2"}
    return caller.do("platform.ensure_cluster", key=key, name=name, version="4.17.1", **reached)


def join(caller: WorldCaller, slot: str, host: str) -> None:
    caller.do("inventory.ensure_held", key=f"o/host/{slot}", host=host)
    caller.do("l2.ensure_network", key="o/l2", vlan=100)
    caller.do("l2.ensure_port", key=f"o/port/{slot}", network_key="o/l2", host=host)
    node = {"slot": slot, "node_set": "compute", "host": host, "address": ""}
    caller.do("platform.ensure_node", key=f"o/node/{slot}", cluster_key="o/cluster", **node)


def free(caller: WorldCaller) -> int:
    return len(caller.do("inventory.list_free", host_type="bm-small", limit=1000))
