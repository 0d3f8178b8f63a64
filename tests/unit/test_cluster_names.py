"""The label of a cluster in DNS: its own, whoever else has a cluster of that name."""

from __future__ import annotations

import msgspec
import pytest

from boatyard.model.generated.boatyard import Order
from boatyard.resources.orders.steps.names import cluster_label
from tests.support.orders import an_order


def order_named(name: str, id: str) -> Order:
    order = an_order()
    spec = msgspec.structs.replace(order.spec, cluster_name=name)
    return msgspec.structs.replace(order, id=id, spec=spec)


def test_clusters_of_one_name_have_labels_of_their_own() -> None:
    ours, theirs = (cluster_label(order_named("web", id)) for id in ("c-1", "c-2"))

    assert ours != theirs
    assert ours == cluster_label(order_named("web", "c-1")), "and always the same one"
    assert ours.startswith("web-")


@pytest.mark.parametrize("name", ["w" * 56, "w" * 63, "w" * 55 + "-web"])
def test_a_long_name_is_cut_to_a_label_that_dns_takes(name: str) -> None:
    labels = {cluster_label(order_named(name, id)) for id in ("c-1", "c-2")}

    assert len(labels) == 2
    for label in labels:
        stem, _, fragment = label.rpartition("-")
        assert len(label) <= 63
        assert len(fragment) == 6
        assert stem == stem.rstrip("-")
