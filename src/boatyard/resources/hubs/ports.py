"""The ports for which a hub names drivers, and the drivers of each. Read by the hub's rules and by app."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard import automation, checks, platforms
from boatyard.infra import dns, inventory, l2, l3

PORTS: Mapping[str, Mapping[str, str]] = {
    "inventory": inventory.DRIVERS,
    "l2": l2.DRIVERS,
    "l3": l3.DRIVERS,
    "dns": dns.DRIVERS,
    "platform": platforms.DRIVERS,
    "checks": checks.DRIVERS,
}

# Ports that a hub may leave out: without a named driver there is none.
OPTIONAL_PORTS: Mapping[str, Mapping[str, str]] = {
    "automation": automation.DRIVERS,
}

DEFAULT_DRIVER = "sim"  # for a port without a named driver

# Ports whose drivers hold something for every existing cluster.
STATEFUL_PORTS = ("inventory", "l2", "l3", "dns", "platform")

# Functions by which drivers refuse a hub's settings that they could not work with.
SETTING_CHECKS: Mapping[str, Mapping[str, str]] = {
    "platform": platforms.SETTING_CHECKS,
    "automation": automation.SETTING_CHECKS,
}
