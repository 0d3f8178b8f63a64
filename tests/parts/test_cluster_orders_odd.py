"""ClusterOrders that cannot be read, and those that name Secrets which are not theirs."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import (
    ClusterOrderSecretReference,
    Item,
    ItemState,
    Order,
    OrderPhase,
    OrderSpec,
    OrderStatus,
)
from boatyard.orderbook.kube.mapping import from_kube
from boatyard.orderbook.kube.mapping.status import to_status
from boatyard.orderbook.port import unreadable
from tests.support.cluster_orders import NOW, PLACE, an_object, theirs


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("[1]", id="no map"),
        pytest.param("oops", id="no JSON"),
        pytest.param("[" * 100_000, id="deeper than anybody reads"),
    ],
)
def test_a_wish_that_cannot_be_read_is_said_with_the_order(said: str) -> None:
    order = from_kube.to_order(theirs(templateParameters=said), PLACE)
    assert "spec.templateParameters" in unreadable(order)
    assert (order.id, order.spec.generation) == ("1234-uid", 0)


@pytest.mark.parametrize(
    "field, said",
    [
        pytest.param("generation", "many", id="a number"),
        pytest.param("orderedAt", "2016-12-31T23:59:60Z", id="a time that the CRD lets pass"),
    ],
)
def test_an_order_that_cannot_be_read_can_be_taken_back(field: str, said: str) -> None:
    """Whose it is, by when it is to be gone and what it holds is known all the same."""
    spec = OrderSpec(
        cluster_name="web",
        hub="hub-1",
        delete_by=NOW + timedelta(hours=2),
        platform_settings={"a": "b"},
    )
    item = an_object("c-1", spec, deleted=True)
    host = Item(key="host/compute-0", kind="host", state=ItemState.PRESENT)
    held = Order(id="c-1", status=OrderStatus(phase=OrderPhase.READY, items=(host,)))
    item["status"] = to_status(held, item, NOW)
    assert unreadable(from_kube.to_order(item, PLACE)) == ""
    item["spec"]["boatyard"][field] = said
    order = from_kube.to_order(item, PLACE)
    assert unreadable(order)
    assert order.metadata.deletion_timestamp == NOW + timedelta(hours=1)
    assert order.status == held.status
    assert msgspec.structs.replace(order.spec, generation=0) == spec


def test_what_an_order_holds_is_never_guessed() -> None:
    item = theirs(templateParameters="oops")
    item["status"] = {"boatyard": {"items": "oops"}}
    with pytest.raises(Refused):
        from_kube.to_order(item, PLACE)


@pytest.mark.parametrize(
    "namespace, name, own",
    [
        pytest.param("boatyard-acme", "{order}-credentials", True, id="beside the order"),
        pytest.param("boatyard-acme-{order}", "{order}-credentials", True, id="with the cluster"),
        pytest.param("clusters-{theirs}", "{order}-credentials", True, id="of others, with it"),
        pytest.param("boatyard-globex-{order}", "{order}-credentials", False, id="a stranger's"),
        pytest.param("boatyard-globex", "{order}-credentials", False, id="a stranger's orders"),
        pytest.param("boatyard-acme", "admin-kubeconfig", False, id="another Secret"),
    ],
)
def test_only_an_orders_own_credentials_are_followed(namespace: str, name: str, own: bool) -> None:
    item = an_object("c-1", OrderSpec())
    names = {"order": hub_names.order_name("c-1"), "theirs": hub_names.order_name("a-uid")}
    said = {"namespace": namespace.format(**names), "name": name.format(**names)}
    item["status"] = {"credentialsRef": said}
    assert from_kube.credentials_ref(item) == (said if own else None)
    known = from_kube.to_order(item, PLACE).status.credentials.kubeconfig
    assert known == (from_kube.MASK if own else "")


def test_only_an_orders_own_inputs_are_followed() -> None:
    item = an_object("c-1", OrderSpec())
    own = hub_names.inputs_secret_name(hub_names.order_name("c-1"))
    assert from_kube.secret_ref(item) == ClusterOrderSecretReference(name=own, version="3")
    item["spec"]["boatyard"]["secretRef"]["name"] = "another"
    assert from_kube.secret_ref(item) is None
    assert own in unreadable(from_kube.to_order(item, PLACE))
