"""Do the cluster's names point at its addresses?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_names(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    expected_addresses = (
        (subject.api_name, subject.api_address),
        (subject.ingress_name, subject.ingress_address),
    )
    for name, address in expected_addresses:
        resolved_address = await ask_twin("resolve", name=name)
        if not resolved_address:
            return Waiting(f"The name {name} is not known.", reason="NameUnknown")
        if resolved_address != address:
            return Waiting(f"The name {name} points somewhere else.", reason="NameWrong")
    return Done()
