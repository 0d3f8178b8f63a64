"""Names of the provider's hubs, hosts and switches do not reach tenants, whichever step says them."""

from __future__ import annotations

import pytest

from boatyard.model.generated.boatyard import (
    Item,
    Order,
    OrderCondition,
    OrderPhase,
    OrderSpec,
    OrderStatus,
)
from boatyard.model.generated.osac import Cluster
from boatyard.resources.clusters import status
from boatyard.resources.orders.redaction import redact_for_tenants
from tests.support.orders import NOW

FACTS = {"host": "r1-n1", "switch": "leaf-7", "mac": "02:00:00:00:00:01"}


def an_order(message: str = "") -> Order:
    return Order(
        id="c-1",
        spec=OrderSpec(hub="boston-1"),
        status=OrderStatus(
            phase=OrderPhase.PROGRESSING,
            items=(
                Item(key="host/a-0", kind="host", step="hosts", facts=FACTS),
                Item(key="host/a-1", kind="host", step="hosts", facts={"host": "r1-n1.example"}),
            ),
            conditions=(OrderCondition(type="Progressing", status=True, message=message),),
        ),
    )


@pytest.mark.parametrize(
    "text, shown",
    [
        pytest.param("hub boston-1 is busy", "the hub is busy", id="the hub"),
        pytest.param("host 'r1-n1' is off", "a host is off", id="a host"),
        pytest.param("leaf-7 is silent", "a host is silent", id="a switch"),
        pytest.param("no lease for 02:00:00:00:00:01", "no lease for a host", id="an address"),
        pytest.param("r1-n1.example is off", "a host is off", id="the longest name counts"),
        pytest.param("r1-n10 and boston-12", "r1-n10 and boston-12", id="others' names stay"),
    ],
)
def test_names_of_ours_are_replaced_by_what_they_are(text: str, shown: str) -> None:
    assert redact_for_tenants(text, an_order()) == shown


def test_a_clusters_conditions_name_no_host() -> None:
    order = an_order("host r1-n1 does not answer")

    (condition,) = status.status_from_order(Cluster(id="c-1"), order, NOW).conditions

    assert condition.message == "a host does not answer"
