"""Does the cluster's API answer?

The API reports the version of Kubernetes, not the release that was ordered; the platform driver reports the release.
"""

from __future__ import annotations

from boatyard.checks.drivers.kube.api import ask_version
from boatyard.checks.drivers.kube.asking import Asking
from boatyard.model.outcome import Done, Outcome, Waiting


async def ask(context: Asking) -> Outcome:
    answer = await ask_version(context)
    return answer if isinstance(answer, Waiting) else Done()
