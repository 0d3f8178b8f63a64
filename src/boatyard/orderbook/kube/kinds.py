"""Our own kinds on a Kubernetes hub. Their schemas are in deploy/crds."""

from __future__ import annotations

from boatyard.kube.kinds import Kind

CLUSTER_ORDERS = Kind("osac.openshift.io", "v1alpha1", "clusterorders", "ClusterOrder", True)
CLAIMS = Kind("boatyard.io", "v1", "claims", "Claim", True)
LEFTOVERS = Kind("boatyard.io", "v1", "leftovers", "Leftover", True)
