"""The delays of the stages: realistic, multiplied by a factor, or none. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

STAGE_SECONDS: Mapping[str, float] = {
    # A control plane: available after three to four minutes.
    "infrastructure": 25,
    "etcd": 50,
    "api-server": 40,
    "ignition": 20,
    "available": 60,
    # Its version: complete some minutes after the first node has joined.
    "rollout": 420,
    "upgrade": 1500,
    # Nodes.
    "vm": 180,
    "discover": 15,
    "bind": 20,
    "install": 330,
    "join": 60,
    "update": 300,
    "repair": 960,
    # Deletion.
    "drain": 30,
    "vm-delete": 20,
    "unbind": 90,
    "control-plane-delete": 60,
}
SPREAD = 0.2  # one machine is up to a fifth slower or faster than the next


class BadDelays(ValueError):
    """A text that names no pace."""


@dataclass(frozen=True)
class StageDelays:
    """Multiplies all delays by one factor: 0 is no delay, 1 is realistic."""

    factor: float = 1.0

    def seconds_for(self, stage: str, key: str) -> float:
        """Seconds of one stage: the same for the same key, a little different for each key."""
        chance = zlib.crc32(f"{stage} {key}".encode()) / 2**32
        return STAGE_SECONDS[stage] * self.factor * (1 - SPREAD + 2 * SPREAD * chance)

    def __str__(self) -> str:
        return {0.0: "instant", 1.0: "realistic"}.get(self.factor, f"{self.factor:g}")


def parse_delays(text: str) -> StageDelays:
    """instant, realistic, or a factor such as 0.01."""
    if text == "instant":
        return StageDelays(0.0)
    if text == "realistic":
        return StageDelays(1.0)
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < 1e6:
        raise BadDelays(f"no pace {text!r}: say instant, realistic, or a factor such as 0.01")
    return StageDelays(factor)
