"""Records of runs that an external automation carries out. Used by the eda driver and the operator's callback server.

One Secret per key of a run, in the system namespace: the signing secret is its data, everything else an annotation.
Every change is guarded by the version that was read, so that driver and callback server, in any replica, never
overwrite each other. A run that has a result keeps it.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode, b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.automation.port import RunEvent
from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import SECRETS
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Unavailable

RECORDED, SENT, SUCCEEDED, FAILED = "recorded", "sent", "succeeded", "failed"
RESULTS = (SUCCEEDED, FAILED)
SEND_AGAIN = (
    "again"  # no result: something the playbook needs did not answer; the event is sent again
)

RUN_LABEL = "boatyard.io/automation-run"  # label: this Secret is a run; annotation: its record
LOG_LINES_LIMIT = 20  # log lines that are stored; the line about the end always is
_PREFIX = "run-"
_NAME_LETTERS = 26
_NONCE_LETTERS = 16
_SECRET_FIELD = "secret"


class ExternalRunResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a run, as its playbook reports it."""

    result: str  # "succeeded", "failed" or "again"
    message: str = ""  # when it failed: the message of the failed task
    facts: Mapping[str, str] = {}


class RunLogLine(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    kind: str
    text: str = ""


class ExternalRun(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one run."""

    id: str  # of this attempt: part of the event and of the callback URL
    key: str
    action: str
    attempt: int
    state: str = RECORDED
    sent_at: float = 0.0  # when the event was last sent; seconds since 1970
    result: ExternalRunResult | None = None
    story: tuple[RunLogLine, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.state in RESULTS

    def with_log_line(
        self, line: RunLogLine, *, always: bool = False, **changes: Any
    ) -> ExternalRun:
        """The run with some fields changed and one more line in its log, unless the log is full."""
        full = len(self.story) >= LOG_LINES_LIMIT and not always
        story = self.story if full else (*self.story, line)
        return msgspec.structs.replace(self, story=story, **changes)

    def with_result(self, result: ExternalRunResult, at: str) -> ExternalRun:
        """The run with its result; when the result is AGAIN, as a run that has not been sent yet."""
        if result.result == SEND_AGAIN:
            return self.with_log_line(
                RunLogLine(at=at, kind="failed", text=result.message), state=RECORDED
            )
        line = RunLogLine(at=at, kind="end", text=result.message or result.result)
        return self.with_log_line(line, always=True, state=result.result, result=result)

    def events(self, after: int) -> list[RunEvent]:
        numbered_lines = enumerate(self.story, start=1)
        start = f"{self.attempt} {self.story[0].at}" if self.story else ""
        return [
            RunEvent(
                number=number,
                at=line.at,
                kind=line.kind,
                text=line.text,
                attempt=self.attempt,
                start=start,
            )
            for number, line in numbered_lines
            if number > after
        ]


class StoredExternalRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was read, with the version that is needed to change it."""

    run: ExternalRun
    secret: str
    version: str

    def __repr__(self) -> str:
        return f"Kept({self.run!r}, version={self.version!r})"


def secret_name(key: str) -> str:
    """The name of the Secret that stores the run of this key."""
    digest = hashlib.sha256(key.encode()).digest()
    return _PREFIX + b32encode(digest).decode().lower()[:_NAME_LETTERS]


def make_run_id(key: str, nonce: str) -> str:
    """The id of one attempt. The nonce is new each time, so that a late result of an earlier attempt is ignored."""
    digest = hashlib.sha256(nonce.encode()).digest()
    return f"{secret_name(key)}-{b32encode(digest).decode().lower()[:_NONCE_LETTERS]}"


def is_run_id(text: str) -> bool:
    name, _, nonce = text.removeprefix(_PREFIX).partition("-")
    letters = f"{name}{nonce}"
    has_right_length = len(name) == _NAME_LETTERS and len(nonce) == _NONCE_LETTERS
    return (
        text.startswith(_PREFIX)
        and has_right_length
        and set(letters) <= set("abcdefghijklmnopqrstuvwxyz234567")
    )


class ExternalRunStore:
    """The runs of one hub. The caller closes `client`."""

    def __init__(self, client: KubeClient, namespace: str, hub_id: str = "") -> None:
        self._client = client
        self._namespace = namespace
        self._hub = hub_id

    async def get(self, key: str) -> StoredExternalRun | None:
        stored_run = await self._get(secret_name(key))
        if stored_run is not None and stored_run.run.key != key:
            raise Unavailable(f"the record of run {key} is another's", reason="HeldByAnother")
        return stored_run

    async def find(self, id: str) -> StoredExternalRun | None:
        """The run of this id; None when another attempt of its key has replaced it."""
        stored_run = await self._get(id.rpartition("-")[0])
        return stored_run if stored_run is not None and stored_run.run.id == id else None

    async def add(self, run: ExternalRun, secret: str) -> None:
        """Stores a new run. Exists when there is one of this key already."""
        body = self._to_secret(run, secret)
        await self._client.create(SECRETS, body, self._namespace)

    async def change(
        self, stored_run: StoredExternalRun, run: ExternalRun, *, secret: str = ""
    ) -> None:
        """Replaces `stored_run`. Conflict when it has changed since it was read, NotFound when it is gone."""
        body = self._to_secret(run, secret or stored_run.secret)
        metadata = {**body["metadata"], "resourceVersion": stored_run.version}
        await self._client.merge_patch(
            SECRETS, metadata["name"], {**body, "metadata": metadata}, self._namespace
        )

    async def remove(self, key: str) -> None:
        await self._client.delete(SECRETS, secret_name(key), self._namespace)

    async def list_all(self) -> list[ExternalRun]:
        """Every run of this hub."""
        labels = f"{RUN_LABEL}=true,{hub_names.HUB}={hub_names.label_value(self._hub)}"
        listed = await self._client.list(SECRETS, self._namespace, labels=labels)
        return [_parse_secret(item).run for item in listed.items]

    async def _get(self, name: str) -> StoredExternalRun | None:
        try:
            secret_object = await self._client.get(SECRETS, name, self._namespace)
        except NotFound:
            return None
        return _parse_secret(secret_object)

    def _to_secret(self, run: ExternalRun, secret: str) -> dict[str, Any]:
        return {
            "metadata": {
                "name": secret_name(run.key),
                "labels": {
                    RUN_LABEL: "true",
                    hub_names.MANAGED_BY: hub_names.BOATYARD,
                    hub_names.KEY: hub_names.label_value(run.key),
                    **({hub_names.HUB: hub_names.label_value(self._hub)} if self._hub else {}),
                },
                "annotations": {
                    hub_names.KEY: run.key,
                    RUN_LABEL: msgspec.json.encode(run).decode(),
                },
            },
            "data": {_SECRET_FIELD: b64encode(secret.encode()).decode()},
        }


def _parse_secret(item: Mapping[str, Any]) -> StoredExternalRun:
    metadata = item["metadata"]
    try:
        run = msgspec.json.decode(
            (metadata.get("annotations") or {}).get(RUN_LABEL, ""), type=ExternalRun
        )
        secret = b64decode((item.get("data") or {}).get(_SECRET_FIELD, "")).decode()
    except (msgspec.DecodeError, ValueError):
        # Not chained: the decoder's error may quote the content.
        raise Unavailable(
            f"Secret {metadata['name']} holds no run that can be read; delete it, and the run begins anew",
            reason="Unreadable",
        ) from None
    return StoredExternalRun(run=run, secret=secret, version=metadata["resourceVersion"])
