"""Who makes HostedClusters where automation does, as the platform sees him. Wired in app.

The platform judges and renders; the workshop is handed the finished manifests. What it has done is not believed: the
platform looks at the hub.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class Job:
    """What is asked for. Two jobs of one number are the same job, asked for again."""

    number: int
    order: Mapping[str, Any]  # the ClusterOrder, without anything secret
    manifests: Sequence[Mapping[str, Any]]  # to apply; or to delete, then with their uids


class Workshop(Protocol):
    async def check_ready(self) -> None:
        """Says before any work whether jobs can be had: Unavailable or Refused when not. Changes nothing."""

    async def create(self, key: str, job: Job) -> Outcome:
        """Done once the job was carried out, Waiting until then. Another number: another job in its place.

        A job that failed is Refused, once: asked again, it is tried again.
        """

    async def delete(self, key: str, job: Job) -> Outcome:
        """The same for taking away; also in the place of a creation under way. A failure is Unavailable."""

    async def forget(self, key: str) -> None:
        """Nobody waits for the job any more; asked again, it is carried out again. Nothing there: fine."""
