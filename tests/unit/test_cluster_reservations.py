"""What a new cluster and a changed wish reserve on their hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from boatyard.ledger.changes import Change, Reserve
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import DocumentPage
from boatyard.model.generated.boatyard import Order, OrderSpec
from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterStatus,
    HostTypeReference,
    Hub,
    HubSpec,
    HubState,
    HubStatus,
    Metadata,
)
from boatyard.orderbook.port import OrderBook
from boatyard.resources.clusters.reconciler import ClusterReconciler
from boatyard.resources.reconciler import ReconcilePass
from tests.support.orders import NOW

SMALL, LARGE = "hub-1/capacity/bm-small", "hub-1/capacity/bm-large"
CLUSTERS = "hub-1/capacity/clusters"
HUB = Hub(
    id="hub-1",
    spec=HubSpec(capacity={"bm-small": 8, "bm-large": 4}),
    status=HubStatus(state=HubState.READY),
)


@dataclass
class ReservationLedger:
    """What a cluster's turn reads of the ledger, and what it commits before the order is changed."""

    cluster: Cluster
    reserved: dict[str, int]
    committed: list[Change] = field(default_factory=list)

    @property
    def documents(self) -> ReservationLedger:
        return self

    @property
    def claims(self) -> ReservationLedger:
        return self

    async def get(self, kind: type, id: str) -> Any:
        return {Cluster: self.cluster, Hub: HUB}.get(kind)

    async def list_reservations(self, owner: str) -> dict[str, int]:
        return self.reserved

    async def list(self, kind: type, **how: Any) -> DocumentPage[Any]:
        return DocumentPage(items=(HUB,), total=1)

    async def sum_reserved_by_pool(self) -> dict[str, int]:
        return self.reserved

    async def commit(self, changes: Sequence[Change], **how: Any) -> None:
        self.committed += changes


class FixedOrderBook:
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
    shelf, book = ReservationLedger(cluster, {SMALL: 3, CLUSTERS: 1}), FixedOrderBook()

    async def book_for(reconcile_pass: ReconcilePass, hub: str) -> OrderBook:
        return cast(OrderBook, book)

    reconciler = ClusterReconciler(
        ledger=cast(Ledger, shelf), book_for=book_for, delete_within=timedelta(minutes=15)
    )
    result = await reconciler.reconcile(ReconcilePass(id="c-1", now=NOW))

    assert all(isinstance(change, Reserve) for change in shelf.committed)
    reserves = [change for change in shelf.committed if isinstance(change, Reserve)]
    assert {reserve.pool: reserve.amount for reserve in reserves} == expected
    assert all(reserve.owner == "c-1" for reserve in reserves)
    assert [spec.generation for spec in book.handed_over] == [2], "the order follows the wish"
    assert list(result.changes) == []


async def test_a_new_cluster_is_placed_only_while_its_hub_still_has_the_room() -> None:
    """Two workers that saw the same room: the ledger refuses the second by the capacity of the reservation."""
    unplaced = msgspec.structs.replace(wish(small=3, large=1), status=ClusterStatus())
    shelf = ReservationLedger(unplaced, {SMALL: 2})

    async def book_for(reconcile_pass: ReconcilePass, hub: str) -> OrderBook:
        raise AssertionError("placement writes no order")

    reconciler = ClusterReconciler(
        ledger=cast(Ledger, shelf), book_for=book_for, delete_within=timedelta(minutes=15)
    )
    result = await reconciler.reconcile(ReconcilePass(id="c-1", now=NOW))

    reserves = [change for change in result.changes if isinstance(change, Reserve)]
    amounts = {reserve.pool: (reserve.amount, reserve.capacity) for reserve in reserves}
    assert amounts[SMALL] == (3, 8)
    assert amounts[LARGE] == (1, 4)
    assert {reserve.owner for reserve in reserves} == {"c-1"}
