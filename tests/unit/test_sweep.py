"""Which things found on a hub become a Leftover, and which are left alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from boatyard.ledger.changes import Due, Insert
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Unavailable
from boatyard.model.generated.boatyard import ItemState, Leftover, Order, OrderSpec
from boatyard.model.generated.osac import Cluster, Metadata
from boatyard.model.outcome import OwnedObject
from boatyard.resources.hubs.sweep import sweep_hub
from boatyard.resources.orders.drivers import HubDrivers
from tests.support.orders import NOW

ENDED = Order(
    id="o-1",
    metadata=Metadata(name="web", tenant="acme", project="shop", creator="ann"),
    spec=OrderSpec(cluster_name="web", hub="hub-1"),
)
HOST = OwnedObject("o-1/host/compute-3", "host", "r1-n4")
NETWORK = OwnedObject("o-1/l2", "network", "1234")


@dataclass
class SweepLedger:
    """The two questions a sweep asks of the ledger: what is there, and what has left."""

    present: list[Any] = field(default_factory=list)
    archive: list[Any] = field(default_factory=list)

    @property
    def documents(self) -> SweepLedger:
        return self

    async def get_many(self, kind: type, ids: list[str], *, sealed: bool) -> dict[str, Any]:
        return {
            document.id: document
            for document in self.present
            if isinstance(document, kind) and document.id in ids
        }

    async def get_archived(self, kind: type, id: str, *, sealed: bool) -> Any:
        matches = (doc for doc in self.archive if isinstance(doc, kind) and doc.id == id)
        return next(matches, None)


class ListingDriver:
    """A driver that names what is there, or does not answer."""

    def __init__(self, *owned: OwnedObject, answers: bool = True) -> None:
        self.owned = owned
        self.answers = answers

    async def list_owned(self, prefix: str = "") -> list[OwnedObject]:
        if not self.answers:
            raise Unavailable("no answer")
        return list(self.owned)


def drivers(inventory: ListingDriver, l2: ListingDriver) -> HubDrivers:
    others = dict.fromkeys(("l3", "dns", "platform", "checks"), ListingDriver())
    return HubDrivers(**cast(Any, {"inventory": inventory, "l2": l2, **others}))


async def swept(
    shelf: SweepLedger, hub: str = "hub-1", *, inventory_answers: bool = True
) -> list[Any]:
    outside = drivers(ListingDriver(HOST, answers=inventory_answers), ListingDriver(NETWORK))
    return list(await sweep_hub(cast(Ledger, shelf), hub, outside, NOW))


async def test_what_an_ended_order_has_left_becomes_one_leftover_that_is_due_now() -> None:
    insert, due = await swept(SweepLedger(archive=[ENDED]))

    assert isinstance(insert, Insert)
    assert due == Due("Leftover", "o-1", NOW, tenant="acme", hub="hub-1")
    leftover = insert.doc
    assert isinstance(leftover, Leftover)
    assert (leftover.id, leftover.spec.order, leftover.spec.hub) == ("o-1", "o-1", "hub-1")
    assert leftover.spec.cluster_name == "web"
    assert (leftover.metadata.tenant, leftover.metadata.project) == ("acme", "shop")
    items = {item.key: (item.kind, item.slot, item.state) for item in leftover.status.items}
    assert items == {
        "host/compute-3": ("host", "compute-3", ItemState.LEAVING),
        "l2": ("l2", "", ItemState.LEAVING),
    }


@pytest.mark.parametrize(
    "shelf",
    [
        pytest.param(
            SweepLedger([Leftover(id="o-1")], [ENDED]), id="of which there is a leftover already"
        ),
        pytest.param(SweepLedger([Cluster(id="o-1")], [ENDED]), id="whose cluster is there"),
        pytest.param(SweepLedger([Order(id="o-1")], [ENDED]), id="which has not ended"),
        pytest.param(SweepLedger(), id="that this ledger has never known"),
    ],
)
async def test_the_sweep_leaves_things_alone_of_an_order(shelf: SweepLedger) -> None:
    assert await swept(shelf) == []


async def test_the_sweep_leaves_things_alone_of_an_order_of_another_hub() -> None:
    """Two hubs may name the same things as ours, when they share a service."""
    assert await swept(SweepLedger(archive=[ENDED]), "hub-2") == []


async def test_a_service_that_does_not_answer_keeps_nothing_else_from_being_swept() -> None:
    insert, _ = await swept(SweepLedger(archive=[ENDED]), inventory_answers=False)

    assert [item.key for item in insert.doc.status.items] == ["l2"]
