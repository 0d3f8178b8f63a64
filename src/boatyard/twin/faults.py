"""Faults by name: how a service of the data centre can misbehave. Read at every call."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from boatyard.model.errors import Refused

PROFILES: Mapping[str, str] = {
    "none": "behaves",
    "slow": "answers after `seconds`",
    "flaky": "every `every`-th call is Unavailable, half of those after they did their work",
    "dead": "Unavailable at once; with `silent`, no answer at all",
    "lies": "says Done and does nothing, for every ensure_… and release_…",
}


class TwinFault(msgspec.Struct, gc=False, omit_defaults=True):
    """One profile in force somewhere."""

    profile: str
    seconds: float = 0.5
    every: int = 3
    silent: bool = False
    calls: int = 0  # since it was switched on, or since the twin started


def make_fault(profile: str, seconds: float, every: int, silent: bool) -> TwinFault | None:
    """The fault asked for; None for `none`."""
    if profile not in PROFILES:
        raise Refused(f"no fault profile {profile!r}; there are {', '.join(PROFILES)}")
    if every < 1 or seconds < 0:
        raise Refused("`every` must be at least 1 and `seconds` at least 0")
    if profile == "none":
        return None
    return TwinFault(profile=profile, seconds=seconds, every=every, silent=silent)


def find_fault(
    faults: Mapping[tuple[str, str], TwinFault], hub: str, verb: str
) -> TwinFault | None:
    """The most specific fault: this hub before all hubs, the verb before its service before all."""
    service = verb.partition(".")[0]
    for hub_name in (hub, "*"):
        for target in (verb, service, "*"):
            fault = faults.get((hub_name, target))
            if fault is not None:
                return fault
    return None
