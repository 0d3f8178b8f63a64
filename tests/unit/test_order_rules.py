"""What a pass makes of an order's status: phase, conditions, receipt, next look."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from boatyard.model.generated.boatyard import (
    Credentials,
    Item,
    ItemState,
    Order,
    OrderPhase,
    Step,
    StepState,
)
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.port import ClusterAccess, ObservedCluster, ObservedNode
from boatyard.resources.orders import rules
from boatyard.resources.orders.attempts import Attempt, AttemptFailure, AttemptFault
from tests.support.orders import NOW, an_order, being_deleted, planned, present, settled

LATER = NOW + timedelta(minutes=10)
HEALTHY = ObservedCluster(
    exists=True, available=True, nodes=(ObservedNode("compute-0", "compute", ready=True),)
)
ACCESS = ClusterAccess("https://api", "https://console", "kubeconfig", "kubeadmin", "secret")


def absorbed(
    order: Order,
    *attempts: Attempt,
    items: tuple[Item, ...] | None = None,
    seen: ObservedCluster | None = None,
    access: ClusterAccess | None = None,
    unfinished: bool = False,
) -> rules.OrderUpdate:
    return rules.absorb(
        order,
        items=order.status.items if items is None else items,
        attempts=attempts,
        observation=seen,
        access=access,
        unfinished=unfinished,
        now=NOW,
    )


def tried(order: Order, key: str, answer: Done | Waiting | AttemptFailure) -> Attempt:
    item = next(item for item in order.status.items if item.key == key)
    return Attempt(item=item, released=item.state == ItemState.LEAVING, result=answer)


REFUSAL = AttemptFailure(AttemptFault.REFUSED, "NoSuchVersion", "there is no such version")
NO_ANSWER = AttemptFailure(AttemptFault.UNAVAILABLE, "Unavailable", "no answer")
MAKING = planned(an_order())
READY = settled(an_order())
GOING = planned(being_deleted(READY, delete_by=LATER))
GONE = msgspec.structs.replace(
    GOING, status=msgspec.structs.replace(GOING.status, items=(), steps=())
)
WITHOUT_ACCESS = msgspec.structs.replace(
    READY, status=msgspec.structs.replace(READY.status, credentials=Credentials())
)


TWO_SETS = settled(an_order(sizes={"compute": 1, "gpus": 2}))


def two_sets_seen(*slots: str) -> ObservedCluster:
    nodes = tuple(ObservedNode(slot, slot.partition("-")[0], ready=True) for slot in slots)
    return ObservedCluster(exists=True, available=True, nodes=nodes)


@pytest.mark.parametrize(
    "order, attempt, seen, expected",
    [
        pytest.param(MAKING, None, None, OrderPhase.PROGRESSING, id="being made"),
        pytest.param(
            MAKING,
            tried(MAKING, "l2", REFUSAL),
            None,
            OrderPhase.FAILED,
            id="refused",
        ),
        pytest.param(
            MAKING,
            tried(MAKING, "l2", NO_ANSWER),
            None,
            OrderPhase.PROGRESSING,
            id="no answer is no failure",
        ),
        pytest.param(READY, None, HEALTHY, OrderPhase.READY, id="all made and healthy"),
        pytest.param(
            WITHOUT_ACCESS,
            None,
            HEALTHY,
            OrderPhase.PROGRESSING,
            id="healthy, but nobody could use it yet",
        ),
        pytest.param(
            READY,
            None,
            ObservedCluster(exists=True, available=True, degraded=True, nodes=HEALTHY.nodes),
            OrderPhase.DEGRADED,
            id="the platform says degraded",
        ),
        pytest.param(
            READY,
            None,
            ObservedCluster(exists=True, available=True),
            OrderPhase.DEGRADED,
            id="a node is missing",
        ),
        pytest.param(
            TWO_SETS,
            None,
            two_sets_seen("compute-0", "gpus-0", "gpus-1"),
            OrderPhase.READY,
            id="two node sets, both complete",
        ),
        pytest.param(
            TWO_SETS,
            None,
            two_sets_seen("compute-0", "gpus-0"),
            OrderPhase.DEGRADED,
            id="two node sets, the second short of a node",
        ),
        pytest.param(
            TWO_SETS,
            None,
            two_sets_seen("gpus-0", "gpus-1", "gpus-2"),
            OrderPhase.DEGRADED,
            id="two node sets, the first short although there are nodes enough",
        ),
        pytest.param(
            READY, None, ObservedCluster(exists=False), OrderPhase.DEGRADED, id="it is gone"
        ),
        pytest.param(GOING, None, None, OrderPhase.DELETING, id="things are left to release"),
        pytest.param(GONE, None, None, OrderPhase.DELETED, id="nothing is left"),
        pytest.param(
            GOING,
            tried(GOING, "l2", REFUSAL),
            None,
            OrderPhase.DELETING,
            id="a refusal does not stop a deletion",
        ),
    ],
)
def test_phase(
    order: Order, attempt: Attempt | None, seen: ObservedCluster | None, expected: OrderPhase
) -> None:
    found = absorbed(order, *([attempt] if attempt else []), seen=seen)
    assert found.status.phase == expected


def test_not_being_able_to_look_changes_nothing() -> None:
    ready = msgspec.structs.replace(READY, status=absorbed(READY, seen=HEALTHY).status)
    assert ready.status.phase == OrderPhase.READY
    assert absorbed(ready, seen=None).status == ready.status


def test_the_same_pass_again_changes_nothing() -> None:
    ready = msgspec.structs.replace(READY, status=absorbed(READY, seen=HEALTHY).status)
    assert absorbed(ready, seen=HEALTHY).status == ready.status


def test_a_condition_keeps_its_time_until_it_turns() -> None:
    first = absorbed(READY, seen=HEALTHY).status
    order = msgspec.structs.replace(READY, status=first)
    then = rules.absorb(
        order,
        items=order.status.items,
        attempts=(),
        observation=ObservedCluster(exists=True, available=True, degraded=True, message="ill"),
        access=None,
        unfinished=False,
        now=LATER,
    ).status
    before = {c.type: c for c in first.conditions}
    after = {c.type: c for c in then.conditions}
    turned = {name for name in after if before[name].status != after[name].status}
    assert turned == {"Ready", "Degraded", "NodesReady"}
    for name, condition in after.items():
        expected = LATER if name in turned else NOW
        assert condition.last_transition_time == expected, name
    assert after["Degraded"].message == "ill"


def test_every_condition_has_a_reason_for_machines() -> None:
    for order, seen in ((MAKING, None), (READY, HEALTHY), (GOING, None), (GONE, None)):
        for condition in absorbed(order, seen=seen).status.conditions:
            assert condition.reason.isalnum(), condition


def test_why_it_failed_stands_in_the_condition() -> None:
    status = absorbed(MAKING, tried(MAKING, "l2", REFUSAL)).status
    failed = next(c for c in status.conditions if c.type == "Failed")
    assert (failed.status, failed.reason, failed.message) == (
        True,
        "NoSuchVersion",
        "there is no such version",
    )


def test_access_and_endpoints_become_facts_and_secrets_do_not() -> None:
    items = tuple(
        present(item, address="198.51.100.7") if item.key == "api-address" else present(item)
        for item in MAKING.status.items
    )
    status = absorbed(MAKING, items=items, seen=HEALTHY, access=ACCESS).status
    assert status.phase == OrderPhase.READY
    assert status.facts == {
        "api_url": "https://api",
        "console_url": "https://console",
        "api_endpoint": "198.51.100.7",
    }
    assert status.credentials.kubeconfig == "kubeconfig"
    assert "secret" not in repr(rules.select_cluster_fields(status))


def _next_looks() -> list[object]:
    return [
        pytest.param(absorbed(MAKING), id="just planned"),
        pytest.param(absorbed(MAKING, tried(MAKING, "l2", Waiting("x", 7))), id="waiting"),
        pytest.param(absorbed(MAKING, tried(MAKING, "l2", NO_ANSWER)), id="no answer"),
        pytest.param(absorbed(MAKING, tried(MAKING, "l2", REFUSAL)), id="refused"),
        pytest.param(absorbed(READY, seen=HEALTHY), id="ready"),
        pytest.param(absorbed(WITHOUT_ACCESS, seen=HEALTHY), id="no access yet"),
        pytest.param(absorbed(READY, seen=None), id="could not look"),
        pytest.param(absorbed(GOING), id="going"),
        pytest.param(absorbed(GOING, tried(GOING, "l2", REFUSAL)), id="going, refused"),
        pytest.param(rules.quarantine(MAKING, NOW), id="set aside"),
        pytest.param(rules.quarantine(GOING, NOW), id="going, set aside"),
    ]


@pytest.mark.parametrize("found", _next_looks())
def test_an_order_always_has_a_next_look_and_never_at_once_without_cause(
    found: rules.OrderUpdate,
) -> None:
    assert found.look_again is not None
    assert NOW < found.look_again <= NOW + timedelta(minutes=10)


def test_an_order_that_has_ended_is_not_looked_at_again() -> None:
    assert absorbed(GONE).look_again is None


def test_more_to_do_is_done_at_once() -> None:
    assert absorbed(MAKING, unfinished=True).look_again == NOW


def test_a_deletion_is_looked_at_when_its_time_is_up() -> None:
    order = planned(being_deleted(READY, delete_by=NOW + timedelta(seconds=3)))
    found = absorbed(order, tried(order, "l2", Waiting("x", 60)))
    assert found.look_again == NOW + timedelta(seconds=3)


def test_the_receipt_grows_by_what_is_gone_and_frees_its_claims() -> None:
    items = tuple(item for item in GOING.status.items if item.kind not in ("check", "node"))
    found = absorbed(GOING, items=items)
    assert [line.key for line in found.status.receipt.gone] == ["node/compute-0"]
    assert "node/compute-0" in found.freed_keys
    assert found.status.receipt.requested_at == NOW
    assert found.status.receipt.finished_at is None

    rest = msgspec.structs.replace(GOING, status=found.status)
    end = absorbed(rest, items=()).status
    kinds = [line.kind for line in end.receipt.gone]
    assert kinds[0] == "node"
    assert len(kinds) == len(set(kinds)) == 11
    assert "check" not in kinds, "a question leaves nothing that could be gone"
    assert end.receipt.finished_at == NOW


def test_abandoning_lists_what_is_left_and_hands_it_to_a_leftover() -> None:
    host = next(item for item in GOING.status.items if item.kind == "host")
    host = msgspec.structs.replace(host, facts={"host": "r1-n7"})
    status, leftover = rules.abandon(GOING, (host,), NOW)
    assert status.phase == OrderPhase.DELETED
    assert [(line.kind, line.name) for line in status.receipt.left] == [("host", "r1-n7")]
    assert status.receipt.leftover == leftover.id == "o-1"
    assert leftover.status.items == (host,)
    assert len(status.receipt.gone) == 10
    assert (leftover.spec.hub, leftover.metadata.tenant) == ("hub-1", "acme")


@pytest.mark.parametrize(
    "answer, expected",
    [
        pytest.param(Waiting("x"), ItemState.PLANNED, id="not yet: as it was"),
        pytest.param(NO_ANSWER, ItemState.PLANNED, id="failed: as it was"),
        pytest.param(Done({"vlan": "7"}), ItemState.PRESENT, id="confirmed"),
    ],
)
def test_confirmed(answer: Done | Waiting | AttemptFailure, expected: ItemState) -> None:
    item = next(item for item in MAKING.status.items if item.key == "cluster")
    found = rules.apply_attempt(item, Attempt(item=item, released=False, result=answer))
    assert found is not None
    assert found.state == expected
    if isinstance(answer, Done):
        assert found.have == found.want
        assert found.facts["vlan"] == "7"


def test_a_confirmed_release_is_gone() -> None:
    item = GOING.status.items[0]
    assert rules.apply_attempt(item, Attempt(item=item, released=True, result=Done())) is None


def test_a_retry_frees_every_step_and_is_counted() -> None:
    failed = absorbed(MAKING, tried(MAKING, "l2", REFUSAL)).status
    order = rules.retry(msgspec.structs.replace(MAKING, status=failed), NOW)
    assert order.status.retried == 1
    assert order.status.phase == OrderPhase.PROGRESSING
    assert not [step for step in order.status.steps if step.state == StepState.FAILED]


@pytest.mark.parametrize("deleting", [False, True])
def test_a_new_plan_forgets_the_waits_of_the_old_one(deleting: bool) -> None:
    """A wait without words would be taken for the step that blocks."""
    waiting = absorbed(MAKING, tried(MAKING, "l2", Waiting("x", 7))).status
    order = msgspec.structs.replace(MAKING, status=waiting)
    if deleting:
        order = being_deleted(order)
    status = rules.make_planned_status(order, planned(order).status.items, NOW)
    assert not [step for step in status.steps if step.state == StepState.WAITING]


def test_whoever_kills_workers_is_set_aside_also_before_its_first_step() -> None:
    status = rules.make_planned_status(MAKING, MAKING.status.items, NOW)
    order = msgspec.structs.replace(MAKING, status=status)
    found = rules.quarantine(order, NOW).status
    assert {step.state for step in found.steps} == {StepState.QUARANTINED}
    assert found.phase == OrderPhase.FAILED


def test_setting_aside_keeps_what_is_done() -> None:
    done = Step(name="hosts", state=StepState.DONE)
    order = msgspec.structs.replace(
        READY, status=msgspec.structs.replace(READY.status, steps=(done,))
    )
    assert rules.quarantine(order, NOW).status.steps == (done,)
