"""Computes a backup's status after an attempt to take or remove it. Pure; called by its reconciler."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from boatyard.model.generated.boatyard import Backup, BackupState, BackupStatus
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.resources.orders.attempts import Failed, Fault
from boatyard.resources.orders.progress import QUARANTINE_AFTER, back_off
from boatyard.resources.orders.words import hidden

_UNANSWERED = "the cluster platform does not answer; it is tried again by itself"
_PROVIDERS = "it could not be taken; the provider can see the cause"


def taken(
    backup: Backup, answer: Outcome | Failed, *, cluster_gone: bool, now: datetime
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
        case Failed(fault=Fault.REFUSED):
            return _failed(old, _words(backup, answer), answer.message)
        case Failed() if cluster_gone:
            return _failed(old, "the cluster was deleted before it could be taken", answer.message)
    again = _later(backup, answer, now)
    if again.bugs >= QUARANTINE_AFTER:
        return _failed(again, _PROVIDERS, answer.message)
    return again


def leaving(backup: Backup, answer: Outcome | Failed, *, now: datetime) -> BackupStatus:
    """The status after an attempt to remove it that did not succeed. Removal is always retried."""
    if isinstance(answer, Failed):
        return _later(backup, answer, now)
    seconds = answer.look_again if isinstance(answer, Waiting) else 0.0
    return msgspec.structs.replace(
        backup.status, tries=0, cause="", next_look=now + timedelta(seconds=seconds)
    )


def died(old: BackupStatus) -> BackupStatus:
    """The status of a backup that workers died of: failed, and not retried."""
    return _failed(old, _PROVIDERS, "the worker died several times while taking it")


def _later(backup: Backup, failure: Failed, now: datetime) -> BackupStatus:
    tries = backup.status.tries + 1
    delay = back_off(backup.id, "backup", tries)
    return msgspec.structs.replace(
        backup.status,
        message=_UNANSWERED,
        cause=failure.message,
        tries=tries,
        bugs=backup.status.bugs + 1 if failure.fault is Fault.BUG else 0,
        next_look=now + timedelta(seconds=delay),
    )


def _failed(old: BackupStatus, message: str, cause: str) -> BackupStatus:
    return msgspec.structs.replace(
        old, state=BackupState.FAILED, message=message, cause=cause, next_look=None
    )


def _words(backup: Backup, failure: Failed) -> str:
    """The platform's message of a refusal, unless it may name a folder of the provider."""
    if backup.spec.folder:
        return _PROVIDERS
    return hidden(failure.message, {backup.status.hub: "the hub"})
