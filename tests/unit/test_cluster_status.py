"""What a cluster shows of its order, and what its order is asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from boatyard.model.generated.boatyard import (
    Order,
    OrderCondition,
    OrderPhase,
    OrderStatus,
)
from boatyard.model.generated.osac import (
    Cluster,
    ClusterConditionType,
    ClusterNetwork,
    ClusterNodeSet,
    ClusterSpec,
    ClusterState,
    ClusterStatus,
    ClusterVersion,
    ClusterVersionSpec,
    ConditionStatus,
    HostTypeReference,
    Metadata,
    Placement,
)
from boatyard.resources.clusters import status
from boatyard.roles.parameter_values import decode_secrets, encode_secrets
from tests.support.orders import NOW

LATER = NOW + timedelta(minutes=1)


def a_cluster(*, generation: int = 1, deleting: bool = False, **fields: Any) -> Cluster:
    return Cluster(
        id="c-1",
        metadata=Metadata(
            name="web", generation=generation, deletion_timestamp=NOW if deleting else None
        ),
        spec=ClusterSpec(
            node_sets={
                "compute": ClusterNodeSet(host_type=HostTypeReference(id="bm-small"), size=2)
            },
            pull_secret="secret",
            network=ClusterNetwork(pod_cidr="10.128.0.0/14"),
        ),
        status=ClusterStatus(hub="hub-1", **fields),
    )


def an_order(phase: OrderPhase, generation: int = 1, **fields: Any) -> Order:
    return Order(
        id="c-1", status=OrderStatus(phase=phase, observed_generation=generation, **fields)
    )


@pytest.mark.parametrize(
    "phase, expected",
    [
        (OrderPhase.UNSPECIFIED, ClusterState.PROGRESSING),
        (OrderPhase.PROGRESSING, ClusterState.PROGRESSING),
        (OrderPhase.READY, ClusterState.READY),
        (OrderPhase.DEGRADED, ClusterState.DEGRADED),
        (OrderPhase.FAILED, ClusterState.FAILED),
        (OrderPhase.DELETING, ClusterState.DELETING),
        (OrderPhase.DELETED, ClusterState.DELETING),
    ],
)
def test_every_phase_has_a_state(phase: OrderPhase, expected: ClusterState) -> None:
    assert status.status_from_order(a_cluster(), an_order(phase), NOW).state == expected


@pytest.mark.parametrize(
    "cluster, order, expected",
    [
        pytest.param(
            a_cluster(generation=2),
            an_order(OrderPhase.READY, generation=1),
            ClusterState.PROGRESSING,
            id="an older wish fulfilled is not this one",
        ),
        pytest.param(
            a_cluster(generation=2),
            an_order(OrderPhase.FAILED, generation=1),
            ClusterState.FAILED,
            id="but a failure is shown",
        ),
        pytest.param(
            a_cluster(deleting=True),
            an_order(OrderPhase.READY),
            ClusterState.DELETING,
            id="somebody asked to delete it",
        ),
    ],
)
def test_state_of_what_is_wanted_now(
    cluster: Cluster, order: Order, expected: ClusterState
) -> None:
    assert status.status_from_order(cluster, order, NOW).state == expected


def test_the_same_again_changes_nothing() -> None:
    condition = OrderCondition(type="Ready", status=True, reason="Ready", last_transition_time=NOW)
    order = an_order(
        OrderPhase.READY,
        conditions=(condition,),
        nodes={"compute": 2},
        ready_nodes={"compute": 2},
        facts={"api_url": "https://api", "api_endpoint": "198.51.100.7"},
    )
    cluster = a_cluster()
    found = status.status_from_order(cluster, order, NOW)
    again = msgspec.structs.replace(cluster, status=found)
    assert status.status_from_order(again, order, LATER) == found
    assert found.state_transition_time == NOW
    assert found.api_url == "https://api"
    assert found.node_sets["compute"].size == 2
    assert found.node_sets["compute"].host_type.id == "bm-small"
    assert [(c.type, c.status) for c in found.conditions] == [
        (ClusterConditionType.READY, ConditionStatus.TRUE)
    ]


def test_the_order_asks_for_what_the_tenant_wants() -> None:
    version = ClusterVersion(spec=ClusterVersionSpec(version="4.17.9", image="image"))
    spec = status.to_order_spec(a_cluster(generation=3), version, {"nodes": "real"})
    assert spec.platform_settings == {"nodes": "real"}
    assert (spec.cluster_name, spec.hub, spec.generation) == ("web", "hub-1", 3)
    assert (spec.version, spec.release_image, spec.pull_secret) == ("4.17.9", "image", "secret")
    assert (spec.pod_cidr, spec.service_cidr) == ("10.128.0.0/14", "")
    assert spec.node_sets["compute"].size == 2


def test_waiting_for_room_keeps_the_time_it_began() -> None:
    cluster = a_cluster(state=ClusterState.READY)
    first = status.make_waiting_status(
        cluster, Placement(), reason="NoCapacity", message="full", now=NOW
    )
    assert first.state == ClusterState.PROGRESSING
    again = status.make_waiting_status(
        msgspec.structs.replace(cluster, status=first),
        Placement(),
        reason="NoCapacity",
        message="full",
        now=LATER,
    )
    assert again == first


def test_the_order_has_the_content_and_the_secrets_of_the_cluster() -> None:
    text = {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "hunter2"}
    cluster = a_cluster()
    spec = msgspec.structs.replace(
        cluster.spec,
        template_digest="sha256:1",
        secret_parameters=encode_secrets({"password": text}),
    )

    made = status.to_order_spec(msgspec.structs.replace(cluster, spec=spec), None, {})

    assert (made.template_digest, made.secret_parameters) == ("sha256:1", ("password",))
    assert decode_secrets(made.secret_values) == {"password": text}
    assert "password" not in made.template_parameters
