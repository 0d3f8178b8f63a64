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
_PAGE = 10_000
_SEALED = base64.b64encode(b"***").decode()


@dataclass(frozen=True)
class Stored:
    """A document as it is stored, or as it was archived."""

    kind: str
    id: str
    version: int
    data: bytes

    def read(self, cls: type[T]) -> T:
        return _read(self.data, cls)


@dataclass(frozen=True)
class Event:
    seq: int
    kind: str
    id: str
    sort: int  # EventType: created, updated, deleted, signaled
    version: int
    reason: str
    message: str
    data: bytes

    def read(self, cls: type[T]) -> T:
        return _read(self.data, cls)


def _read(data: bytes, cls: type[T]) -> T:
    """Decodes a stored document. Sealed bytes stay sealed: they are no base64, so a placeholder stands for them."""
    if cls is not Hub:
        return msgspec.json.decode(data, type=cls)
    raw = msgspec.json.decode(data)
    if raw.get("spec", {}).get("kubeconfig"):
        raw["spec"]["kubeconfig"] = _SEALED
    return msgspec.convert(raw, cls)


@dataclass(frozen=True)
class Claimed:
    pool: str
    item: str
    owner: str


@dataclass(frozen=True)
class Held:
    """An item that the twin holds or held. `hub` is the twin's name of the hub."""

    hub: str
    kind: str
    name: str
    key: str

    @property
    def order(self) -> str:
        return self.key.partition("/")[0]


@dataclass(frozen=True)
class Happened:
    """One creation (+1) or removal (-1) of an item in the twin."""

    held: Held
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

    documents: Sequence[Stored]
    archive: Sequence[Stored]
    events: Sequence[Event]
    first_seq: int
    last_seq: int
    claims: Sequence[Claimed]
    reservations: Sequence[tuple[str, str, int]]  # pool, owner, amount
    pools: Mapping[str, int]
    work: frozenset[tuple[str, str]]
    truth: Sequence[Held]
    effects: Sequence[Effect]
    history: Sequence[Happened]

    def all(self, cls: type[T]) -> Iterator[T]:
        """The documents of one kind that are not deleted."""
        for stored in self.documents:
            if stored.kind == cls.__name__:
                yield stored.read(cls)

    def archived(self, cls: type[T]) -> Iterator[T]:
        for stored in self.archive:
            if stored.kind == cls.__name__:
                yield stored.read(cls)


async def gather(ledger: Ledger, twin: TwinCalls) -> Evidence:
    """Collects the evidence. Publishes events first, so that everything committed is in the log."""
    await ledger.events.publish()
    bounds = (await ledger.read("looking", "select last_seq, trimmed from event_log"))[0]
    reservations = await ledger.read("looking", "select pool, owner, amount from reservations")
    pools = await ledger.read("looking", "select pool, used from pools")
    work = await ledger.read("looking", "select kind, id from work where due is not null")
    claims = await ledger.read("looking", "select pool, item, owner from claims order by 1, 2, 3")
    return Evidence(
        documents=await _stored(ledger, "documents"),
        archive=await _stored(ledger, "archive"),
        events=await _events(ledger),
        first_seq=bounds["trimmed"] + 1,
        last_seq=bounds["last_seq"],
        claims=[Claimed(row["pool"], row["item"], row["owner"]) for row in claims],
        reservations=[(row["pool"], row["owner"], row["amount"]) for row in reservations],
        pools={row["pool"]: row["used"] for row in pools},
        work=frozenset((row["kind"], row["id"]) for row in work),
        truth=await truth(twin),
        effects=await effects(twin),
        history=await _history(twin),
    )


async def truth(twin: TwinCalls, prefix: str = "") -> list[Held]:
    """Every item that the twin holds now under keys with this prefix."""
    hubs = await twin.call("twin.truth", prefix=prefix)
    return [
        Held(hub, kind, name, key)
        for hub, kinds in hubs.items()
        for kind, keys in kinds.items()
        for key, names in keys.items()
        for name in names
    ]


async def effects(twin: TwinCalls, prefix: str = "") -> list[Effect]:
    """How often the twin has created and removed each item whose key has this prefix."""
    return [Effect(**row) for row in await twin.call("twin.effects", prefix=prefix)]


async def _stored(ledger: Ledger, table: str) -> list[Stored]:
    query = f"select kind, id, version, data from {table}"
    rows = await ledger.read("looking", query)
    return [Stored(row["kind"], row["id"], row["version"], row["data"]) for row in rows]


class _Metadata(msgspec.Struct):
    version: int = 0


class _Versioned(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


async def _events(ledger: Ledger) -> list[Event]:
    query = (
        "select seq, kind, id, type, reason, message, data from events "
        "where seq is not null order by seq"
    )
    return [
        Event(
            seq=row["seq"],
            kind=row["kind"],
            id=row["id"],
            sort=row["type"],
            version=msgspec.json.decode(row["data"], type=_Versioned).metadata.version
            if row["data"]
            else 0,
            reason=row["reason"],
            message=row["message"],
            data=row["data"] or b"{}",
        )
        for row in await ledger.read("looking", query)
    ]


async def _history(twin: TwinCalls) -> list[Happened]:
    changes: list[Happened] = []
    after = 0
    while True:
        page = await twin.call("twin.history", after=after, limit=_PAGE)
        rows = page["happenings"]
        for row in rows:
            item = Held(row["hub"], row["kind"], row["name"], row["key"])
            changes.append(Happened(item, row["change"]))
        if not rows or rows[-1]["number"] >= page["newest"]:
            return changes
        after = rows[-1]["number"]
