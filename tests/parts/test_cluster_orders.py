"""An order survives the way into a ClusterOrder and back, no secret stands in it, and others' orders are understood."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import (
    ClusterOrderSecretReference,
    Credentials,
    Item,
    ItemState,
    Leftover,
    LeftoverSpec,
    LeftoverStatus,
    Order,
    OrderCondition,
    OrderNodeSet,
    OrderPhase,
    OrderSpec,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.mapping import from_kube, kube_json, leftovers, to_kube
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.mapping.status import OSAC_PHASES, to_status
from boatyard.orderbook.port import get_unreadable_reason
from boatyard.roles.parameter_values import decode_secrets, encode_secrets
from tests.support.kube_hub.cluster_orders import NOW, PLACE, an_object, theirs
from tests.support.kube_hub.crds import misfits, schema_of
from tests.support.structs import PREFIX, packed, structs, text

COMPATIBLE = HubOrderSettings(hub="hub-1", osac_compatible=True)
PLANTED = "hunter2-hunter2"

ids = st.text(min_size=1, max_size=40).filter(lambda t: t.isprintable())


@st.composite
def specs(draw: st.DrawFn) -> OrderSpec:
    """Any spec, with some of its parameters secret. Sizes are counts."""
    spec: OrderSpec = draw(structs(OrderSpec))
    named = draw(st.dictionaries(text.filter(bool), packed, max_size=3))
    secret = draw(st.sets(st.sampled_from(sorted(named)))) if named else set()
    sizes = {
        name: OrderNodeSet(host_type=one.host_type, size=abs(one.size) % 1000)
        for name, one in spec.node_sets.items()
        if name
    }
    return msgspec.structs.replace(
        spec,
        template_parameters={name: one for name, one in named.items() if name not in secret},
        secret_parameters=tuple(sorted(secret)),
        secret_values=encode_secrets({name: named[name] for name in secret}),
        node_sets=sizes,
    )


@settings(max_examples=200)
@given(id=ids, spec=specs(), tenant=text.filter(bool), compatible=st.booleans())
def test_an_order_survives_the_way_there_and_back(
    id: str, spec: OrderSpec, tenant: str, compatible: bool
) -> None:
    place = COMPATIBLE if compatible else PLACE
    item = json.loads(json.dumps(an_object(id, spec, order_settings=place, tenant=tenant)))
    assert misfits(schema_of("clusterorders"), item) == []
    order = from_kube.to_order(item, place, secrets=to_kube.collect_secrets(spec))
    assert order.spec == spec
    assert (order.id, order.metadata.tenant) == (id, tenant)
    assert order.metadata.creation_timestamp == NOW
    assert order.metadata.deletion_timestamp is None


@settings(max_examples=100)
@given(status=structs(OrderStatus))
def test_a_status_survives_the_way_there_and_back(status: OrderStatus) -> None:
    order = Order(id="c-1", metadata=Metadata(tenant="acme"), spec=OrderSpec(), status=status)
    item = an_object("c-1", OrderSpec(cluster_name="web"))
    conditions = tuple(
        OrderCondition(type=f"Ours{place}", status=one.status, reason=one.reason)
        for place, one in enumerate(status.conditions)
    )
    status = msgspec.structs.replace(status, conditions=conditions)
    order = msgspec.structs.replace(order, status=status)
    item["status"] = json.loads(json.dumps(to_status(order, item, NOW)))
    assert misfits(schema_of("clusterorders"), item) == []
    again = from_kube.to_order(item, PLACE, credentials=status.credentials)
    assert again.status == status


@settings(max_examples=100)
@given(spec=specs(), credentials=structs(Credentials))
def test_no_secret_stands_in_the_object(spec: OrderSpec, credentials: Credentials) -> None:
    secret = {"@type": f"{PREFIX}StringValue", "value": PLANTED}
    spec = msgspec.structs.replace(
        spec,
        pull_secret=PLANTED,
        secret_values=encode_secrets({**decode_secrets(spec.secret_values), "password": secret}),
        secret_parameters=(*spec.secret_parameters, "password"),
    )
    planted = msgspec.structs.replace(credentials, kubeconfig=PLANTED, password=PLANTED)
    order = Order(id="c-1", spec=spec, status=OrderStatus(credentials=planted))
    item = an_object("c-1", spec)
    item["status"] = to_status(order, item, NOW)
    assert PLANTED not in json.dumps(item)
    compatible = an_object("c-1", spec, order_settings=COMPATIBLE)
    assert compatible["spec"]["pullSecret"] == PLANTED
    assert json.loads(compatible["spec"]["templateParameters"])["password"] == PLANTED


def test_both_shapes_of_node_requests_are_written() -> None:
    spec = OrderSpec(node_sets={"compute": OrderNodeSet(host_type="bm-small", size=3)})
    (request,) = to_kube.to_spec("c", spec, tenant="acme", order_settings=PLACE, ordered_at=NOW)[
        "nodeRequests"
    ]
    assert request == {
        "nodeSet": "compute",
        "resourceClass": "bm-small",
        "numberOfNodes": 3,
        "bareMetal": {"instanceType": "bm-small"},
    }


@pytest.mark.parametrize(
    "requests, expected",
    [
        pytest.param(
            [{"resourceClass": "fc430", "numberOfNodes": 2}],
            {"fc430": OrderNodeSet(host_type="fc430", size=2)},
            id="the older shape is named after its resource class",
        ),
        pytest.param(
            [{"nodeSet": "gpu", "numberOfNodes": 1, "bareMetal": {"instanceType": "h100"}}],
            {"gpu": OrderNodeSet(host_type="h100", size=1)},
            id="the newer shape has a name of its own",
        ),
        pytest.param(
            [
                {"resourceClass": "fc430", "numberOfNodes": 2},
                {"resourceClass": "fc430", "numberOfNodes": 5},
            ],
            {
                "fc430": OrderNodeSet(host_type="fc430", size=2),
                "fc430-2": OrderNodeSet(host_type="fc430", size=5),
            },
            id="the same class twice is two node sets",
        ),
        pytest.param(
            [{"resourceClass": "Big_Iron", "numberOfNodes": 0}],
            {"big-iron": OrderNodeSet(host_type="Big_Iron", size=0)},
            id="a class that is no name",
        ),
        pytest.param(
            [{"nodeSet": "compute", "numberOfNodes": 1}],
            {"compute": OrderNodeSet(host_type="compute", size=1)},
            id="a node set without a class",
        ),
    ],
)
def test_orders_of_other_tools_are_understood(
    requests: list[dict[str, Any]], expected: dict[str, OrderNodeSet]
) -> None:
    item = theirs(
        nodeRequests=requests,
        templateParameters='{"region": "boston", "zones": 3}',
        releaseImage="quay.io/openshift-release-dev/ocp-release:4.17.9-multi",
        pullSecret="{}",
        network={"podCIDR": "10.132.0.0/14"},
    )
    assert misfits(schema_of("clusterorders"), item) == []
    order = from_kube.to_order(item, PLACE)
    assert order.spec.node_sets == expected
    assert order.id == "1234-uid"
    assert order.metadata.tenant == "osac-orders"
    assert (order.spec.hub, order.spec.cluster_name) == ("hub-1", "order-x7k2p")
    assert (order.spec.version, order.spec.generation) == ("4.17.9", 3)
    assert (order.spec.pull_secret, order.spec.pod_cidr) == ("{}", "10.132.0.0/14")
    assert order.spec.template_parameters["region"] == {
        "@type": f"{PREFIX}StringValue",
        "value": "boston",
    }


def test_a_deletion_by_others_has_a_bound_too() -> None:
    item = theirs()
    item["metadata"]["deletionTimestamp"] = "2026-01-06T00:00:00Z"
    order = from_kube.to_order(item, PLACE)
    asked = datetime(2026, 1, 6, tzinfo=UTC)
    assert order.metadata.deletion_timestamp == asked
    assert order.spec.delete_by == asked + PLACE.delete_within


def test_a_deletion_of_ours_has_our_time() -> None:
    spec = OrderSpec(delete_by=NOW + timedelta(hours=2))
    order = from_kube.to_order(an_object("c-1", spec, deleted=True), PLACE)
    assert order.metadata.deletion_timestamp == NOW + timedelta(hours=1)
    assert order.spec.delete_by == NOW + timedelta(hours=2)


def test_a_deletion_of_ours_counts_once_kubernetes_has_it() -> None:
    """The request is written into the spec first; a process that dies there has deleted nothing."""
    item = an_object("c-1", OrderSpec(delete_by=NOW + timedelta(hours=2)), deleted=True)
    del item["metadata"]["deletionTimestamp"]
    assert "deletedAt" in item["spec"]["boatyard"]
    assert from_kube.to_order(item, PLACE).metadata.deletion_timestamp is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"namespace": "boatyard-globex"}, id="in a stranger's namespace"),
        pytest.param({"name": "order-other"}, id="under another name"),
    ],
)
def test_nobody_speaks_for_a_cluster_from_another_place(change: dict[str, Any]) -> None:
    item = an_object("c-1", OrderSpec(cluster_name="web"))
    assert from_kube.read_order_id(item, PLACE) == "c-1"
    item["metadata"] |= change
    assert from_kube.read_order_id(item, PLACE) == "a-uid"
    assert from_kube.to_order(item, PLACE).id == "a-uid"


def test_what_is_taken_off_by_hand_does_not_change_whose_order_it_is() -> None:
    item = an_object("c-1", OrderSpec(cluster_name="web"))
    item["metadata"] |= {"annotations": {}, "labels": {}, "finalizers": []}
    order = from_kube.to_order(item, PLACE)
    assert (order.id, order.metadata.tenant) == ("c-1", "acme")


def test_in_one_namespace_for_all_the_name_decides() -> None:
    place = HubOrderSettings(hub="hub-1", shared_namespace="osac-orders")
    item = an_object("c-1", OrderSpec(), order_settings=place)
    assert item["metadata"]["namespace"] == "osac-orders"
    assert from_kube.read_order_id(item, place) == "c-1"
    item["metadata"]["name"] = "order-other"
    assert from_kube.read_order_id(item, place) == "a-uid"


def test_every_phase_has_a_word_of_osacs() -> None:
    assert OSAC_PHASES.keys() == set(OrderPhase)
    assert set(OSAC_PHASES.values()) == {"Progressing", "Ready", "Failed", "Deleting"}


def test_conditions_say_since_when_they_hold() -> None:
    item = an_object("c-1", OrderSpec())
    order = Order(id="c-1", status=OrderStatus(phase=OrderPhase.PROGRESSING))
    item["status"] = to_status(order, item, NOW)
    cluster = Item(key="cluster", kind="cluster", state=ItemState.PRESENT)
    status = OrderStatus(phase=OrderPhase.DELETING, items=(cluster,))
    later = to_status(
        msgspec.structs.replace(order, status=status), item, NOW + timedelta(minutes=5)
    )
    since = {one["type"]: one["lastTransitionTime"] for one in later["conditions"]}
    assert since["Accepted"] == "2026-01-01T00:00:00Z"
    assert since["ControlPlaneCreated"] == since["Deleting"] == "2026-01-01T00:05:00Z"
    assert all(one["reason"] for one in later["conditions"])
    assert all(one["observedGeneration"] == 7 for one in later["conditions"])


def test_the_place_of_a_cluster_is_kept_once_it_is_known() -> None:
    item = an_object("c-1", OrderSpec())
    cluster = Item(key="cluster", kind="cluster", facts={"namespace": "boatyard-acme-order-x"})
    order = Order(id="c-1", status=OrderStatus(items=(cluster,)))
    item["status"] = to_status(order, item, NOW)
    assert item["status"]["clusterReference"]["namespace"] == "boatyard-acme-order-x"
    gone = msgspec.structs.replace(order, status=OrderStatus(phase=OrderPhase.DELETED))
    assert to_status(gone, item, NOW)["clusterReference"] == item["status"]["clusterReference"]


@given(spec=structs(LeftoverSpec), status=structs(LeftoverStatus), tenant=text.filter(bool))
def test_a_leftover_survives_the_way_there_and_back(
    spec: LeftoverSpec, status: LeftoverStatus, tenant: str
) -> None:
    leftover = Leftover(
        id="c-1",
        metadata=Metadata(name="c-1", tenant=tenant, creator="system", creation_timestamp=NOW),
        spec=msgspec.structs.replace(spec, order="c-1"),
        status=status,
    )
    item = json.loads(json.dumps(leftovers.to_object(leftover, PLACE)))
    item["metadata"]["uid"] = "a-uid"
    assert misfits(schema_of("leftovers"), item) == []
    assert leftovers.to_leftover(item, PLACE) == leftover


def test_a_leftover_in_a_strangers_namespace_releases_nothing_of_others() -> None:
    leftover = Leftover(id="c-1", metadata=Metadata(tenant="acme"), spec=LeftoverSpec(order="c-1"))
    item = leftovers.to_object(leftover, PLACE)
    item["metadata"] |= {"namespace": "boatyard-globex", "uid": "a-uid"}
    forged = leftovers.to_leftover(item, PLACE)
    assert (forged.id, forged.spec.order) == ("a-uid", "a-uid")


def test_names_are_spelled_as_in_the_crd() -> None:
    assert kube_json.to_camel_case("cluster_id") == "clusterID"
    assert kube_json.to_camel_case("pod_cidr") == "podCIDR"
    assert kube_json.to_camel_case("observed_generation") == "observedGeneration"
    assert kube_json.to_camel_case("rest") == "rest"


# --- orders that cannot be read, and those that name Secrets which are not theirs ------------------


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
    assert "spec.templateParameters" in get_unreadable_reason(order)
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
    assert get_unreadable_reason(from_kube.to_order(item, PLACE)) == ""
    item["spec"]["boatyard"][field] = said
    order = from_kube.to_order(item, PLACE)
    assert get_unreadable_reason(order)
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
    assert from_kube.read_credentials_ref(item) == (said if own else None)
    known = from_kube.to_order(item, PLACE).status.credentials.kubeconfig
    assert known == (from_kube.CREDENTIALS_MASK if own else "")


def test_only_an_orders_own_inputs_are_followed() -> None:
    item = an_object("c-1", OrderSpec())
    own = hub_names.inputs_secret_name(hub_names.order_name("c-1"))
    assert from_kube.read_secret_ref(item) == ClusterOrderSecretReference(name=own, version="3")
    item["spec"]["boatyard"]["secretRef"]["name"] = "another"
    assert from_kube.read_secret_ref(item) is None
    assert own in get_unreadable_reason(from_kube.to_order(item, PLACE))
