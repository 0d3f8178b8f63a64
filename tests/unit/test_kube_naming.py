"""Names on a Kubernetes hub: they fit, they are found again, and nobody can choose another's."""

from __future__ import annotations

import base64
import hashlib
import string
from itertools import product

import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Refused

UUID = "0b6f2f3e-1c55-4d0f-9a57-6c0e5a7d1c11"


def test_an_order_is_named_by_the_hash_of_its_cluster() -> None:
    digest = base64.b32encode(hashlib.sha256(UUID.encode()).digest()).decode().lower()
    assert hub_names.order_name(UUID) == f"order-{digest[:10]}"


@pytest.mark.parametrize(
    "tenant, expected",
    [
        pytest.param("acme", "boatyard-acme", id="a short label as it is"),
        pytest.param("customers", "boatyard-customers", id="a word as long as a hash"),
        pytest.param("a" * 20, "boatyard-" + "a" * 20, id="twenty characters fit"),
    ],
)
def test_a_tenants_namespace_is_its_name_where_that_fits(tenant: str, expected: str) -> None:
    assert hub_names.tenant_namespace(tenant) == expected


@pytest.mark.parametrize(
    "tenant",
    [
        pytest.param("a" * 21, id="too long"),
        pytest.param("Acme Ltd.", id="no label"),
        pytest.param("-acme", id="begins with a dash"),
        pytest.param("", id="empty"),
        pytest.param("ärger", id="not ASCII"),
        pytest.param("system", id="would be the system's own namespace"),
        pytest.param("a-order-abcdefghij", id="would be the namespace of a's cluster"),
        pytest.param("acme-abcdefghi", id="looks hashed"),
        pytest.param("---", id="nothing readable"),
        pytest.param("acme\n", id="ends with a line break"),
    ],
)
def test_any_other_tenant_gets_a_stem_and_a_hash(tenant: str) -> None:
    namespace = hub_names.tenant_namespace(tenant)
    assert namespace != f"boatyard-{tenant}"
    assert hub_names.is_label(namespace)
    assert len(namespace) <= hub_names.LONGEST_ORDER_NAMESPACE
    assert namespace != hub_names.SYSTEM_NAMESPACE
    again = namespace.removeprefix("boatyard-")
    assert hub_names.tenant_namespace(again) != namespace, "its name can be chosen by another"


def test_no_tenant_can_have_the_namespace_of_a_strangers_cluster() -> None:
    order = hub_names.order_name(UUID)
    cluster = hub_names.cluster_namespace(hub_names.tenant_namespace("a"), order)
    assert hub_names.tenant_namespace(cluster.removeprefix("boatyard-")) != cluster


def test_the_longest_names_fit_hypershifts_namespace() -> None:
    order = hub_names.order_name(UUID)
    for tenant in ("t" * 20, "T" * 300):
        namespace = hub_names.cluster_namespace(hub_names.tenant_namespace(tenant), order)
        control_plane = hub_names.control_plane_namespace(namespace, order)
        assert hub_names.is_label(control_plane), control_plane
        assert hub_names.order_namespace_of(namespace, order) == hub_names.tenant_namespace(tenant)
    assert hub_names.order_namespace_of("elsewhere", order) == ""


@pytest.mark.parametrize("namespace", ["", "UPPER", "a" * 30, "a.b", "a\n"])
def test_a_chosen_namespace_that_cannot_hold_orders_is_refused(namespace: str) -> None:
    with pytest.raises(Refused) as caught:
        hub_names.check_order_namespace(namespace, "kube.namespace")
    assert caught.value.violations[0].path == "kube.namespace"
    assert caught.value.violations[0].remedy


def test_a_chosen_namespace_that_can_is_taken_as_it_is() -> None:
    assert hub_names.check_order_namespace("a" * 29, "kube.namespace") == "a" * 29


@pytest.mark.parametrize("node_set", ["compute", "gpu_large", "n" * 80, "GPU", ""])
def test_a_node_pool_has_a_label_for_a_name(node_set: str) -> None:
    name = hub_names.node_pool_name(hub_names.order_name(UUID), node_set)
    assert hub_names.is_label(name)


def test_node_sets_never_share_a_node_pool() -> None:
    order = hub_names.order_name(UUID)
    sets = ["gpu", "GPU", "gpu_", "gpu-", "n" * 40, "n" * 41]
    names = {hub_names.node_pool_name(order, node_set) for node_set in sets}
    assert len(names) == len(sets)


@pytest.mark.parametrize("text", ["", "a", UUID, "A_b.c", "9" * 63])
def test_a_label_value_is_the_text_where_it_can_be(text: str) -> None:
    assert hub_names.label_value(text) == text


@pytest.mark.parametrize("text", ["a/b", "a" * 64, "-a", "a-", "sha256-a", "a\n", "ä"])
def test_any_other_text_is_hashed(text: str) -> None:
    value = hub_names.label_value(text)
    assert value != text
    assert hub_names.label_value(value) != value, "its value can be chosen by another"
    assert len(value) <= 63
    assert set(value) <= set(string.ascii_lowercase + string.digits + "-")


def test_a_claim_is_named_by_pool_and_item() -> None:
    pairs = [*product(("a", "a/b"), ("c", "b/c"))]
    names = {hub_names.claim_name(pool, item) for pool, item in pairs}
    assert len(names) == len(pairs)
    assert all(hub_names.is_label(name) for name in names)
