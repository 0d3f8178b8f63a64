"""The arguments of a check: a client of the cluster, the subject, and the operator's settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from boatyard.checks.port import Subject
from boatyard.kube.client import KubeClient
from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class CheckSettings:
    """Settings of the checks that an operator may change."""

    certificate_days: float = 7.0  # certificates must be valid for at least this long
    image: str = "localhost/pause:1"  # of the test workload: runs until it is stopped
    trial_seconds: float = 3.0  # one call waits for a test Job for at most this long
    trial_deadline: int = 300  # seconds after which an abandoned test Job ends by itself


@dataclass(frozen=True)
class CheckContext:
    client: KubeClient
    subject: Subject
    settings: CheckSettings
    now: datetime


CheckFunction = Callable[[CheckContext], Awaitable[Outcome]]
