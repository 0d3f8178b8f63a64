"""The checks port: questions asked of a finished cluster. Called by the validate step, once per question.

The rules of `infra/port.py` hold here too: no question takes longer than a few seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boatyard.model.outcome import Outcome


@dataclass(frozen=True)
class Subject:
    """What a check may look at: how to reach the cluster, and what it should be."""

    cluster_key: str
    api_name: str
    api_address: str
    ingress_name: str
    ingress_address: str
    slots: tuple[str, ...]  # nodes that should be ready
    version: str
    kubeconfig: str = field(default="", repr=False)  # only for drivers that need it
    resolve: Callable[[str], Awaitable[str | None]] | None = (
        None  # looks a name up in the zone of the cluster's names
    )


class Checks(Protocol):
    needs_kubeconfig: bool
    """Whether the driver reaches the cluster itself, as its administrator."""

    def list_names(self) -> Sequence[str]:
        """The questions, in the order they are shown. Always the same for one driver."""

    async def check_ready(self) -> None:
        """Says whether questions can be asked at all: Unavailable or Refused when not."""

    async def run_check(self, name: str, subject: Subject) -> Outcome:
        """Done when the answer is yes, Waiting(why) while it is no.

        Changes nothing that stays, so it may be asked any number of times. Unavailable when it could
        not be asked. A question this driver does not know: Refused.
        """

    async def close(self) -> None:
        """Lets go of connections. May be called twice."""
