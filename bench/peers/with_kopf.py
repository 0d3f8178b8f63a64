"""The same with kopf, as its documentation has it: an event handler that patches the status. Run by operators.py."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False  # no Kubernetes events: ours tells none of these either
    settings.scanning.disabled = True
    settings.peering.standalone = True


@kopf.on.event("osac.openshift.io", "v1alpha1", "clusterorders")
def copy(spec: kopf.Spec, status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    wanted = spec.get("boatyard", {}).get("generation")
    if (status.get("boatyard") or {}).get("observedGeneration") != wanted:
        patch.status["phase"] = "Ready"
        patch.status["boatyard"] = {
            "phase": "ORDER_PHASE_READY",
            "observedGeneration": wanted,
        }
