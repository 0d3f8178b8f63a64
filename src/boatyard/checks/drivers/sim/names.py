"""Do the cluster's names point at its addresses?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.asking import AskTwin, ClusterFacts
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def ask(ask_twin: AskTwin, subject: Subject, seen: ClusterFacts) -> Outcome:
    wanted = (
        (subject.api_name, subject.api_address),
        (subject.ingress_name, subject.ingress_address),
    )
    for name, address in wanted:
        found = await ask_twin("resolve", name=name)
        if not found:
            return Waiting(f"The name {name} is not known.", reason="NameUnknown")
        if found != address:
            return Waiting(f"The name {name} points somewhere else.", reason="NameWrong")
    return Done()
