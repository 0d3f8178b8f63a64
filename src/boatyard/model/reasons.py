"""Reasons that code decides by. Their values are what conditions, steps and events show."""

from __future__ import annotations

from enum import StrEnum


class PlacementReason(StrEnum):
    """Why a cluster waits for a hub."""

    NO_HUB = "NoHub"
    NO_CAPACITY = "NoCapacity"
    NO_HEALTHY_HUB = "NoHealthyHub"
    NO_MATCHING_HUB = "NoMatchingHub"


class ScarcityReason(StrEnum):
    """Why a step waits: something of the hub is used up. It ends when somebody gives some back, or more is added."""

    NO_FREE_HOST = "NoFreeHost"
    NO_FREE_VLAN = "NoFreeVlan"
    NO_FREE_SUBNET = "NoFreeSubnet"
    NO_FREE_ADDRESS = "NoFreeAddress"


PLACEMENT_REASONS = frozenset(PlacementReason)
SCARCITY_REASONS = frozenset(ScarcityReason)
