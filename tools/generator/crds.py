"""Writes the CRDs of a Kubernetes hub: orders, claims, leftovers."""

from dataclasses import dataclass, field
from typing import Any

import yaml

from generator.schemas import Schema, Writer
from generator.source import OURS, Source

ORDERS = "osac.openshift.io"
OWN = "boatyard.io"
HEAD = "# {what} Made by tools/generate.py from proto/; not edited.\n"

Column = tuple[str, str, str]  # name, type, JSON path
AGE: Column = ("Age", "date", ".metadata.creationTimestamp")
NAMED = {
    "rule": "(has(self.nodeSet) && size(self.nodeSet) > 0) || "
    "(has(self.resourceClass) && size(self.resourceClass) > 0)",
    "message": "a node request names its nodeSet or its resourceClass",
}
FROZEN = {
    "rule": "self == oldSelf",
    "message": "a claim is not changed: give it back, take another",
}


@dataclass(frozen=True)
class Crd:
    """One kind: its names, its columns and its two halves."""

    what: str  # one sentence
    group: str
    version: str
    kind: str
    plural: str
    columns: tuple[Column, ...]
    spec: Schema
    status: Schema | None = None
    status_apart: bool = False  # whether the status is written through its own door
    short: tuple[str, ...] = ()
    required: tuple[str, ...] = field(default=("spec",))

    @property
    def file(self) -> str:
        return f"{self.group}_{self.plural}.yaml"


def write(source: Source) -> dict[str, str]:
    """Every CRD by the name of its file."""
    writer = Writer(source, for_crd=True)
    kinds = (_cluster_order(source, writer), _claim(source, writer), _leftover(source, writer))
    return {crd.file: _text(crd) for crd in kinds}


def _cluster_order(source: Source, writer: Writer) -> Crd:
    spec = writer.message(source.messages[f"{OURS}.ClusterOrderSpec"])
    spec["properties"]["nodeRequests"]["items"]["x-kubernetes-validations"] = [NAMED]
    status = writer.message(source.messages[f"{OURS}.ClusterOrderStatus"])
    progress = status["properties"]["boatyard"]
    del progress["properties"]["credentials"]  # they are in a Secret
    # One writer: who owns which of its fields is not worth keeping.
    progress["x-kubernetes-map-type"] = "atomic"
    return Crd(
        what="The ClusterOrder on a Kubernetes hub.",
        group=ORDERS,
        version="v1alpha1",
        kind="ClusterOrder",
        plural="clusterorders",
        short=("cord",),
        columns=(
            ("Template", "string", ".spec.templateID"),
            ("Phase", "string", ".status.phase"),
            ("Cluster", "string", ".spec.boatyard.clusterName"),
            AGE,
        ),
        spec=spec,
        status=status,
        status_apart=True,
    )


def _claim(source: Source, writer: Writer) -> Crd:
    spec = writer.message(source.messages[f"{OURS}.HubClaimSpec"])
    spec["x-kubernetes-validations"] = [FROZEN]
    return Crd(
        what="Who holds which scarce thing of a Kubernetes hub.",
        group=OWN,
        version="v1",
        kind="Claim",
        plural="claims",
        columns=(
            ("Pool", "string", ".spec.pool"),
            ("Item", "string", ".spec.item"),
            ("Owner", "string", ".spec.owner"),
            AGE,
        ),
        spec=spec,
    )


def _leftover(source: Source, writer: Writer) -> Crd:
    return Crd(
        what="What a deletion could not take back in time, on a Kubernetes hub.",
        group=OWN,
        version="v1",
        kind="Leftover",
        plural="leftovers",
        columns=(
            ("Cluster", "string", ".spec.clusterName"),
            ("Tries", "integer", ".status.tries"),
            ("Message", "string", ".status.message"),
            AGE,
        ),
        spec=writer.message(source.messages[f"{OURS}.HubLeftoverSpec"]),
        status=writer.message(source.messages[f"{OURS}.LeftoverStatus"]),
    )


def _text(crd: Crd) -> str:
    halves = {"spec": crd.spec} | ({"status": crd.status} if crd.status else {})
    version: dict[str, Any] = {
        "name": crd.version,
        "served": True,
        "storage": True,
        **({"subresources": {"status": {}}} if crd.status_apart else {}),
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} for name, kind, path in crd.columns
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    **halves,
                },
                "required": list(crd.required),
            }
        },
    }
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{crd.plural}.{crd.group}"},
        "spec": {
            "group": crd.group,
            "names": {
                "kind": crd.kind,
                "listKind": f"{crd.kind}List",
                "plural": crd.plural,
                "singular": crd.kind.lower(),
                **({"shortNames": list(crd.short)} if crd.short else {}),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    head = HEAD.format(what=crd.what)
    return head + yaml.dump(document, sort_keys=False, width=100, Dumper=_Plain)


class _Plain(yaml.SafeDumper):
    """Writes the same part twice rather than an anchor: not every reader follows those."""

    def ignore_aliases(self, data: object) -> bool:
        return True
