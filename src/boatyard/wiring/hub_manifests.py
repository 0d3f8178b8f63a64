"""Reads the manifests for hubs from `deploy/`: CRDs and RBAC roles. Called by the wiring of reconcilers and API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from boatyard.resources.hubs.access import Clients, HubAccess
from boatyard.resources.hubs.check.model import Manifest, Rights, Roles

SERVICE, LOOKING = "boatyard-service", "boatyard-service-looking"
OPERATOR, OPERATOR_HOSTED = "boatyard-operator", "boatyard-operator-hosted"
OPERATOR_EDA, AUTOMATION = "boatyard-operator-eda", "boatyard-automation"

_INSTALLED = Path(__file__).parents[1] / "deploy"  # inside the package, as a wheel has it
_CHECKED_OUT = Path(__file__).parents[3] / "deploy"


def hub_access(clients: Clients) -> HubAccess:
    """How to reach hubs, and the CRDs and roles that this version installs on them."""
    return HubAccess(clients=clients, roles=shipped_roles(), crds=shipped_crds())


@cache
def shipped_crds() -> Sequence[Manifest]:
    """Our CustomResourceDefinitions, by name."""
    crds = [
        manifest
        for manifest in _documents("crds")
        if manifest.get("kind") == "CustomResourceDefinition"
    ]
    return tuple(sorted(crds, key=lambda manifest: str(manifest["metadata"]["name"])))


@cache
def shipped_roles() -> Roles:
    """The rights that service and operator need on a hub; empty where no manifest is shipped."""
    return Roles(
        service=_rights("ClusterRole", SERVICE),
        system=_rights("Role", SERVICE),
        looking=_rights("ClusterRole", LOOKING),
        operator=_rights("ClusterRole", OPERATOR),
        operator_system=_rights("Role", OPERATOR),
        operator_hosted=_rights("ClusterRole", OPERATOR_HOSTED),
        operator_eda=_rights("Role", OPERATOR_EDA),
        automation=_rights("ClusterRole", AUTOMATION),
    )


def _rights(kind: str, name: str) -> Rights:
    rules: list[Manifest] = []
    for manifest in _documents("rbac"):
        if manifest.get("kind") == kind and manifest["metadata"]["name"] == name:
            rules += manifest.get("rules") or ()
    return Rights(tuple(rules))


def _documents(folder: str) -> Iterator[dict[str, Any]]:
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKED_OUT
    for path in sorted((root / folder).glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document:
                yield document
