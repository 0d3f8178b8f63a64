"""Moods: how one order misbehaves at one step, by its name or by request. Read by verbs.

A cluster called `stuck-at-dns` stays at that step. Its name is known from the names step on; for the
steps before, which know orders only by key, `twin.set_mood` sets the mood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boatyard.model.errors import Refused

BEHAVIOURS: Mapping[str, str] = {
    "stuck": "is made, and never ready",
    "refused": "is Refused, and nothing is made",
    "unavailable": "is made, but every answer is Unavailable",
    "kept": "is made as usual, and never goes away again",
}
# Names of the steps; the names of services are accepted too.
STEPS: Mapping[str, str] = {
    "hosts": "hosts",
    "inventory": "hosts",
    "network": "network",
    "l2": "network",
    "l3": "network",
    "addresses": "addresses",
    "names": "names",
    "dns": "names",
    "install": "install",
    "platform": "install",
    "nodes": "nodes",
    "upgrade": "upgrade",
    "backup": "backup",
    "validate": "validate",
    "checks": "validate",
}
STEP_BY_KIND: Mapping[str, str] = {
    "host": "hosts",
    "network": "network",
    "port": "network",
    "subnet": "network",
    "binding": "network",
    "floating": "addresses",
    "record": "names",
    "cluster": "install",
    "node": "nodes",
    "upgrade": "upgrade",
    "backup": "backup",
    "check": "validate",
}

_BEHAVIOUR_PATTERN = re.compile(rf"({'|'.join(BEHAVIOURS)})-at-({'|'.join(STEPS)})(?![a-z0-9])")


def normalise_step(step: str) -> str:
    if step not in STEPS:
        raise Refused(f"no step {step!r}; there are {', '.join(STEPS)}")
    return STEPS[step]


def parse_behaviour(name: str, step: str) -> str:
    """The mood a name asks for at that step; empty when it asks for none."""
    if "-at-" not in name:
        return ""
    for mood, step_name in _BEHAVIOUR_PATTERN.findall(name):
        if STEPS[step_name] == step:
            return str(mood)
    return ""
