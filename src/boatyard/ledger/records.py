"""Values that the ledger returns: leases, claims, pages, event rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from boatyard.model.errors import Exists

T = TypeVar("T")


class DuplicateDocument(Exists):
    """The id or the name is taken; `field` says which of the two."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class WorkLease:
    """A due object that a worker holds until `until`, proven by the token.

    `attempts` counts this lease and earlier ones that never finished, on top of `Finish.attempts`.
    """

    kind: str
    id: str
    tenant: str
    hub: str
    attempts: int
    token: int
    until: datetime
    waiting_for: str = ""  # what the last pass waited for
    snapshot: str = (
        ""  # PostgreSQL's snapshot when it was taken: says which wakes were committed by then
    )


@dataclass(frozen=True, slots=True)
class Finish:
    """How a pass ends: when the object is due again (None: when a change makes it due), and what it waits for."""

    due: datetime | None
    hub: str = ""
    waiting_for: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request for one identity of a pool: the first candidate that is free."""

    pool: str
    candidates: Sequence[str]
    owner: str


@dataclass(frozen=True, slots=True)
class Claim:
    """An identity and its owner."""

    pool: str
    item: str
    owner: str
    tenant: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DocumentPage(Generic[T]):
    """A page of a list; `total` counts the whole list, and is None unless it was requested."""

    items: tuple[T, ...]
    total: int | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event as published. `doc` is the document's JSON without its secrets; None for a signal."""

    seq: int
    kind: str
    id: str
    tenant: str
    type: int
    at: datetime
    reason: str
    message: str
    doc: bytes | None
