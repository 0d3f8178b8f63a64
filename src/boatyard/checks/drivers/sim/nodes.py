"""Are all the nodes there, and ready?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_nodes(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    nodes = {node["slot"]: node for node in facts.get("nodes", ())}
    for slot in subject.slots:
        if slot not in nodes:
            return Waiting(f"Node {slot} is not there.", reason="NodeMissing")
        if not nodes[slot]["ready"]:
            return Waiting(f"Node {slot} is not ready.", reason="NodeNotReady")
    return Done()
