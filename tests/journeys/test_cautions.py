"""What an operator should know of a hub that works: told by its condition and by a check."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import HubFindingResult
from boatyard.model.generated.osac import ConditionStatus, Hub, HubState
from boatyard.resources.hubs.check.report import make_report
from boatyard.resources.hubs.check.run import check_hub
from tests.support.simulated.environment import SimulatedEnvironment

pytestmark = pytest.mark.forms("embedded")  # where the worker runs roles itself

HUB = "hub-2"
WORDS = "runs of roles are not set apart on their machine"


async def looked_at(environment: SimulatedEnvironment) -> Hub:
    await environment.change_hub(HUB)
    await environment.run(within=timedelta(minutes=5))
    hub = await environment.ledger.documents.get(Hub, HUB)
    assert hub is not None
    return hub


async def test_roles_that_are_not_set_apart_are_a_caution_and_no_failure(
    environment: SimulatedEnvironment,
) -> None:
    environment.roles.warning = WORDS
    hub = await looked_at(environment)

    looked = await check_hub(hub, None, environment.clock.now())  # type: ignore[arg-type] # an embedded hub is not asked
    told = make_report(hub, "", looked.findings)

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

    environment.roles.warning = ""
    hub = await looked_at(environment)
    assert [one.message for one in hub.status.conditions] == [""]
