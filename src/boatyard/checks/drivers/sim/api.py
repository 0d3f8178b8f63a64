"""Does the cluster's API answer at its address?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_api(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    if await ask_twin("reach", address=subject.api_address) != "api":
        return Waiting("The address of the API leads nowhere.", reason="ApiNotReachable")
    if not facts["exists"] or not facts["available"]:
        return Waiting("The API does not answer.", reason="ApiNotAvailable")
    return Done()
