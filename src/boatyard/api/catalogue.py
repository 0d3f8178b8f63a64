"""A short-lived cache of the documents that orders refer to. Called by the generic create and update.

A cached document may be a second old: a commit requires that the documents it refers to still have the
version that was read, and is retried with fresh ones when they do not. Absence is never cached.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from boatyard.api.kinds import CATALOGUE

SECONDS = 1.0
MOST = 4096
FEW = 1000  # no kind of the catalogue has more documents than a rule may ask for at once


class Page(Protocol):
    @property
    def items(self) -> Sequence[Any]: ...


class Store(Protocol):
    """What the catalogue needs of the ledger."""

    async def get(self, cls: type[Any], id: str) -> Any | None: ...
    async def find(
        self, cls: type[Any], *, name: str, tenants: Sequence[str] | None
    ) -> list[Any]: ...
    async def list(self, cls: type[Any], *, limit: int, with_total: bool) -> Page: ...


class Catalogue:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, dict[object, tuple[float, Any]]] = {
            cls.__name__: {} for cls in CATALOGUE
        }

    async def by_id(self, cls: type[Any], id: str, tenants: Sequence[str]) -> Any | None:
        """The document with that id, whoever owns it.

        A document of another tenant is always read from the ledger: a quick answer from the cache would
        reveal that the id exists.
        """
        entries, doc = self._look(cls, id)
        if doc is None or doc.metadata.tenant not in tenants:
            doc = await self._store.get(cls, id)
            _keep(entries, id, doc)
        return doc

    async def by_name(self, cls: type[Any], name: str, tenants: Sequence[str]) -> Sequence[Any]:
        key = (name, tuple(tenants))
        entries, cached_docs = self._look(cls, key)
        docs: Sequence[Any] = cached_docs or await self._store.find(cls, name=name, tenants=tenants)
        if not cached_docs:
            _keep(entries, key, docs)
        return docs

    async def all(self, cls: type[Any]) -> Sequence[Any]:
        entries, cached_docs = self._look(cls, None)
        docs: Sequence[Any] = (
            cached_docs or (await self._store.list(cls, limit=FEW, with_total=False)).items
        )
        if not cached_docs:
            _keep(entries, None, docs)
        return docs

    def forget(self, kind: str) -> None:
        if kind in self._kept:
            self._kept[kind].clear()

    def clear(self) -> None:
        for entries in self._kept.values():
            entries.clear()

    def _look(self, cls: type[Any], key: object) -> tuple[dict[object, tuple[float, Any]], Any]:
        entries = self._kept[cls.__name__]
        expires_at, value = entries.get(key, (0.0, None))
        return entries, value if time.monotonic() < expires_at else None


def _keep(entries: dict[object, tuple[float, Any]], key: object, value: Any) -> None:
    if not value:
        return
    if len(entries) >= MOST:
        entries.clear()
    entries[key] = (time.monotonic() + SECONDS, value)
