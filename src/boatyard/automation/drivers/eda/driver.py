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

from boatyard.automation.drivers.eda.settings import read_settings
from boatyard.automation.drivers.eda.token_bucket import TokenBucket
from boatyard.automation.drivers.eda.webhook import WebhookSender, build_event
from boatyard.automation.external_runs import (
    RECORDED,
    SENT,
    SUCCEEDED,
    ExternalRun,
    ExternalRunStore,
    RunLogLine,
    StoredExternalRun,
    make_run_id,
)
from boatyard.automation.port import RUN_FAILED, RunEvent, RunSpec
from boatyard.kube.client import KubeClient
from boatyard.model.errors import Conflict, Exists, NotFound, Refused
from boatyard.model.outcome import Done, Outcome, OwnedObject, Waiting

LOOK_AGAIN_SECONDS = 2.0
KIND = "run"
_ACTION_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_BEING_RECORDED = Waiting("The run is being recorded.", 0.5, "Busy")


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
        self._runs = ExternalRunStore(client, namespace, hub_id)
        self._sender = WebhookSender(client, namespace, self._settings)
        self._bucket = TokenBucket(self._settings.per_second)
        self._now = now
        self._new_secret = new_secret

    async def check_ready(self) -> None:
        await self._sender.check_connection()

    async def get_isolation_warning(self) -> str:
        return ""  # the external automation isolates its runs

    async def ensure_run(self, key: str, spec: RunSpec) -> Outcome:
        _check_spec(spec)
        stored_run = await self._runs.get(key)
        if stored_run is None or not _is_same_attempt(stored_run.run, spec):
            if not await self._record(key, spec, stored_run):
                return _BEING_RECORDED
            stored_run = await self._runs.get(key)
            if stored_run is None:
                return _BEING_RECORDED
        if stored_run.run.is_over:
            return _to_outcome(stored_run.run)
        if stored_run.run.state == SENT and not self._is_due(stored_run.run):
            return Waiting("The automation is at work.", LOOK_AGAIN_SECONDS, "RunUnderWay")
        return await self._send(stored_run, spec)

    async def release_run(self, key: str) -> Outcome:
        await self._runs.remove(key)
        return Done()

    async def events(self, key: str, after: int = 0) -> Sequence[RunEvent]:
        stored_run = await self._runs.get(key)
        return stored_run.run.events(after) if stored_run is not None else ()

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        return [
            OwnedObject(run.key, KIND, run.id, {"action": run.action, "state": run.state})
            for run in sorted(await self._runs.list_all(), key=lambda run: run.key)
            if run.key.startswith(prefix)
        ]

    async def close(self) -> None:
        """Does nothing: each event has its own connection."""

    # --- below: helpers ------------------------------------------------------------------------

    async def _record(self, key: str, spec: RunSpec, stored_run: StoredExternalRun | None) -> bool:
        """Stores the record of the run, replacing an older one. False when another process wrote it first."""
        secret = self._new_secret()
        run = ExternalRun(
            id=make_run_id(key, secret),
            key=key,
            action=spec.action,
            attempt=spec.attempt,
            story=(RunLogLine(at=self._timestamp(), kind="task", text=f"{spec.action} recorded"),),
        )
        try:
            if stored_run is None:
                await self._runs.add(run, secret)
            else:
                await self._runs.change(stored_run, run, secret=secret)
        except (Conflict, Exists, NotFound):
            return False
        return True

    async def _send(self, stored_run: StoredExternalRun, spec: RunSpec) -> Outcome:
        run = stored_run.run
        wait = self._bucket.take(self._now().timestamp())
        if wait > 0:
            return Waiting("The automation is asked by many.", max(wait, 0.1), "RateLimited")
        address = self._settings.callback_url
        body = build_event(run, spec, secret=stored_run.secret, callback_url=address)
        await self._sender.post_event(run.action, body)
        verb = "sent" if run.state == RECORDED else "sent again: nothing was heard of it"
        line = RunLogLine(at=self._timestamp(), kind="task", text=f"{run.action} {verb}")
        sent_run = run.with_log_line(line, state=SENT, sent_at=self._now().timestamp())
        try:
            await self._runs.change(stored_run, sent_run)
        except (Conflict, NotFound):
            return _BEING_RECORDED  # its result has arrived, or it was released meanwhile
        return Waiting("The automation has been asked.", LOOK_AGAIN_SECONDS, "RunUnderWay")

    def _is_due(self, run: ExternalRun) -> bool:
        return self._now().timestamp() - run.sent_at >= self._settings.resend_seconds

    def _timestamp(self) -> str:
        return self._now().isoformat()


def _check_spec(spec: RunSpec) -> None:
    if not spec.action or not set(spec.action) <= _ACTION_CHARACTERS:
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


def _is_same_attempt(run: ExternalRun, spec: RunSpec) -> bool:
    return run.attempt == spec.attempt and run.action == spec.action


def _to_outcome(run: ExternalRun) -> Outcome:
    if run.state == SUCCEEDED:
        return Done(dict(run.result.facts) if run.result is not None else {})
    message = run.result.message if run.result is not None else ""
    raise Refused(message or f"{run.action} failed and does not say why", reason=RUN_FAILED)
