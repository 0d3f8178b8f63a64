"""Are as many nodes ready as there should be? HyperShift gives them names of its own."""

from __future__ import annotations

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.checks.drivers.kube.nodes import is_node_ready
from boatyard.kube.kinds import NODES
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_nodes(context: CheckContext) -> Outcome:
    listed = await context.client.list(NODES)
    ready = sum(is_node_ready(node) for node in listed.items)
    expected = len(context.subject.slots)
    if ready < expected:
        reason = "NodeMissing" if len(listed.items) < expected else "NodeNotReady"
        return Waiting(f"{ready} of {expected} nodes are ready.", reason=reason)
    return Done()
