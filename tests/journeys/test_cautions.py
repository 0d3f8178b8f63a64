"""What an operator should know of a hub that works: told by its condition and by a check."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import HubFindingResult
from boatyard.model.generated.osac import ConditionStatus, Hub, HubState
from boatyard.resources.hubs.check.report import report
from boatyard.resources.hubs.check.run import check
from tests.support.yard import Yard

pytestmark = pytest.mark.forms("embedded")  # where the worker runs roles itself

HUB = "hub-2"
WORDS = "runs of roles are not set apart on their machine"


async def looked_at(yard: Yard) -> Hub:
    await yard.change_hub(HUB)
    await yard.run(within=timedelta(minutes=5))
    hub = await yard.ledger.documents.get(Hub, HUB)
    assert hub is not None
    return hub


async def test_roles_that_are_not_set_apart_are_a_caution_and_no_failure(yard: Yard) -> None:
    yard.roles.warning = WORDS
    hub = await looked_at(yard)

    looked = await check(hub, None, yard.clock.now())  # type: ignore[arg-type] # an embedded hub is not asked
    told = report(hub, "", looked.findings)

    assert hub.status.state == HubState.READY
    assert [(one.status, one.message) for one in hub.status.conditions] == [
        (ConditionStatus.TRUE, WORDS)
    ]
    assert told.ready
    assert [(one.check, one.result) for one in told.findings] == [
        ("drivers", HubFindingResult.PASSED),
        ("roles", HubFindingResult.WARNED),
    ]
    assert told.findings[1].message == WORDS

    yard.roles.warning = ""
    hub = await looked_at(yard)
    assert [one.message for one in hub.status.conditions] == [""]
