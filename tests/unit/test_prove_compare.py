"""What the proof calls a difference, and when it calls a run proven."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.proof.end_state import EndState, _Mask, find_differences
from boatyard.proof.journeys import JourneyResult
from boatyard.proof.verdict import ProofVerdict

STATE = EndState(
    held={"hub-1 host host/compute-0": 1},
    effects={"host host/compute-0": (1, 0)},
    documents={"Cluster": {"status": {"state": "READY"}}},
    story={"Cluster": ["Placed", "Ready"]},
    strays=(),
)


@pytest.mark.parametrize(
    "other, expected",
    [
        pytest.param(STATE, [], id="nothing differs"),
        pytest.param(
            EndState(
                held={**STATE.held, "hub-1 network l2": 1},
                effects=STATE.effects,
                documents=STATE.documents,
                story=STATE.story,
            ),
            ["held/hub-1 network l2: 1 instead of nothing"],
            id="one thing too many",
        ),
        pytest.param(
            EndState(effects=STATE.effects, documents=STATE.documents, story=STATE.story),
            ["held/hub-1 host host/compute-0: nothing instead of 1"],
            id="one thing too few",
        ),
        pytest.param(
            EndState(
                held=STATE.held,
                effects={"host host/compute-0": (2, 1)},
                documents=STATE.documents,
                story=STATE.story,
            ),
            ["effects/host host/compute-0: [2,1] instead of [1,0]"],
            id="made twice",
        ),
        pytest.param(
            EndState(
                held=STATE.held,
                effects=STATE.effects,
                documents={"Cluster": {"status": {"state": "FAILED"}}},
                story=STATE.story,
            ),
            ['documents/Cluster/status/state: "FAILED" instead of "READY"'],
            id="another state",
        ),
    ],
)
def test_every_difference_is_told_whichever_side_has_more(
    other: EndState, expected: list[str]
) -> None:
    assert find_differences(STATE, other) == expected


def _document(id: str, name: str, **status: Any) -> dict[str, Any]:
    return {
        "id": id,
        "metadata": {"name": name, "version": len(id), "creation_timestamp": "2026-01-01T00:00"},
        "status": {"message": f"{name} is at 10.0.0.{len(id)}:6443", **status},
    }


def test_ids_times_addresses_and_numbers_of_tries_may_differ_and_states_may_not() -> None:
    first = _Mask("c-1", "web").mask(_document("c-1", "web", state="READY", tries=1))
    again = _Mask("c-22", "shop").mask(_document("c-22", "shop", state="READY", tries=7))
    failed = _Mask("c-22", "shop").mask(_document("c-22", "shop", state="FAILED", tries=1))

    assert first == again
    assert first != failed


def test_one_difference_in_any_life_and_nothing_is_proven() -> None:
    verdict = ProofVerdict()
    assert verdict.is_proven
    verdict.add_result(JourneyResult(differences=["a host is left"]))
    verdict.add_result(JourneyResult())
    assert not verdict.is_proven
    assert verdict.to_dict()["differences"] == ["a host is left"]
