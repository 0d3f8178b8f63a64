"""Something that runs a template's tasks: a role on this machine, or somebody else's automation.

Called by the template steps of an order, and by a platform whose control planes are made by automation.
The rules of `infra/port.py` hold here too: no verb takes longer than a few seconds, slow work answers Waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boatyard.model.outcome import Outcome, Owned

RUN_FAILED = "RunFailed"  # reason of Refused: the run came to its end and was not content


@dataclass(frozen=True)
class RunWanted:
    """One run. The same key with another `attempt` is run again; with the same it never is."""

    action: str  # what is run: a phase of the template ("post_install"), or an event's name
    template: str
    digest: str = ""  # of the template's content; empty where the automation has content of its own
    attempt: int = 1
    order: Mapping[str, object] = field(default_factory=dict)  # the order as others know it
    values: Mapping[str, object] = field(default_factory=dict)  # the tenant's parameters, as data
    secrets: Mapping[str, object] = field(default_factory=dict, repr=False)  # shown nowhere
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # such as `kubeconfig`
    time_limit: float = 3600.0  # seconds
    may_ask: bool = (
        False  # it decides what is done: it gets a pass with which it asks its order for steps
    )
    within: str = (
        ""  # key of a run that may be waiting for this one: while it is, the two count as one
    )


@dataclass(frozen=True)
class RunEvent:
    """One line of a run's story. `number` counts from 1 and has no gaps for as long as the run is kept.

    After `release_run` a run of the same key tells a new story, which begins with 1 again. `start` then differs: it
    is a name of its own for each time that the run was set going.
    """

    number: int
    at: str  # RFC 3339
    kind: str  # "task", "ok", "changed", "failed", "skipped", "output", "end"
    task: str = ""
    text: str = ""
    attempt: int = 1
    start: str = ""


class Automation(Protocol):
    async def check_ready(self) -> None:
        """Says before any work whether runs can be had: Unavailable or Refused when not. Changes nothing."""

    async def caution(self) -> str:
        """What an operator should know of how runs are kept apart; empty when there is nothing. Changes nothing."""

    async def ensure_run(self, key: str, spec: RunWanted) -> Outcome:
        """Starts the run, once, and says how it goes. Done with the facts it reported when it has succeeded.

        Waiting while it runs, and after a crash of whoever asked: the run is found by its key. One that
        failed: Refused with the reason RUN_FAILED, in the words of the task that failed.
        """

    async def release_run(self, key: str) -> Outcome:
        """Ends the run if it is under way and removes what is kept of it. Nothing there: Done."""

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        """What is known of the run's story beyond number `after`, in order; empty when there is none."""

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        """Every run of ours whose key starts with `prefix`."""

    async def close(self) -> None:
        """Lets go of connections. May be called twice."""
