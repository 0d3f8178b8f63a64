"""Our own kinds on a Kubernetes hub. Their schemas are in deploy/crds."""

from __future__ import annotations

from boatyard.kube.kinds import KubeKind

CLUSTER_ORDERS = KubeKind("osac.openshift.io", "v1alpha1", "clusterorders", "ClusterOrder", True)
CLAIMS = KubeKind("boatyard.io", "v1", "claims", "Claim", True)
LEFTOVERS = KubeKind("boatyard.io", "v1", "leftovers", "Leftover", True)
