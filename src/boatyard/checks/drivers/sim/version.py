"""Does the cluster run the version that was asked for?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_version(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    if not facts["exists"] or facts["version"] != subject.version:
        return Waiting(
            f"The cluster does not run version {subject.version}.", reason="VersionWrong"
        )
    return Done()
