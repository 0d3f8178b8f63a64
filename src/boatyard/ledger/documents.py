"""Reads documents: by id, by name, in pages, and from the archive. A part of the ledger."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, TypeVar

import asyncpg

from boatyard.ledger.codec import Codec
from boatyard.ledger.connections import Connections
from boatyard.ledger.filters.conditions import OrderBy, Parameters, Predicate
from boatyard.ledger.records import DocumentPage

T = TypeVar("T")


class Documents:
    """One table for all kinds; the kind is the name of the struct's class."""

    def __init__(self, connections: Connections, codec: Codec) -> None:
        self._connections = connections
        self._codec = codec

    async def get(self, cls: type[T], id: str, *, sealed: bool = False) -> T | None:
        """The document, or None. Its secrets are in clear, or `***` when `sealed`."""
        query = "select data from documents where kind = $1 and id = $2"
        rows = await self._read(cls, query, cls.__name__, id)
        return self._codec.decode(cls, rows[0][0], sealed=sealed) if rows else None

    async def get_many(
        self, cls: type[T], ids: Sequence[str], *, sealed: bool = False
    ) -> dict[str, T]:
        """The documents with these ids, by id; missing ones are left out."""
        query = "select id, data from documents where kind = $1 and id = any ($2::text[])"
        rows = await self._read(cls, query, cls.__name__, builtins.list(ids))
        return {row[0]: self._codec.decode(cls, row[1], sealed=sealed) for row in rows}

    async def find(
        self,
        cls: type[T],
        *,
        name: str,
        tenants: Sequence[str] | None,
        project: str | None = None,
        sealed: bool = False,
    ) -> builtins.list[T]:
        """All documents of that name, in these tenants (None: in all) and this project (None: in any)."""
        query = (
            "select data from documents where kind = $1 and name = $2"
            " and ($3::text[] is null or tenant = any ($3::text[]))"
            " and ($4::text is null or project = $4) order by id"
        )
        rows = await self._read(cls, query, cls.__name__, name, _to_list(tenants), project)
        return [self._codec.decode(cls, row[0], sealed=sealed) for row in rows]

    async def list(
        self,
        cls: type[T],
        *,
        where: Predicate | None = None,
        tenants: Sequence[str] | None = None,
        order: Sequence[OrderBy] = (),
        offset: int = 0,
        limit: int = 100,
        with_total: bool = True,
        sealed: bool = False,
    ) -> DocumentPage[T]:
        """One page, ordered by `order` and then by id. A full page with a total is two round trips."""
        parameters = Parameters()
        condition = _build_condition(cls, where, tenants, parameters)
        filter_values = tuple(parameters.values)
        items: tuple[T, ...] = ()
        if limit > 0:
            keys = [key.sql(parameters) for key in order]
            query = (
                f"select data from documents where {condition} order by {', '.join([*keys, 'id'])}"
                f" limit {parameters.add(limit, 'bigint')} offset {parameters.add(offset, 'bigint')}"
            )
            rows = await self._read(cls, query, *parameters.values)
            items = tuple(self._codec.decode(cls, row[0], sealed=sealed) for row in rows)
        if not with_total:
            return DocumentPage(items, None)
        if len(items) < limit and (items or offset == 0):
            return DocumentPage(items, offset + len(items))  # the last page: no need to count
        count = f"select count(*) from documents where {condition}"
        return DocumentPage(items, (await self._read(cls, count, *filter_values))[0][0])

    async def get_archived(self, cls: type[T], id: str, *, sealed: bool = False) -> T | None:
        """The document as it was archived; None when there is none."""
        query = (
            "select data from archive where kind = $1 and id = $2 order by archived desc limit 1"
        )
        rows = await self._read(cls, query, cls.__name__, id)
        return self._codec.decode(cls, rows[0][0], sealed=sealed) if rows else None

    async def find_archived(
        self, cls: type[T], name: str, tenants: Sequence[str] | None, *, sealed: bool = False
    ) -> T | None:
        """The document of that name that was archived last; None when there is none."""
        query = (
            "select data from archive where kind = $1 and name = $2"
            " and ($3::text[] is null or tenant = any ($3::text[]))"
            " order by archived desc, id desc limit 1"
        )
        rows = await self._read(cls, query, cls.__name__, name, _to_list(tenants))
        return self._codec.decode(cls, rows[0][0], sealed=sealed) if rows else None

    async def _read(self, cls: type[Any], query: str, *args: Any) -> Sequence[asyncpg.Record]:
        return await self._connections.read(f"reading {cls.__name__}", query, *args)


def _build_condition(
    cls: type[Any],
    where: Predicate | None,
    tenants: Sequence[str] | None,
    parameters: Parameters,
) -> str:
    """The SQL condition. The tenants are ANDed with the whole filter, so that no `||` in it gets around them."""
    parts = [f"kind = {parameters.add(cls.__name__, 'text')}"]
    if tenants is not None and len(tenants) == 1:
        parts.append(f"tenant = {parameters.add(tenants[0], 'text')}")
    elif tenants is not None:
        parts.append(f"tenant = any ({parameters.add(builtins.list(tenants), 'text[]')})")
    if where is not None:
        parts.append(f"({where.sql(parameters)})")
    return " and ".join(parts)


def _to_list(tenants: Sequence[str] | None) -> builtins.list[str] | None:
    return None if tenants is None else builtins.list(tenants)
