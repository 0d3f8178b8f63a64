"""Exponential back-off: the growing pauses between tries of what failed or is not ready yet. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

_LARGEST_EXPONENT = 64  # far past every bound, and small enough for a float
_SPREAD = 0.25


@dataclass(frozen=True)
class Backoff:
    """Pauses in seconds: `first`, then each `factor` times the one before, never more than `longest`."""

    first: float
    longest: float = math.inf
    factor: float = 2.0

    def pause(self, tries: int, *, share: float = 0.5) -> float:
        """The pause after this many tries in a row, counted from 1.

        `share`, from 0 to 1, spreads the pauses of several callers by a quarter up and down; 0.5 changes nothing.
        """
        exponent = min(tries - 1, _LARGEST_EXPONENT)
        pause = min(self.longest, self.first * self.factor**exponent)
        return pause * (1 - _SPREAD + 2 * _SPREAD * share)

    def pauses(self) -> Iterator[float]:
        """All pauses in a row, without end."""
        tries = 0
        while True:
            tries += 1
            yield self.pause(tries)


def share_of(text: str) -> float:
    """A number from 0 to 1 that is the same for the same text and differs between most texts."""
    return hashlib.sha256(text.encode()).digest()[0] / 255
