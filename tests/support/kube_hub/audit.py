"""What a service account asked of an API server, from the server's own audit log, and which of its rights it used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.control_plane import ControlPlane

Right = tuple[str, str, str]  # group, resource (with subresource), verb
_LOG = "audit.log"
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


def audit_flags(plane: ControlPlane) -> Sequence[str]:
    """Makes an API server write down what service accounts ask for."""
    policy = plane.folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={plane.folder / _LOG}"]


class Audit:
    """The lines about one service account, as `namespace:name`."""

    def __init__(self, plane: ControlPlane, account: str) -> None:
        self._path: Path = plane.folder / _LOG
        self._user = f"system:serviceaccount:{account}"

    def entries(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        lines = [json.loads(line) for line in self._path.read_text().splitlines() if line]
        return [line for line in lines if line["user"]["username"] == self._user]

    def refused(self) -> list[str]:
        return [
            f"{line['verb']} {line['requestURI']}"
            for line in self.entries()
            if (line.get("annotations") or {}).get("authorization.k8s.io/decision") == "forbid"
        ]

    def used(self) -> set[Right]:
        found: set[Right] = set()
        for line in self.entries():
            if "objectRef" in line:
                group, resource, verb = _right(line)
                found.add((group, resource, verb))
                if verb == "patch" and (line.get("responseStatus") or {}).get("code") == 201:
                    found.add((group, resource, "create"))  # an apply that makes needs both
        return found


def rights_of(manifests: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Every single right that roles grant."""
    found: set[Right] = set()
    for manifest in manifests:
        for rule in manifest.get("rules") or ():
            found |= {
                (group, resource, verb)
                for group in rule.get("apiGroups") or ()
                for resource in rule.get("resources") or ()
                for verb in rule["verbs"]
            }
    return found


def _right(line: Mapping[str, Any]) -> Right:
    about = line["objectRef"]
    resource = about["resource"]
    if about.get("subresource"):
        resource += f"/{about['subresource']}"
    return about.get("apiGroup", ""), resource, line["verb"]
