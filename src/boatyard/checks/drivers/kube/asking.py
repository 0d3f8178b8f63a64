"""What a question is given to look with, and how it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from boatyard.checks.port import Subject
from boatyard.kube.client import KubeClient
from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class Manner:
    """What an operator may want otherwise."""

    certificate_days: float = 7.0  # certificates must be good for at least so long
    image: str = "localhost/pause:1"  # of the test workload: runs until it is stopped
    trial_seconds: float = 3.0  # a call watches a trial at most so long
    trial_deadline: int = (
        300  # a trial nobody asks about any more ends by itself after so many seconds
    )


@dataclass(frozen=True)
class Asking:
    client: KubeClient
    subject: Subject
    manner: Manner
    now: datetime


Question = Callable[[Asking], Awaitable[Outcome]]
