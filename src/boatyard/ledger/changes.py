"""The changes that `Ledger.commit` takes: a list of these is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


class DocumentMetadata(Protocol):
    """What the ledger reads of a document's metadata."""

    @property
    def creation_timestamp(self) -> datetime | None: ...
    @property
    def deletion_timestamp(self) -> datetime | None: ...
    @property
    def tenant(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def version(self) -> int: ...


class LedgerDocument(Protocol):
    """A frozen msgspec struct with an id and metadata; its kind is the name of its class."""

    @property
    def id(self) -> str: ...
    @property
    def metadata(self) -> Any:  # DocumentMetadata; the structs come from several modules
        ...


@dataclass(frozen=True, slots=True)
class EventNote:
    """What the event of a change says: a CamelCase reason and one sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Stores a new document with version 0. Exists when its id or its name is taken."""

    doc: LedgerDocument
    note: EventNote | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces the document and increments its version.

    Conflict when the stored version is not the one that was read; NotFound when the document is gone.
    """

    doc: LedgerDocument
    note: EventNote | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """Moves the document to the archive, guarded by version like Replace."""

    doc: LedgerDocument
    note: EventNote | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """Records an event about an object, and changes nothing else."""

    kind: str
    id: str
    tenant: str
    note: EventNote


@dataclass(frozen=True, slots=True)
class Due:
    """Makes an object due for its reconciler at `at` at the latest; one that is leased is due again after the lease."""

    kind: str
    id: str
    at: datetime
    tenant: str = ""
    hub: str = ""


@dataclass(frozen=True, slots=True)
class WakeWaiting:
    """Makes everything whose last pass ended `waiting_for` this due at `at`."""

    waiting_for: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Reserve:
    """Sets the owner's amount in the pool. Exhausted when the pool would grow past the capacity."""

    pool: str
    owner: str
    amount: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Unreserve:
    """Gives the owner's amount back, in one pool or in all."""

    owner: str
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Unclaim:
    """Frees what is claimed by this owner and by owners below it (`prefix/…`)."""

    owner_prefix: str


@dataclass(frozen=True, slots=True)
class Require:
    """Requires that a document exists and is not being deleted, until the commit; else Precondition.

    With a version, Conflict when the document has another version by now.
    """

    kind: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Unreferenced:
    """Requires that no document refers to this one, until the commit; else Precondition.

    A referrer is a kind and a JSON path to the id, such as ("Cluster", "$.spec.template.id").
    """

    kind: str
    id: str
    referrers: Sequence[tuple[str, str]]


Change = (
    Insert
    | Replace
    | Archive
    | Signal
    | Due
    | WakeWaiting
    | Reserve
    | Unreserve
    | Unclaim
    | Require
    | Unreferenced
)
