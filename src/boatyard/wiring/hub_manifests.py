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

_INSTALLED_FOLDER = Path(__file__).parents[1] / "deploy"  # inside the package, as a wheel has it
_CHECKED_OUT_FOLDER = Path(__file__).parents[3] / "deploy"


def make_hub_access(clients: Clients) -> HubAccess:
    """How to reach hubs, and the CRDs and roles that this version installs on them."""
    return HubAccess(clients=clients, roles=read_shipped_roles(), crds=read_shipped_crds())


@cache
def read_shipped_crds() -> Sequence[Manifest]:
    """Our CustomResourceDefinitions, by name."""
    crds = [
        manifest
        for manifest in _read_manifests("crds")
        if manifest.get("kind") == "CustomResourceDefinition"
    ]
    return tuple(sorted(crds, key=lambda manifest: str(manifest["metadata"]["name"])))


@cache
def read_shipped_roles() -> Roles:
    """The rights that service and operator need on a hub; empty where no manifest is shipped."""
    return Roles(
        service=_read_rights("ClusterRole", SERVICE),
        system=_read_rights("Role", SERVICE),
        discovery=_read_rights("ClusterRole", LOOKING),
        operator=_read_rights("ClusterRole", OPERATOR),
        operator_system=_read_rights("Role", OPERATOR),
        operator_hosted=_read_rights("ClusterRole", OPERATOR_HOSTED),
        operator_eda=_read_rights("Role", OPERATOR_EDA),
        automation=_read_rights("ClusterRole", AUTOMATION),
    )


def _read_rights(kind: str, name: str) -> Rights:
    rules: list[Manifest] = []
    for manifest in _read_manifests("rbac"):
        if manifest.get("kind") == kind and manifest["metadata"]["name"] == name:
            rules += manifest.get("rules") or ()
    return Rights(tuple(rules))


def _read_manifests(folder: str) -> Iterator[dict[str, Any]]:
    root = _INSTALLED_FOLDER if _INSTALLED_FOLDER.is_dir() else _CHECKED_OUT_FOLDER
    for path in sorted((root / folder).glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document:
                yield document
