"""A short-lived cache of the documents that orders refer to. Called by the generic create and update.

A cached document may be a second old: a commit requires that the documents it refers to still have the
version that was read, and is retried with fresh ones when they do not. Absence is never cached.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol, TypeVar

from boatyard.api.kinds import CATALOGUE_STRUCTS
from boatyard.model.generated.osac import Resource

CACHE_SECONDS = 1.0
MOST_CACHED_ENTRIES = 4096
MOST_DOCUMENTS = 1000  # no kind of the catalogue has more documents than a rule may ask for at once


# By key: the time at which the documents expire, and the documents.
Entries = dict[object, tuple[float, Sequence[Resource]]]

R = TypeVar("R", bound=Resource)
R_co = TypeVar("R_co", bound=Resource, covariant=True)


class CataloguePage(Protocol[R_co]):
    @property
    def items(self) -> Sequence[R_co]: ...


class CatalogueStore(Protocol):
    """What the catalogue needs of the ledger."""

    async def get(self, cls: type[R], id: str) -> R | None: ...
    async def find(self, cls: type[R], *, name: str, tenants: Sequence[str] | None) -> list[R]: ...
    async def list(self, cls: type[R], *, limit: int, with_total: bool) -> CataloguePage[R]: ...


class CatalogueCache:
    def __init__(self, store: CatalogueStore) -> None:
        self._store = store
        self._entries_by_kind: dict[str, Entries] = {name: {} for name in CATALOGUE_STRUCTS}

    async def get_by_id(
        self, cls: type[Resource], id: str, tenants: Sequence[str]
    ) -> Resource | None:
        """The document with that id, whoever owns it.

        A document of another tenant is always read from the ledger: a quick answer from the cache would
        reveal that the id exists.
        """
        entries, cached_docs = self._look_up(cls, id)
        if cached_docs and cached_docs[0].metadata.tenant in tenants:
            return cached_docs[0]
        doc = await self._store.get(cls, id)
        if doc is not None:
            _cache_value(entries, id, (doc,))
        return doc

    async def find_by_name(
        self, cls: type[Resource], name: str, tenants: Sequence[str]
    ) -> Sequence[Resource]:
        key = (name, tuple(tenants))
        entries, cached_docs = self._look_up(cls, key)
        docs = cached_docs or await self._store.find(cls, name=name, tenants=tenants)
        if not cached_docs:
            _cache_value(entries, key, docs)
        return docs

    async def list_all(self, cls: type[Resource]) -> Sequence[Resource]:
        entries, cached_docs = self._look_up(cls, None)
        docs = (
            cached_docs
            or (await self._store.list(cls, limit=MOST_DOCUMENTS, with_total=False)).items
        )
        if not cached_docs:
            _cache_value(entries, None, docs)
        return docs

    def invalidate_kind(self, kind: str) -> None:
        if kind in self._entries_by_kind:
            self._entries_by_kind[kind].clear()

    def clear(self) -> None:
        for entries in self._entries_by_kind.values():
            entries.clear()

    def _look_up(self, cls: type[Resource], key: object) -> tuple[Entries, Sequence[Resource]]:
        entries = self._entries_by_kind[cls.__name__]
        expires_at, docs = entries.get(key, (0.0, ()))
        return entries, docs if time.monotonic() < expires_at else ()


def _cache_value(entries: Entries, key: object, docs: Sequence[Resource]) -> None:
    if not docs:
        return
    if len(entries) >= MOST_CACHED_ENTRIES:
        entries.clear()
    entries[key] = (time.monotonic() + CACHE_SECONDS, docs)
