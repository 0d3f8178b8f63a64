"""Are all the nodes there, and ready?"""

from __future__ import annotations

from typing import Any

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.kube.kinds import NODES
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_nodes(context: CheckContext) -> Outcome:
    listed = await context.client.list(NODES)
    nodes = {node["metadata"]["name"]: node for node in listed.items}
    for slot in context.subject.slots:
        if slot not in nodes:
            return Waiting(f"Node {slot} is not there.", reason="NodeMissing")
        if not is_node_ready(nodes[slot]):
            return Waiting(f"Node {slot} is not ready.", reason="NodeNotReady")
    return Done()


def is_node_ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )
