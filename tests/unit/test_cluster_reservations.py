"""What a changed wish reserves on its hub before the order follows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from boatyard.ledger.changes import Change, Reserve
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import Order, OrderSpec
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterStatus,
    HostTypeReference,
    Hub,
    HubSpec,
    Metadata,
)
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.reconciling import Turn
from tests.support.orders import NOW

SMALL, LARGE = "hub-1/capacity/bm-small", "hub-1/capacity/bm-large"
CLUSTERS = "hub-1/capacity/clusters"


@dataclass
class Shelf:
    """What a cluster's turn reads of the ledger, and what it commits before the order is changed."""

    cluster: Cluster
    reserved: dict[str, int]
    committed: list[Change] = field(default_factory=list)

    @property
    def documents(self) -> Shelf:
        return self

    @property
    def claims(self) -> Shelf:
        return self

    async def get(self, kind: type, id: str) -> Any:
        hub = Hub(id="hub-1", spec=HubSpec(capacity={"bm-small": 8, "bm-large": 4}))
        return {Cluster: self.cluster, Hub: hub}.get(kind)

    async def reservations(self, owner: str) -> dict[str, int]:
        return self.reserved

    async def commit(self, changes: Sequence[Change], **how: Any) -> None:
        self.committed += changes


class Book:
    """A hub that has the order of the first generation."""

    def __init__(self) -> None:
        self.handed_over: list[OrderSpec] = []

    async def get(self, order_id: str) -> Order:
        return Order(id=order_id, spec=OrderSpec(hub="hub-1", generation=1))

    async def put(self, order_id: str, *, tenant: str, spec: OrderSpec, now: datetime) -> None:
        self.handed_over.append(spec)


def wish(**sizes: int) -> Cluster:
    return Cluster(
        id="c-1",
        metadata=Metadata(name="web", tenant="acme", generation=2),
        spec=ClusterSpec(
            node_sets={
                host_type: ClusterNodeSet(
                    host_type=HostTypeReference(id=f"bm-{host_type}"), size=size
                )
                for host_type, size in sizes.items()
            }
        ),
        status=ClusterStatus(hub="hub-1"),
    )


@pytest.mark.parametrize(
    "cluster, expected",
    [
        pytest.param(wish(small=5), {SMALL: 5}, id="more of what it has"),
        pytest.param(wish(small=3), {}, id="the same"),
        pytest.param(wish(small=1), {}, id="less: the nodes are still there"),
        pytest.param(wish(small=0), {}, id="nothing: the nodes are still there"),
        pytest.param(wish(small=1, large=2), {LARGE: 2}, id="less of one and some of another"),
    ],
)
async def test_a_smaller_wish_frees_nothing_before_the_nodes_are_gone(
    cluster: Cluster, expected: dict[str, int]
) -> None:
    shelf, book = Shelf(cluster, {SMALL: 3, CLUSTERS: 1}), Book()

    async def book_for(turn: Turn, hub: str) -> OrderBook:
        return cast(OrderBook, book)

    reconciler = ClusterReconciler(
        ledger=cast(Ledger, shelf), book_for=book_for, delete_within=timedelta(minutes=15)
    )
    result = await reconciler.reconcile(Turn(id="c-1", now=NOW))

    assert all(isinstance(change, Reserve) for change in shelf.committed)
    reserves = [change for change in shelf.committed if isinstance(change, Reserve)]
    assert {reserve.pool: reserve.amount for reserve in reserves} == expected
    assert all(reserve.owner == "c-1" for reserve in reserves)
    assert [spec.generation for spec in book.handed_over] == [2], "the order follows the wish"
    assert list(result.changes) == []
