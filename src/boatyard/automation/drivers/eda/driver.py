"""The automation driver `eda`: sends events to a rulebook and gets results by a signed callback.

A rulebook stores no key and forgets acknowledged events, so a record of each run is made on the hub before its event
is sent. After a crash between recording, sending and marking as sent, the run is found in its record and the event
is sent again with the same run id: playbooks are idempotent. An event without a result for a long time is also sent
again. A run under way cannot be ended; once its record is gone or replaced by another run, the callback server
tells the playbook so and ignores its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from boatyard.automation.drivers.eda.bucket import Bucket
from boatyard.automation.drivers.eda.sending import Sender, event
from boatyard.automation.drivers.eda.settings import read_settings
from boatyard.automation.port import RUN_FAILED, RunEvent, RunWanted
from boatyard.automation.runs import (
    RECORDED,
    SENT,
    SUCCEEDED,
    Kept,
    Line,
    Run,
    RunBook,
    run_id,
)
from boatyard.kube.client import KubeClient
from boatyard.model.errors import Conflict, Exists, NotFound, Refused
from boatyard.model.outcome import Done, Outcome, Owned, Waiting

LOOK_AGAIN = 2.0
KIND = "run"
_ACTION = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_BUSY = Waiting("The run is being recorded.", 0.5, "Busy")


class EdaAutomation:
    """The automation of one hub. `client` and `settings` are those of the hub; the caller closes `client`."""

    def __init__(
        self,
        client: KubeClient,
        settings: Mapping[str, str],
        hub_id: str,
        *,
        namespace: str,
        now: Callable[[], datetime],
        new_secret: Callable[[], str],
    ) -> None:
        self._settings = read_settings(settings)
        self._runs = RunBook(client, namespace, hub_id)
        self._sender = Sender(client, namespace, self._settings)
        self._bucket = Bucket(self._settings.per_second)
        self._now = now
        self._new_secret = new_secret

    async def check_ready(self) -> None:
        await self._sender.check()

    async def caution(self) -> str:
        return ""  # the external automation isolates its runs

    async def ensure_run(self, key: str, spec: RunWanted) -> Outcome:
        _check(spec)
        stored_run = await self._runs.get(key)
        if stored_run is None or not _is_of(stored_run.run, spec):
            if not await self._record(key, spec, stored_run):
                return _BUSY
            stored_run = await self._runs.get(key)
            if stored_run is None:
                return _BUSY
        if stored_run.run.is_over:
            return _answer(stored_run.run)
        if stored_run.run.state == SENT and not self._is_due(stored_run.run):
            return Waiting("The automation is at work.", LOOK_AGAIN, "RunUnderWay")
        return await self._send(stored_run, spec)

    async def release_run(self, key: str) -> Outcome:
        await self._runs.remove(key)
        return Done()

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        stored_run = await self._runs.get(key)
        return stored_run.run.events(after) if stored_run is not None else ()

    async def list_owned(self, prefix: str = "") -> Sequence[Owned]:
        return [
            Owned(run.key, KIND, run.id, {"action": run.action, "state": run.state})
            for run in sorted(await self._runs.all(), key=lambda run: run.key)
            if run.key.startswith(prefix)
        ]

    async def close(self) -> None:
        """Does nothing: each event has its own connection."""

    # --- below: helpers ------------------------------------------------------------------------

    async def _record(self, key: str, spec: RunWanted, stored_run: Kept | None) -> bool:
        """Stores the record of the run, replacing an older one. False when another process wrote it first."""
        secret = self._new_secret()
        run = Run(
            id=run_id(key, secret),
            key=key,
            action=spec.action,
            attempt=spec.attempt,
            story=(Line(at=self._at(), kind="task", text=f"{spec.action} recorded"),),
        )
        try:
            if stored_run is None:
                await self._runs.add(run, secret)
            else:
                await self._runs.change(stored_run, run, secret=secret)
        except (Conflict, Exists, NotFound):
            return False
        return True

    async def _send(self, stored_run: Kept, spec: RunWanted) -> Outcome:
        run = stored_run.run
        wait = self._bucket.take(self._now().timestamp())
        if wait > 0:
            return Waiting("The automation is asked by many.", max(wait, 0.1), "RateLimited")
        address = self._settings.callback_url
        body = event(run, spec, secret=stored_run.secret, callback_url=address)
        await self._sender.post(run.action, body)
        verb = "sent" if run.state == RECORDED else "sent again: nothing was heard of it"
        line = Line(at=self._at(), kind="task", text=f"{run.action} {verb}")
        sent_run = run.told(line, state=SENT, sent_at=self._now().timestamp())
        try:
            await self._runs.change(stored_run, sent_run)
        except (Conflict, NotFound):
            return _BUSY  # its result has arrived, or it was released meanwhile
        return Waiting("The automation has been asked.", LOOK_AGAIN, "RunUnderWay")

    def _is_due(self, run: Run) -> bool:
        return self._now().timestamp() - run.sent_at >= self._settings.resend_seconds

    def _at(self) -> str:
        return self._now().isoformat()


def _check(spec: RunWanted) -> None:
    if not spec.action or not set(spec.action) <= _ACTION:
        raise Refused(f"{spec.action!r} is no name of an event", reason="BadAction")
    if spec.secrets or spec.files:
        raise Refused(
            "an event is kept and shown by others: it carries no secrets and no files",
            reason="NoSecrets",
        )
    try:
        msgspec.json.encode({**spec.order, **spec.values})
    except TypeError as error:
        raise Refused(f"the run cannot be written as JSON: {error}", reason="NotJson") from error


def _is_of(run: Run, spec: RunWanted) -> bool:
    return run.attempt == spec.attempt and run.action == spec.action


def _answer(run: Run) -> Outcome:
    if run.state == SUCCEEDED:
        return Done(dict(run.result.facts) if run.result is not None else {})
    message = run.result.message if run.result is not None else ""
    raise Refused(message or f"{run.action} failed and does not say why", reason=RUN_FAILED)
