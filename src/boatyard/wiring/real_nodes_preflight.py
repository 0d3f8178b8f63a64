"""Asks the keeper whether real nodes can be had before an order for them is stored. Called by the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boatyard.model.errors import Refused, Unavailable, Violation
from boatyard.model.generated.osac import Cluster, ClusterTemplate
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.platforms.drivers.local.server import REAL_NODES_OFF, REAL_NODES_REMEDY
from boatyard.resources.admission_context import AdmissionContext
from boatyard.wiring.seed_local_catalogue import HUB_LABELS

NODES_PARAMETER = "nodes"  # the tenant's parameter, and the template's setting for the platform
_CALL_SECONDS = 5.0


class RealNodesPreflight:
    """Refuses orders for real nodes that cannot be had.

    When no keeper answers the order is admitted: the keeper checks again before it creates anything.
    """

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def __call__(self, document: Any, context: AdmissionContext) -> None:
        if not isinstance(document, Cluster) or not _is_local(document):
            return
        field_path = _find_real_nodes_field(document, context)
        if not field_path or not self._socket.exists():
            return
        client = KeeperClient(self._socket, timeout=_CALL_SECONDS)
        try:
            answer = await client.call("keeper.real_nodes")
        except Unavailable:
            return
        finally:
            await client.close()
        if not answer["allowed"]:
            raise Refused(
                "", Violation(field_path, REAL_NODES_OFF, REAL_NODES_REMEDY), reason="RealNodesOff"
            )
        if answer["missing"]:
            message = f"real nodes cannot be had here: {'; '.join(answer['missing'])}"
            raise Refused("", Violation(field_path, message), reason="NoRealNodes")


def _is_local(cluster: Cluster) -> bool:
    return HUB_LABELS.items() <= dict(cluster.spec.hub_labels).items()


def _find_real_nodes_field(cluster: Cluster, context: AdmissionContext) -> str:
    """The path of the field that asks for real nodes, or "". The tenant's parameter wins over the template."""
    parameter = cluster.spec.template_parameters.get(NODES_PARAMETER)
    if parameter is not None and parameter.get("value"):
        return f"spec.template_parameters.{NODES_PARAMETER}" if parameter["value"] == "real" else ""
    template = context.get(ClusterTemplate, cluster.spec.template.id)
    template_nodes = template.platform_settings.get(NODES_PARAMETER) if template is not None else ""
    return "spec.template" if template_nodes == "real" else ""
