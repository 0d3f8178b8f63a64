"""Are as many nodes ready as there should be? HyperShift gives them names of its own."""

from __future__ import annotations

from boatyard.checks.drivers.kube.asking import Asking
from boatyard.checks.drivers.kube.nodes import is_ready
from boatyard.kube.kinds import NODES
from boatyard.model.outcome import Done, Outcome, Waiting


async def ask(asking: Asking) -> Outcome:
    listed = await asking.client.list(NODES)
    ready = sum(is_ready(node) for node in listed.items)
    wanted = len(asking.subject.slots)
    if ready < wanted:
        reason = "NodeMissing" if len(listed.items) < wanted else "NodeNotReady"
        return Waiting(f"{ready} of {wanted} nodes are ready.", reason=reason)
    return Done()
