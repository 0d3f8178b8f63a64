"""Does a small workload run on the cluster, and can it be reached from outside?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_workload(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    ready = any(node["ready"] for node in facts.get("nodes", ()))
    if subject.slots and not ready:
        return Waiting("No node could run the test workload.", reason="WorkloadNotRunning")
    if await ask_twin("reach", address=subject.ingress_address) != "ingress":
        return Waiting("The test workload cannot be reached.", reason="WorkloadNotReachable")
    return Done()
