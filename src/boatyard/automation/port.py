"""The automation port: runs a template's tasks, as a role on this machine or by an external automation.

Called by the template steps of an order, and by platforms whose control planes are created by automation.
The rules of `infra/port.py` hold here too: no verb takes longer than a few seconds, slow work answers Waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boatyard.model.outcome import Outcome, OwnedObject

RUN_FAILED = "RunFailed"  # reason of Refused: the run ended and failed


@dataclass(frozen=True)
class RunSpec:
    """What to run. The same key with another `attempt` runs again; the same attempt never runs twice."""

    action: str  # a phase of the template ("post_install"), or the name of an event
    template: str
    digest: str = ""  # of the template's content; empty where the automation has its own content
    attempt: int = 1
    order: Mapping[str, object] = field(
        default_factory=dict
    )  # the order as roles and playbooks see it
    values: Mapping[str, object] = field(default_factory=dict)  # the tenant's parameters, as data
    secrets: Mapping[str, object] = field(default_factory=dict, repr=False)  # shown nowhere
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # such as `kubeconfig`
    time_limit: float = 3600.0  # seconds
    # The run decides which steps are done: it gets a token with which it requests steps of its order.
    may_request_steps: bool = False
    # Key of a run that may be waiting for this one: while it waits, both count as one against the limits.
    parent_run: str = ""


@dataclass(frozen=True)
class RunEvent:
    """One line of a run's log. `number` counts from 1 without gaps until the run is released.

    After `release_run` a run of the same key has a new log, numbered from 1 again. `start` then differs: it is
    unique to each start of the run.
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
        """Unavailable or Refused when runs cannot be started now. Changes nothing."""

    async def get_isolation_warning(self) -> str:
        """A warning for the operator when runs are not fully isolated; empty otherwise. Changes nothing."""

    async def ensure_run(self, key: str, spec: RunSpec) -> Outcome:
        """Starts the run once and returns its state: Done with the facts it reported when it has succeeded.

        Waiting while it runs. After a crash of the caller the run is found by its key. When it has failed:
        Refused with the reason RUN_FAILED and the message of the task that failed.
        """

    async def release_run(self, key: str) -> Outcome:
        """Ends the run if it is under way and removes its record and log. Done also when there is no such run."""

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        """The lines of the run's log after number `after`, in order; empty when there are none."""

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        """Every run of ours whose key starts with `prefix`."""

    async def close(self) -> None:
        """Closes connections. Runs go on. May be called twice."""
