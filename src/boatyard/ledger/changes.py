"""What a caller may change in one transaction. Lists of these are given to `Ledger.commit`."""

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


class Document(Protocol):
    """A frozen msgspec struct with an id and metadata; its kind is the name of its class."""

    @property
    def id(self) -> str: ...
    @property
    def metadata(self) -> Any:  # DocumentMetadata; structs of several modules are given
        ...


@dataclass(frozen=True, slots=True)
class Note:
    """Words of what happened, kept on the event: a CamelCase reason and one sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Insert:
    """A new document, stored with version 0. Exists when its id or its name is taken."""

    doc: Document
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """The document anew, stored with one version more than it was read at.

    Conflict when the stored version is another; NotFound when it is gone.
    """

    doc: Document
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """The document leaves for the archive, guarded by version like Replace."""

    doc: Document
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """An event about something, and nothing else."""

    kind: str
    id: str
    tenant: str
    note: Note


@dataclass(frozen=True, slots=True)
class Due:
    """Something is to be looked at by `at` at the latest. A poke during a lease is kept for after it."""

    kind: str
    id: str
    at: datetime
    tenant: str = ""
    hub: str = ""


@dataclass(frozen=True, slots=True)
class Wake:
    """Everything that finished `waiting_for` this is to be looked at by `at`."""

    waiting_for: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Reserve:
    """The owner's amount in the pool becomes `amount`. Exhausted when it grows past the capacity."""

    pool: str
    owner: str
    amount: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Unreserve:
    """The owner's amount is given back, in one pool or in all."""

    owner: str
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Unclaim:
    """Frees what is claimed by this owner and by owners below it (`prefix/…`)."""

    owner_prefix: str


@dataclass(frozen=True, slots=True)
class Require:
    """The document exists, is not being deleted, and stays so until this is committed; else Precondition.

    With a version it must also be the one that was read: Conflict when it has changed since.
    """

    kind: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Unreferenced:
    """No document refers to this one, and none begins to until this is committed; else Precondition.

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
    | Wake
    | Reserve
    | Unreserve
    | Unclaim
    | Require
    | Unreferenced
)
