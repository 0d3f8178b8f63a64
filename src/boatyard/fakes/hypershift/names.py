"""Names of labels and annotations of HyperShift, Cluster API and the assisted service, and a few of the fake's own."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as it is on the wire."""

# --- HyperShift ---
FINALIZER = "hypershift.openshift.io/finalizer"
NODE_POOL = "hypershift.openshift.io/nodePool"  # on a Machine: namespace/name of its pool
HOSTED_LABEL = (
    "hypershift.openshift.io/hosted-control-plane"  # label of a control plane's namespace
)
SYSTEM_NAMESPACE = "hypershift"  # the namespace HyperShift itself lives in
SUPPORTED_VERSIONS = "supported-versions"

# --- Cluster API ---
MACHINE_FINALIZER = "machine.cluster.x-k8s.io"
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
AGENT_HOOK = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/agentmachine"

# --- assisted service ---
AGENT_MACHINE = "agentMachineRef"  # label of a bound Agent: the uid of its machine
AGENT_MACHINE_NAMESPACE = "agentMachineRefNamespace"
AGENT_DEPLOYMENT = "agent-install.openshift.io/clusterdeployment-namespace"

# --- the fake's own ---
FAULT_ANNOTATION = "player.boatyard.io/fault"
CLUSTER_UID_LABEL = "player.boatyard.io/cluster"  # label of the Secrets that the fake creates
MACHINE_NUMBER = "player.boatyard.io/machine-number"
LAST_MACHINE_NUMBER = "player.boatyard.io/last-machine-number"
UPDATING_SINCE = "player.boatyard.io/updating-since"
SERVER_ANNOTATION = "player.boatyard.io/server"  # of a kubeconfig Secret


def control_plane_namespace(namespace: str, name: str) -> str:
    return f"{namespace}-{name.replace('.', '-')}"


def kubeconfig_secret(cluster: str) -> str:
    return f"{cluster}-admin-kubeconfig"


def password_secret(cluster: str) -> str:
    return f"{cluster}-kubeadmin-password"
