"""The ports that a hub names drivers for, and the drivers there are. Read by the hub's rules and by app."""

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

# What a hub may do without: there is none unless it is named.
OPTIONAL_PORTS: Mapping[str, Mapping[str, str]] = {
    "automation": automation.DRIVERS,
}

DEFAULT_DRIVER = "sim"  # of a port that a hub names none for

# Whose drivers keep something of a cluster for as long as there is one.
HOLDING = ("inventory", "l2", "l3", "dns", "platform")

# Of drivers that can say by a hub's settings alone that they could not work.
SETTING_CHECKS: Mapping[str, Mapping[str, str]] = {
    "platform": platforms.SETTING_CHECKS,
    "automation": automation.SETTING_CHECKS,
}
