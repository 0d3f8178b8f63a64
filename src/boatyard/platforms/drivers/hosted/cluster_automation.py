"""The port to automation that creates HostedClusters in place of the platform driver. Wired in app.

The platform checks and renders; automation is given finished manifests. The platform does not trust its report: it
reads the hub.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class AutomationJob:
    """A request to automation. Two jobs with one number are the same job."""

    number: int
    order: Mapping[str, Any]  # the ClusterOrder, without anything secret
    manifests: Sequence[Mapping[str, Any]]  # to apply; or to delete, then with their uids


class ClusterAutomation(Protocol):
    async def check_ready(self) -> None:
        """Checks whether jobs can run: Unavailable or Refused when they cannot. Changes nothing."""

    async def create(self, key: str, job: AutomationJob) -> Outcome:
        """Runs a job that creates. Done once it has succeeded, Waiting until then. A new number replaces the job.

        A job that failed is Refused once; the next call runs it again.
        """

    async def delete(self, key: str, job: AutomationJob) -> Outcome:
        """Runs a job that deletes; it replaces a creation under way. A failure is Unavailable."""

    async def forget(self, key: str) -> None:
        """Forgets the job, so that the next call runs it again. Does nothing when there is none."""
