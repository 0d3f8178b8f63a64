"""Encodes a list of changes as the argument of the SQL function `boatyard_commit`. Called by the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from boatyard.ledger.changes import (
    Archive,
    Change,
    Due,
    EventNote,
    Insert,
    Replace,
    Require,
    Reserve,
    Signal,
    Unclaim,
    Unreferenced,
    Unreserve,
    WakeWaiting,
)
from boatyard.ledger.codec import Codec
from boatyard.ledger.filters.fields import REFERENCE_COLUMNS
from boatyard.ledger.records import Finish, WorkLease

CREATED, UPDATED, DELETED, SIGNALED = 1, 2, 3, 4  # EventType

Entry = dict[str, Any]

# The name of a change in SQL, the type of its event, and the version it stores.
_OPERATIONS: Mapping[type[Change], tuple[str, int, Callable[[int], int]]] = {
    Insert: ("insert", CREATED, lambda _: 0),
    Replace: ("replace", UPDATED, lambda version: version + 1),
    Archive: ("archive", DELETED, lambda version: version),
}


def encode_changes(
    changes: Sequence[Change],
    codec: Codec,
    *,
    lease: WorkLease | None,
    finish: Finish | None,
    now: datetime,
) -> bytes:
    """The changes as JSON, grouped by class; sorted where locks must be taken in the same order everywhere."""
    parts: dict[str, list[Entry]] = {}
    for change in changes:
        part, entry = _encode_change(change, codec)
        parts.setdefault(part, []).append(entry)
    message: dict[str, Any] = {"now": now, **parts}
    for part, key in _SORT_KEYS.items():
        if part in parts:
            parts[part].sort(key=key)
    if len(parts.get("documents", ())) > 1:
        message["many"] = True
    if lease is not None:
        message["lease"] = _encode_lease(lease)
    if finish is not None:
        message["finish"] = _encode_finish(finish)
    work_keys = [{"kind": due["kind"], "id": due["id"]} for due in parts.get("due", ())]
    if lease is not None:
        work_keys.append({"kind": lease.kind, "id": lease.id})
    if len(work_keys) > 1 or "wakes" in parts:
        message["lock_work"] = work_keys
    return msgspec.json.encode(message)


_SORT_KEYS = {
    "checks": lambda entry: (entry["op"], entry["kind"], entry["id"]),
    "pools": lambda entry: (entry["pool"], entry["owner"]),
    "wakes": lambda entry: entry["name"],
    "due": lambda entry: (entry["kind"], entry["id"]),
}


def label_changes(changes: Sequence[Change]) -> str:
    """Names the changes without ids, so that the label is the same in every run."""
    words = []
    for change in changes:
        match change:
            case Insert(doc=doc) | Replace(doc=doc) | Archive(doc=doc):
                words.append(f"{type(change).__name__} {type(doc).__name__}")
            case Due(kind=kind) | Signal(kind=kind):
                words.append(f"{type(change).__name__} {kind}")
            case _:
                words.append(type(change).__name__)
    return ", ".join(words) or "Finish"


def _encode_change(change: Change, codec: Codec) -> tuple[str, Entry]:
    match change:
        case Insert() | Replace() | Archive():
            return "documents", _encode_document(change, codec)
        case Signal(kind=kind, id=id, tenant=tenant, note=note):
            entry = {"op": "signal", "kind": kind, "id": id, "tenant": tenant, "type": SIGNALED}
            return "documents", entry | _encode_note(note)
        case Due(kind=kind, id=id, at=at, tenant=tenant, hub=hub):
            return "due", {"kind": kind, "id": id, "at": at, "tenant": tenant, "hub": hub}
        case WakeWaiting(waiting_for=name, at=at):
            return "wakes", {"name": name, "at": at}
        case Reserve(pool=pool, owner=owner, amount=amount, capacity=capacity):
            if amount < 0:
                raise ValueError(f"cannot reserve {amount} of {pool}")
            return "pools", {"pool": pool, "owner": owner, "amount": amount, "capacity": capacity}
        case Unreserve(owner=owner, pool=pool):
            return "unreserve", {"owner": owner, "pool": pool}
        case Unclaim(owner_prefix=prefix):
            return "claims", {"prefix": prefix}
        case Require(kind=kind, id=id, version=version):
            entry = {"op": "require", "kind": kind, "id": id}
            return "checks", entry if version is None else entry | {"version": version}
        case Unreferenced(kind=kind, id=id, referrers=referrers):
            entry = {"op": "unreferenced", "kind": kind, "id": id}
            return "checks", entry | {"referrers": [_encode_referrer(*by) for by in referrers]}


def _encode_document(change: Insert | Replace | Archive, codec: Codec) -> Entry:
    doc, metadata = change.doc, change.doc.metadata
    version: int = metadata.version
    op, type_, stored_version = _OPERATIONS[type(change)]
    data, masked_data = codec.encode(doc, stored_version(version))
    entry: Entry = {
        "op": op,
        "kind": type(doc).__name__,
        "id": doc.id,
        "tenant": metadata.tenant,
        "project": metadata.project,
        "name": metadata.name,
        "version": version,
        "created": metadata.creation_timestamp,
        "deleted": metadata.deletion_timestamp,
        "type": type_,
        "data": data,
    }
    if masked_data is not None:
        entry["shown"] = masked_data
    return entry | _encode_note(change.note)


def _encode_note(note: EventNote | None) -> Entry:
    return {} if note is None else {"reason": note.reason, "message": note.message}


def _encode_referrer(kind: str, path: str) -> Entry:
    return {"kind": kind, "path": path, "column": REFERENCE_COLUMNS.get(path, "")}


def _encode_lease(lease: WorkLease) -> Entry:
    return {"kind": lease.kind, "id": lease.id, "token": lease.token, "seen": lease.snapshot}


def encode_lease(lease: WorkLease | None) -> bytes | None:
    return None if lease is None else msgspec.json.encode(_encode_lease(lease))


def _encode_finish(finish: Finish) -> Entry:
    return {
        "due": finish.due,
        "hub": finish.hub,
        "waiting_for": finish.waiting_for,
        "attempts": finish.attempts,
    }
