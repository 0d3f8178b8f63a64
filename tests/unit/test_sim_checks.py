"""What the simulated checks say of nodes, each question by itself: the others may notice the same."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.checks.drivers.sim import nodes
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Waiting

SUBJECT = Subject("o/cluster", "api", "10.0.0.1", "apps", "10.0.0.2", ("a-0", "a-1"), "4.17.1")


@pytest.mark.parametrize(
    "ready, reason",
    [
        pytest.param({"a-0": True, "a-1": True}, None, id="all ready"),
        pytest.param({"a-0": True, "a-1": False}, "NodeNotReady", id="one not ready"),
        pytest.param({"a-0": True}, "NodeMissing", id="one missing"),
        pytest.param({}, "NodeMissing", id="none"),
        pytest.param({"a-0": True, "a-1": True, "b-0": False}, None, id="another's does not count"),
    ],
)
async def test_every_node_that_should_be_there_is_there_and_ready(
    ready: dict[str, bool], reason: str | None
) -> None:
    async def ask_twin(verb: str, **arguments: Any) -> Any:
        raise AssertionError("nothing else is asked")

    seen: Any = {"nodes": [{"slot": slot, "ready": is_ready} for slot, is_ready in ready.items()]}
    answer = await nodes.check_nodes(ask_twin, SUBJECT, seen)

    if reason is None:
        assert answer == Done()
    else:
        assert isinstance(answer, Waiting)
        assert answer.reason == reason
