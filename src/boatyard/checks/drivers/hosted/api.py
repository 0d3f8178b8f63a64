"""Does the cluster's API answer?

It tells the version of Kubernetes, not the release that was ordered: which release runs is the platform's to say.
"""

from __future__ import annotations

from boatyard.checks.drivers.kube.api import ask_version
from boatyard.checks.drivers.kube.asking import Asking
from boatyard.model.outcome import Done, Outcome, Waiting


async def ask(context: Asking) -> Outcome:
    answer = await ask_version(context)
    return answer if isinstance(answer, Waiting) else Done()
