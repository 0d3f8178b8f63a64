"""Does the cluster's API answer?

The API reports the version of Kubernetes, not the release that was ordered; the platform driver reports the release.
"""

from __future__ import annotations

from boatyard.checks.drivers.kube.api import read_version
from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_api(context: CheckContext) -> Outcome:
    answer = await read_version(context)
    return answer if isinstance(answer, Waiting) else Done()
