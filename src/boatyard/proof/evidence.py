"""The evidence for the invariants: the ledger's tables, its event log, and what the twin really holds."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.osac import Hub
from boatyard.twin.calls import TwinCalls

T = TypeVar("T")
_PAGE_SIZE = 10_000
_SEALED_PLACEHOLDER = base64.b64encode(b"***").decode()


@dataclass(frozen=True)
class StoredDocument:
    """A document as it is stored, or as it was archived."""

    kind: str
    id: str
    version: int
    data: bytes

    def decode(self, cls: type[T]) -> T:
        return _decode_document(self.data, cls)


@dataclass(frozen=True)
class LoggedEvent:
    seq: int
    kind: str
    id: str
    event_type: int  # EventType: created, updated, deleted, signaled
    version: int
    reason: str
    message: str
    data: bytes

    def decode(self, cls: type[T]) -> T:
        return _decode_document(self.data, cls)


def _decode_document(data: bytes, cls: type[T]) -> T:
    """Decodes a stored document. Sealed bytes stay sealed: they are no base64, so a placeholder stands for them."""
    if cls is not Hub:
        return msgspec.json.decode(data, type=cls)
    raw = msgspec.json.decode(data)
    if raw.get("spec", {}).get("kubeconfig"):
        raw["spec"]["kubeconfig"] = _SEALED_PLACEHOLDER
    return msgspec.convert(raw, cls)


@dataclass(frozen=True)
class ClaimRow:
    pool: str
    item: str
    owner: str


@dataclass(frozen=True)
class HeldItem:
    """An item that the twin holds or held. `hub` is the twin's name of the hub."""

    hub: str
    kind: str
    name: str
    key: str

    @property
    def order(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True)
class TwinChange:
    """One creation (+1) or removal (-1) of an item in the twin."""

    item: HeldItem
    change: int


@dataclass(frozen=True)
class Effect:
    key: str
    kind: str
    applied: int
    removed: int
    calls: int


@dataclass(frozen=True)
class Evidence:
    """A snapshot of an installation in which no work is in progress."""

    documents: Sequence[StoredDocument]
    archive: Sequence[StoredDocument]
    events: Sequence[LoggedEvent]
    first_seq: int
    last_seq: int
    claims: Sequence[ClaimRow]
    reservations: Sequence[tuple[str, str, int]]  # pool, owner, amount
    pools: Mapping[str, int]
    work: frozenset[tuple[str, str]]
    held_items: Sequence[HeldItem]
    effects: Sequence[Effect]
    history: Sequence[TwinChange]

    def list_documents(self, cls: type[T]) -> Iterator[T]:
        """The documents of one kind that are not deleted."""
        for stored in self.documents:
            if stored.kind == cls.__name__:
                yield stored.decode(cls)

    def list_archived(self, cls: type[T]) -> Iterator[T]:
        for stored in self.archive:
            if stored.kind == cls.__name__:
                yield stored.decode(cls)


async def gather_evidence(ledger: Ledger, twin: TwinCalls) -> Evidence:
    """Collects the evidence. Publishes events first, so that everything committed is in the log."""
    await ledger.events.publish()
    bounds = (await ledger.read("looking", "select last_seq, trimmed from event_log"))[0]
    reservations = await ledger.read("looking", "select pool, owner, amount from reservations")
    pools = await ledger.read("looking", "select pool, used from pools")
    work = await ledger.read("looking", "select kind, id from work where due is not null")
    claims = await ledger.read("looking", "select pool, item, owner from claims order by 1, 2, 3")
    return Evidence(
        documents=await _read_documents(ledger, "documents"),
        archive=await _read_documents(ledger, "archive"),
        events=await _read_events(ledger),
        first_seq=bounds["trimmed"] + 1,
        last_seq=bounds["last_seq"],
        claims=[ClaimRow(row["pool"], row["item"], row["owner"]) for row in claims],
        reservations=[(row["pool"], row["owner"], row["amount"]) for row in reservations],
        pools={row["pool"]: row["used"] for row in pools},
        work=frozenset((row["kind"], row["id"]) for row in work),
        held_items=await list_held_items(twin),
        effects=await list_effects(twin),
        history=await _read_history(twin),
    )


async def list_held_items(twin: TwinCalls, prefix: str = "") -> list[HeldItem]:
    """Every item that the twin holds now under keys with this prefix."""
    hubs = await twin.call("twin.truth", prefix=prefix)
    return [
        HeldItem(hub, kind, name, key)
        for hub, kinds in hubs.items()
        for kind, keys in kinds.items()
        for key, names in keys.items()
        for name in names
    ]


async def list_effects(twin: TwinCalls, prefix: str = "") -> list[Effect]:
    """How often the twin has created and removed each item whose key has this prefix."""
    return [Effect(**row) for row in await twin.call("twin.effects", prefix=prefix)]


async def _read_documents(ledger: Ledger, table: str) -> list[StoredDocument]:
    query = f"select kind, id, version, data from {table}"
    rows = await ledger.read("looking", query)
    return [StoredDocument(row["kind"], row["id"], row["version"], row["data"]) for row in rows]


class _Metadata(msgspec.Struct):
    version: int = 0


class _Versioned(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


async def _read_events(ledger: Ledger) -> list[LoggedEvent]:
    query = (
        "select seq, kind, id, type, reason, message, data from events "
        "where seq is not null order by seq"
    )
    return [
        LoggedEvent(
            seq=row["seq"],
            kind=row["kind"],
            id=row["id"],
            event_type=row["type"],
            version=msgspec.json.decode(row["data"], type=_Versioned).metadata.version
            if row["data"]
            else 0,
            reason=row["reason"],
            message=row["message"],
            data=row["data"] or b"{}",
        )
        for row in await ledger.read("looking", query)
    ]


async def _read_history(twin: TwinCalls) -> list[TwinChange]:
    changes: list[TwinChange] = []
    after = 0
    while True:
        page = await twin.call("twin.history", after=after, limit=_PAGE_SIZE)
        rows = page["happenings"]
        for row in rows:
            item = HeldItem(row["hub"], row["kind"], row["name"], row["key"])
            changes.append(TwinChange(item, row["change"]))
        if not rows or rows[-1]["number"] >= page["newest"]:
            return changes
        after = rows[-1]["number"]
