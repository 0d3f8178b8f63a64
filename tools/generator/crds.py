"""Writes the CRDs of a Kubernetes hub."""

import yaml

from generator.schemas import Writer
from generator.source import OURS, Source

GROUP = "osac.openshift.io"
HEAD = (
    "# The ClusterOrder on a Kubernetes hub. Made by tools/generate.py from proto/; not edited.\n"
)


def write_cluster_order(source: Source) -> str:
    writer = Writer(source, for_crd=True)
    spec = writer.message(source.messages[f"{OURS}.ClusterOrderSpec"])
    status = writer.message(source.messages[f"{OURS}.ClusterOrderStatus"])
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Template", "type": "string", "jsonPath": ".spec.templateID"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": spec,
                    "status": status,
                },
            }
        },
    }
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"clusterorders.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": "ClusterOrder",
                "listKind": "ClusterOrderList",
                "plural": "clusterorders",
                "singular": "clusterorder",
                "shortNames": ["cord"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    return HEAD + yaml.dump(document, sort_keys=False, width=100, Dumper=_Plain)


class _Plain(yaml.SafeDumper):
    """Writes the same part twice rather than an anchor: not every reader follows those."""

    def ignore_aliases(self, data: object) -> bool:
        return True
