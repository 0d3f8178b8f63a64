"""What is said about an order, and to whom."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from boatyard.model.generated.boatyard import (
    Actor,
    Item,
    ItemState,
    Order,
    OrderSpec,
    OrderStatus,
    Receipt,
    ReceiptLine,
    Step,
    StepState,
)
from boatyard.model.generated.osac import (
    Cluster,
    ClusterState,
    ClusterStatus,
    Metadata,
    Placement,
    PlacementCandidate,
)
from boatyard.resources.clusters import status
from boatyard.resources.orders.explain import explain, redact_receipt
from boatyard.resources.orders.redaction import redact_for_tenants
from tests.support.orders import NOW

HUB, HOST, SWITCH, STRANGER = "secret-hub-7", "secret-r1-n7", "secret-sw-r1", "secret-globex"


def a_cluster(**fields: Any) -> Cluster:
    fields.setdefault("state", ClusterState.PROGRESSING)
    return Cluster(
        id="c-1",
        metadata=Metadata(name="web", tenant="acme", creation_timestamp=NOW, generation=1),
        status=ClusterStatus(
            hub=HUB,
            observed_generation=1,
            placement=Placement(
                hub=HUB,
                reason=f"the emptiest of 2 hubs, {HUB}",
                candidates=(
                    PlacementCandidate(hub=HUB, fits=True, reason="62% of its hosts stay free"),
                    PlacementCandidate(hub="secret-hub-8", reason=f"full of {STRANGER}"),
                ),
            ),
            **fields,
        ),
    )


def an_order(*steps: Step, **fields: Any) -> Order:
    host = Item(
        key="host/compute-0",
        kind="host",
        step="hosts",
        slot="compute-0",
        state=ItemState.PRESENT,
        facts={"host": HOST, "switch": SWITCH},
    )
    return Order(
        id="c-1",
        spec=OrderSpec(hub=HUB, cluster_name="web"),
        status=OrderStatus(steps=steps, items=(host,), started_at=NOW, **fields),
    )


def a_step(name: str, state: StepState, **fields: Any) -> Step:
    return Step(name=name, state=state, since=NOW, **fields)


@pytest.mark.parametrize(
    "steps, expected",
    [
        pytest.param([("hosts", "DONE"), ("network", "RUNNING")], "", id="nothing blocks"),
        pytest.param([("hosts", "WAITING"), ("network", "QUEUED")], "hosts", id="one waits"),
        pytest.param(
            [("hosts", "WAITING"), ("network", "WAITING")], "hosts", id="the earliest on the road"
        ),
        pytest.param(
            [("hosts", "WAITING"), ("names", "FAILED")], "names", id="stuck comes before waiting"
        ),
        pytest.param(
            [("install", "WAITING"), ("names", "QUARANTINED")], "names", id="so does quarantine"
        ),
    ],
)
def test_the_one_step_that_blocks(steps: list[tuple[str, str]], expected: str) -> None:
    order = an_order(*(a_step(name, StepState[state]) for name, state in steps))
    told = explain(a_cluster(), order, now=NOW, operator=True)
    assert told.blocked_by == expected
    assert (told.since == NOW) is bool(expected)


def test_all_that_is_needed_to_act_is_there() -> None:
    step = a_step(
        "names",
        StepState.WAITING,
        tries=7,
        next_look=NOW + timedelta(seconds=9),
        actor=Actor.OPERATOR,
        remedy="look at the zone",
        message="the zone does not answer",
    )
    told = explain(a_cluster(), an_order(step), now=NOW, operator=True)
    assert (told.tries, told.actor, told.remedy) == (7, Actor.OPERATOR, "look at the zone")
    assert told.next_look == step.next_look
    assert told.summary == "progressing: names: the zone does not answer"
    assert told.hub == HUB
    assert [(one.hub, one.fits) for one in told.hubs] == [(HUB, True), ("secret-hub-8", False)]


SPILLING = [
    pytest.param(
        a_step("hosts", StepState.FAILED, actor=Actor.TENANT, message=f"no host {HOST!r} on {HUB}"),
        id="a refusal in a driver's words",
    ),
    pytest.param(
        a_step("network", StepState.WAITING, actor=Actor.NOBODY, message=f"{SWITCH}: port busy"),
        id="a wait in a driver's words",
    ),
    pytest.param(
        a_step(
            "names",
            StepState.WAITING,
            actor=Actor.OPERATOR,
            message=f"{STRANGER} holds the zone",
            remedy=f"look at {HUB}",
        ),
        id="a failing back-end",
    ),
    pytest.param(
        a_step("install", StepState.QUARANTINED, actor=Actor.OPERATOR, message="internal error 1"),
        id="a bug",
    ),
]


@pytest.mark.parametrize("step", SPILLING)
def test_a_tenant_learns_nothing_of_hubs_hosts_or_strangers(step: Step) -> None:
    receipt = Receipt(
        gone=(
            ReceiptLine(kind="host", name=HOST, key="host/compute-0"),
            ReceiptLine(kind="node", name="compute-0", key="node/compute-0"),
        ),
        left=(ReceiptLine(kind="l2", name="secret-1107", key="l2"),),
    )
    order = an_order(step, receipt=receipt)
    told = explain(a_cluster(), order, now=NOW, operator=False)
    assert "secret" not in repr(told)
    assert told.blocked_by == step.name
    assert told.summary
    assert len(told.receipt.gone) == 2
    operator = explain(a_cluster(), order, now=NOW, operator=True)
    assert operator.steps == (step,)
    assert operator.receipt == receipt


def test_a_cluster_waiting_for_a_hub_says_so_without_naming_one() -> None:
    cluster = a_cluster()
    waiting = status.make_waiting_status(
        cluster, Placement(), reason="NoCapacity", message="no hub has room", now=NOW
    )
    cluster = msgspec.structs.replace(cluster, status=msgspec.structs.replace(waiting, hub=""))
    told = explain(cluster, None, now=NOW, operator=False)
    assert (told.blocked_by, told.since) == ("placement", NOW)
    assert told.placement == "not placed yet"
    assert told.summary == "progressing: no hub has room"
    assert told.remedy


def test_a_cluster_that_makes_no_progress_for_another_reason_does_not_wait_for_a_hub() -> None:
    cluster = a_cluster()
    waiting = status.make_waiting_status(
        cluster, Placement(), reason="NotReady", message="no", now=NOW
    )
    cluster = msgspec.structs.replace(cluster, status=waiting)
    assert explain(cluster, None, now=NOW, operator=False).blocked_by == ""


def test_a_wish_not_yet_looked_at_is_not_shown_as_fulfilled() -> None:
    cluster = a_cluster(state=ClusterState.READY)
    metadata = msgspec.structs.replace(cluster.metadata, generation=2)
    told = explain(
        msgspec.structs.replace(cluster, metadata=metadata), an_order(), now=NOW, operator=False
    )
    assert told.state == "PROGRESSING"


def test_the_receipt_keeps_its_lines_for_tenants_under_names_of_their_own() -> None:
    receipt = Receipt(
        gone=(
            ReceiptLine(kind="host", name=HOST, key="host/compute-0"),
            ReceiptLine(kind="node", name=HOST, key="node/compute-0"),
            ReceiptLine(kind="binding", name="secret-1107", key="binding"),
            ReceiptLine(kind="l3", name="10.4.16.0/24", key="l3"),
        )
    )
    told = [line.name for line in redact_receipt(receipt, operator=False).gone]
    assert told == ["compute-0", "compute-0", "binding", "10.4.16.0/24"]
    assert redact_receipt(receipt, operator=True) == receipt


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param("", "", id="nothing"),
        pytest.param("the version is unknown", "the version is unknown", id="no name in it"),
        pytest.param(f"hub {HUB} is full", "the hub is full", id="the hub"),
        pytest.param(f"host '{HOST}' is held", "a host is held", id="a host in quotes"),
        pytest.param(f"{HOST}0 is fine", f"{HOST}0 is fine", id="a longer word is another word"),
    ],
)
def test_words_for_tenants(text: str, expected: str) -> None:
    assert redact_for_tenants(text, an_order()) == expected
