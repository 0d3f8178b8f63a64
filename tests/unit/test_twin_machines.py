"""What the twin says of its machines to whoever plays their operating system."""

from __future__ import annotations

from typing import Any

from boatyard.twin.layout import demo_layout
from boatyard.twin.world import TwinWorld

HUB = "boston-1"


class Rack:
    """A world with hands, at its own moment."""

    def __init__(self) -> None:
        self.world = TwinWorld(demo_layout())
        self.now = 1_000_000.0

    def do(self, verb: str, **args: Any) -> Any:
        reply = self.world.call(verb, {"hub": HUB, **args}, self.now)
        assert reply.error is None, reply.error
        return reply.value

    def machine(self, host: str = "r1-n1") -> dict[str, Any]:
        (found,) = self.do("inventory.machines", names=[host, "nowhere"]).values()
        return dict(found)

    def attach(self, host: str = "r1-n1") -> None:
        self.do("inventory.ensure_held", key="o/host/a", host=host)
        self.do("l2.ensure_network", key="o/l2", vlan=100)
        self.do("l2.ensure_port", key="o/port/a", network_key="o/l2", host=host)


def test_a_machine_runs_from_the_moment_it_was_taken_or_came_up_again() -> None:
    rack = Rack()
    overrides = {"host": 4.0, "node": 3.0}
    rack.world.call("twin.set_delays", {"overrides": overrides}, rack.now)
    rack.attach()
    taken = rack.now

    assert rack.machine() == {
        "power": True,
        "broken": False,
        "unready": False,
        "attached": True,
        "since": taken + 4.0,
        "boot": 3.0,
    }
    rack.now += 60
    rack.do("twin.power_off", host="r1-n1")
    assert (rack.machine()["power"], rack.machine()["since"]) == (False, taken + 4.0)
    rack.now += 60
    rack.do("twin.power_off", host="r1-n1", on=True)
    assert (rack.machine()["power"], rack.machine()["since"]) == (True, taken + 120.0)
    rack.now += 60
    rack.do("twin.power_off", host="r1-n1", on=True)
    rack.do("twin.node_not_ready", host="r1-n1")
    assert (rack.machine()["unready"], rack.machine()["since"]) == (True, taken + 120.0)


def test_a_broken_machine_starts_when_it_is_repaired() -> None:
    rack = Rack()
    rack.do("twin.fail_host", host="r1-n1")
    rack.do("twin.power_off", host="r1-n1")
    rack.now += 5
    rack.do("twin.power_off", host="r1-n1", on=True)
    broken = rack.machine()
    rack.now += 5
    rack.do("twin.repair_host", host="r1-n1")
    repaired = rack.machine()

    assert (broken["broken"], broken["since"], broken["attached"]) == (True, 0.0, False)
    assert (repaired["broken"], repaired["since"]) == (False, rack.now)


def test_a_machine_taken_off_its_network_or_given_back_is_not_attached() -> None:
    rack = Rack()
    rack.attach()
    attached = rack.machine()["attached"]
    rack.do("l2.release_port", key="o/port/a", host="r1-n1")
    unplugged = rack.machine()["attached"]
    rack.attach()
    rack.do("inventory.release_held", key="o/host/a", host="r1-n1")

    assert (attached, unplugged, rack.machine()["attached"]) == (True, False, False)


def test_taking_a_machine_that_is_off_starts_it() -> None:
    rack = Rack()
    rack.do("twin.power_off", host="r1-n1")
    rack.now += 5
    rack.attach()

    assert (rack.machine()["power"], rack.machine()["since"]) == (True, rack.now)
