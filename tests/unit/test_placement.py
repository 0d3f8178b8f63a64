"""Which hub a cluster goes to, and why not the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from boatyard.model.generated.osac import (
    Cluster,
    ClusterNodeSet,
    ClusterSpec,
    ClusterTemplateReference,
    HostTypeReference,
    Hub,
    HubSpec,
    HubState,
    HubStatus,
    Metadata,
)
from boatyard.resources.clusters import placement
from boatyard.resources.clusters.placement import HubUsage, NotPlaced, Placed
from tests.support.orders import NOW


def a_cluster(size: int = 3, **spec: Any) -> Cluster:
    return Cluster(
        id="c-1",
        spec=ClusterSpec(
            template=ClusterTemplateReference(id="small"),
            node_sets={
                "compute": ClusterNodeSet(host_type=HostTypeReference(id="bm-small"), size=size)
            },
            **spec,
        ),
    )


def a_hub(
    name: str = "hub-1", *, used: int = 0, state: HubState = HubState.READY, **spec: Any
) -> HubUsage:
    spec.setdefault("capacity", {"bm-small": 10})
    hub = Hub(
        id=name, metadata=Metadata(name=name), spec=HubSpec(**spec), status=HubStatus(state=state)
    )
    return HubUsage(hub=hub, reserved={"bm-small": used, "clusters": 1 if used else 0})


def _removed(view: HubUsage) -> HubUsage:
    metadata = msgspec.structs.replace(view.hub.metadata, deletion_timestamp=NOW)
    return HubUsage(msgspec.structs.replace(view.hub, metadata=metadata), view.reserved)


@pytest.mark.parametrize(
    "cluster, hub, why",
    [
        pytest.param(a_cluster(), a_hub(), "", id="it fits"),
        pytest.param(a_cluster(10), a_hub(), "", id="to the last host"),
        pytest.param(
            a_cluster(3),
            a_hub(used=8),
            "has 2 free hosts of type 'bm-small', 3 are needed",
            id="too few hosts are free",
        ),
        pytest.param(
            a_cluster(1),
            a_hub(used=12),
            "has 0 free hosts of type 'bm-small', 1 are needed",
            id="more is reserved than there is: never a negative number",
        ),
        pytest.param(
            a_cluster(1),
            a_hub(capacity={"bm-large": 4}),
            "has 0 free hosts of type 'bm-small', 1 are needed",
            id="no such hosts",
        ),
        pytest.param(
            a_cluster(1),
            a_hub(used=1, capacity={"bm-small": 9, "clusters": 1}),
            "has 0 free clusters, 1 are needed",
            id="the hub's number of clusters is bounded",
        ),
        pytest.param(a_cluster(0), a_hub(capacity={}), "", id="no nodes need no hosts"),
        pytest.param(
            a_cluster(), a_hub(state=HubState.UNREACHABLE), "is not healthy", id="unreachable"
        ),
        pytest.param(
            a_cluster(), a_hub(state=HubState.UNSPECIFIED), "is not healthy", id="never seen yet"
        ),
        pytest.param(a_cluster(), a_hub(cordoned=True), "is cordoned", id="cordoned"),
        pytest.param(a_cluster(), _removed(a_hub()), "is being removed", id="being removed"),
        pytest.param(
            a_cluster(),
            a_hub(templates=("large",)),
            "does not offer the template",
            id="the template is not offered",
        ),
        pytest.param(a_cluster(), a_hub(templates=("small",)), "", id="the template is offered"),
        pytest.param(
            a_cluster(zone="lyon"), a_hub(zone="boston"), "is not in zone 'lyon'", id="other zone"
        ),
        pytest.param(
            a_cluster(zone="lyon"), a_hub(zone=""), "is not in zone 'lyon'", id="in no zone at all"
        ),
        pytest.param(a_cluster(zone="lyon"), a_hub(zone="lyon"), "", id="the zone asked for"),
        pytest.param(a_cluster(), a_hub(zone="lyon"), "", id="any zone will do"),
        pytest.param(
            a_cluster(template_phases=("validate",)),
            a_hub(kubeconfig="there"),
            "runs no roles of templates",
            id="a role to run, and nobody there who does",
        ),
        pytest.param(a_cluster(), a_hub(kubeconfig="there"), "", id="no role to run"),
        pytest.param(
            a_cluster(template_phases=("validate",)), a_hub(), "", id="a role is run by ourselves"
        ),
        pytest.param(
            a_cluster(hub_labels={"disk": "nvme"}),
            a_hub(labels={"disk": "hdd"}),
            "lacks the label disk=nvme",
            id="another value of the label",
        ),
        pytest.param(
            a_cluster(hub_labels={"disk": "nvme"}),
            a_hub(labels={"disk": "nvme", "more": "x"}),
            "",
            id="the label asked for",
        ),
        pytest.param(
            a_cluster(),
            a_hub(labels={"platform": "local"}),
            "is for orders that ask for its platform",
            id="a platform that was not asked for",
        ),
        pytest.param(
            a_cluster(hub_labels={"platform": "local"}),
            a_hub(labels={"platform": "local"}),
            "",
            id="the platform asked for",
        ),
        pytest.param(
            a_cluster(),
            a_hub(labels={"platform": "local"}, templates=("small",)),
            "",
            id="a platform that names the template itself",
        ),
    ],
)
def test_filter(cluster: Cluster, hub: HubUsage, why: str) -> None:
    decision = placement.place(cluster, [hub])
    (candidate,) = decision.candidates
    assert candidate.fits is (not why)
    assert isinstance(decision, Placed) is (not why)
    if why:
        assert candidate.reason == why


@pytest.mark.parametrize(
    "hubs, expected",
    [
        pytest.param([a_hub("a", used=5), a_hub("b")], "b", id="the emptiest"),
        pytest.param([a_hub("b"), a_hub("a")], "a", id="a tie goes to the smaller id"),
        pytest.param(
            [a_hub("a", capacity={"bm-small": 100}, used=90), a_hub("b", used=5)],
            "b",
            id="shares count, not numbers",
        ),
        pytest.param(
            [a_hub("a", cordoned=True), a_hub("b", used=7)], "b", id="only those that fit"
        ),
    ],
)
def test_score(hubs: list[HubUsage], expected: str) -> None:
    decision = placement.place(a_cluster(), hubs)
    assert isinstance(decision, Placed)
    assert decision.hub.id == expected
    assert [c.hub for c in decision.candidates] == ["a", "b"], "every hub's reason is kept"
    assert all(c.reason for c in decision.candidates)
    best = max(decision.candidates, key=lambda c: (c.fits, c.score))
    assert best.hub == expected or len({c.score for c in decision.candidates}) == 1


@pytest.mark.parametrize(
    "hubs, reason",
    [
        pytest.param([], "NoHub", id="there is no hub at all"),
        pytest.param([a_hub(used=9)], "NoCapacity", id="full"),
        pytest.param([a_hub(used=9), a_hub("x", cordoned=True)], "NoCapacity", id="full first"),
        pytest.param([a_hub(cordoned=True)], "NoHealthyHub", id="cordoned"),
        pytest.param([a_hub(state=HubState.UNREACHABLE)], "NoHealthyHub", id="away"),
        pytest.param([a_hub(templates=("large",))], "NoMatchingHub", id="nobody offers it"),
    ],
)
def test_what_a_tenant_is_told_names_no_hub_and_no_number(
    hubs: list[HubUsage], reason: str
) -> None:
    decision = placement.place(a_cluster(), hubs)
    assert isinstance(decision, NotPlaced)
    assert decision.reason == reason
    assert "hub-1" not in decision.message
    assert not any(letter.isdigit() for letter in decision.message)


def test_amounts_add_up_node_sets_of_one_host_type() -> None:
    small, large = HostTypeReference(id="bm-small"), HostTypeReference(id="bm-large")
    node_sets = {
        "a": ClusterNodeSet(host_type=small, size=2),
        "b": ClusterNodeSet(host_type=small, size=3),
        "c": ClusterNodeSet(host_type=large, size=1),
    }
    cluster = Cluster(spec=ClusterSpec(node_sets=node_sets))
    assert placement.get_required_amounts(cluster) == {"clusters": 1, "bm-small": 5, "bm-large": 1}


def test_the_scarcest_host_type_counts() -> None:
    node_sets = {
        "a": ClusterNodeSet(host_type=HostTypeReference(id="bm-small"), size=1),
        "b": ClusterNodeSet(host_type=HostTypeReference(id="bm-gpu"), size=1),
    }
    cluster = Cluster(spec=ClusterSpec(node_sets=node_sets))
    hubs = [
        a_hub("a", capacity={"bm-small": 100, "bm-gpu": 2}),
        a_hub("b", capacity={"bm-small": 10, "bm-gpu": 10}),
    ]
    decision = placement.place(cluster, hubs)
    assert isinstance(decision, Placed)
    assert decision.hub.id == "b"


def test_a_hub_without_the_label_that_is_asked_for_does_not_fit() -> None:
    decision = placement.place(a_cluster(hub_labels={"disk": "nvme"}), [a_hub(labels={"x": "y"})])

    assert isinstance(decision, NotPlaced)
    assert decision.candidates[0].reason == "lacks the label disk=nvme"


@pytest.mark.parametrize("label", ["healthy", "cordoned", "are needed"])
def test_words_of_a_label_do_not_decide_what_a_tenant_is_told(label: str) -> None:
    cluster = a_cluster(hub_labels={label: "yes"})

    decision = placement.place(cluster, [a_hub()])

    assert isinstance(decision, NotPlaced)
    assert decision.reason == "NoMatchingHub"
