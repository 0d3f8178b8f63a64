"""The variables that a role made for OSAC reads, such as the order as a ClusterOrder. Called by `planning`.

OSAC's own playbooks set these before they call the role. Values that only an OSAC hub has, such as the namespace of
the cluster, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boatyard.automation.port import RunSpec
from boatyard.model import hub_names
from boatyard.roles.role import OSAC_FILES, TEMPLATE_FILES


def is_for_osac(role: Path) -> bool:
    """Whether the role has OSAC's metadata and not ours, which would take precedence."""
    has_own_template = any((role / name).is_file() for name in TEMPLATE_FILES)
    return not has_own_template and any((role / name).is_file() for name in OSAC_FILES)


def variables(spec: RunSpec) -> Mapping[str, object]:
    """The variables in addition to `template_parameters`. A parameter of the same name takes precedence."""
    order = to_cluster_order(spec)
    return {
        "cluster_order": order,
        "cluster_order_name": order["metadata"]["name"],
        "template_id": spec.template,
        "node_requests": order["spec"]["nodeRequests"],
    }


def to_cluster_order(spec: RunSpec) -> dict[str, Any]:
    """The order as an OSAC ClusterOrder. It contains no secrets: a role may print it."""
    order: Mapping[str, Any] = spec.order
    id_ = str(order.get("id", ""))
    return {
        "apiVersion": "osac.openshift.io/v1alpha1",
        "kind": "ClusterOrder",
        "metadata": {
            "name": hub_names.order_name(id_) if id_ else "",
            "labels": dict(order.get("labels", {})),
            "annotations": dict(order.get("annotations", {})),
        },
        "spec": {
            "templateID": spec.template,
            "templateParameters": json.dumps(dict(spec.values)),
            "nodeRequests": [
                {
                    "nodeSet": name,
                    "resourceClass": node_set["host_type"],
                    "numberOfNodes": node_set["size"],
                }
                for name, node_set in sorted(dict(order.get("node_sets", {})).items())
            ],
        },
    }
