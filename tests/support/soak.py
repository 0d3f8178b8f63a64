"""Long and short forms of a proof: `make soak` runs the long ones, every other run the short ones.

SECONDS = soak(short=40.0, long=600.0)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from boatyard.proof.kill_points import KillPoint

SOAKING = os.environ.get("BOATYARD_SOAK") == "1"

Length = TypeVar("Length", int, float)


def soak(*, short: Length, long: Length) -> Length:
    """The long form's value under `make soak`, the short form's otherwise."""
    return long if SOAKING else short


def soak_cases(cases: Sequence[Any], *, short: int) -> Sequence[Any]:
    """All cases of a parametrised test under `make soak`, the first few otherwise."""
    return cases if SOAKING else cases[:short]


def soak_points(sample: Mapping[str, Sequence[str]]) -> Callable[[str, KillPoint], bool]:
    """Every point of a crash proof under `make soak`; otherwise those named by journey, when they come first."""
    if SOAKING:
        return lambda journey, point: True
    return lambda journey, point: point.label in sample.get(journey, ()) and point.occurrence == 1
