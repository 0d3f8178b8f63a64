"""Computes a backup's status after an attempt to take or remove it. Pure; called by its reconciler."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from boatyard.model.generated.boatyard import Backup, BackupState, BackupStatus
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.attempts import AttemptFailure, AttemptFault
from boatyard.resources.orders.progress import QUARANTINE_AFTER_BUGS, compute_retry_delay
from boatyard.resources.orders.redaction import redact_names

_UNAVAILABLE_MESSAGE = "the cluster platform does not answer; it is tried again by itself"
_PROVIDER_MESSAGE = "it could not be taken; the provider can see the cause"


def apply_take_attempt(
    backup: Backup, answer: Outcome | AttemptFailure, *, cluster_gone: bool, now: datetime
) -> BackupStatus:
    """The status after an attempt to take it. `cluster_gone`: the cluster was deleted, so a failure is final."""
    old = backup.status
    match answer:
        case Done(facts=facts):
            return msgspec.structs.replace(
                old,
                state=BackupState.READY,
                taken_at=now,
                bytes=int(facts.get("bytes") or 0),
                sha256=facts.get("sha256", ""),
                version=facts.get("version", ""),
                place=facts.get("place", ""),
                message="",
                cause="",
                tries=0,
                bugs=0,
                next_look=None,
            )
        case Waiting(why=why, look_again=seconds):
            return msgspec.structs.replace(
                old, message=why, cause="", tries=0, next_look=now + timedelta(seconds=seconds)
            )
        case AttemptFailure(fault=AttemptFault.REFUSED):
            return _with_failure(old, _redact_refusal(backup, answer), answer.message)
        case AttemptFailure() if cluster_gone:
            return _with_failure(
                old, "the cluster was deleted before it could be taken", answer.message
            )
    again = _retry_later(backup, answer, now)
    if again.bugs >= QUARANTINE_AFTER_BUGS:
        return _with_failure(again, _PROVIDER_MESSAGE, answer.message)
    return again


def apply_removal_attempt(
    backup: Backup, answer: Outcome | AttemptFailure, *, now: datetime
) -> BackupStatus:
    """The status after an attempt to remove it that did not succeed. Removal is always retried."""
    if isinstance(answer, AttemptFailure):
        return _retry_later(backup, answer, now)
    seconds = answer.look_again if isinstance(answer, Waiting) else 0.0
    return msgspec.structs.replace(
        backup.status, tries=0, cause="", next_look=now + timedelta(seconds=seconds)
    )


def fail_after_crashes(old: BackupStatus) -> BackupStatus:
    """The status of a backup that workers died of: failed, and not retried."""
    return _with_failure(old, _PROVIDER_MESSAGE, "the worker died several times while taking it")


def _retry_later(backup: Backup, failure: AttemptFailure, now: datetime) -> BackupStatus:
    tries = backup.status.tries + 1
    delay = compute_retry_delay(backup.id, "backup", tries)
    return msgspec.structs.replace(
        backup.status,
        message=_UNAVAILABLE_MESSAGE,
        cause=failure.message,
        tries=tries,
        bugs=backup.status.bugs + 1 if failure.fault is AttemptFault.BUG else 0,
        next_look=now + timedelta(seconds=delay),
    )


def _with_failure(old: BackupStatus, message: str, cause: str) -> BackupStatus:
    return msgspec.structs.replace(
        old, state=BackupState.FAILED, message=message, cause=cause, next_look=None
    )


def _redact_refusal(backup: Backup, failure: AttemptFailure) -> str:
    """The platform's message of a refusal, unless it may name a folder of the provider."""
    if backup.spec.folder:
        return _PROVIDER_MESSAGE
    return redact_names(failure.message, {backup.status.hub: "the hub"})
