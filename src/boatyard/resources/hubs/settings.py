"""Settings of a hub: how it is reached, and which namespaces and names we use on it. Pure."""

from __future__ import annotations

from boatyard.model.generated.osac import Hub

# A context of the kubeconfig other than the current one.
CONTEXT_SETTING = "kube.context"
# "true": an address without TLS or an unverified server certificate is accepted.
INSECURE_SETTING = "kube.insecure"
# One namespace for the orders of all tenants instead of one for each.
ORDERS_NAMESPACE_SETTING = "kube.namespace"
# The Lease of the operator; "none" when orders are carried out by somebody else's.
OPERATOR_LEASE_SETTING = "kube.operator-lease"

NO_LEASE = "none"
SYSTEM_NAMESPACE = "boatyard-system"  # the default
OPERATOR_NAME = "boatyard-operator"  # the operator's Lease, Deployment and service account

AUTOMATION_ACCOUNT = "boatyard-automation"  # the service account of playbooks

LONGEST_ORDERS_NAMESPACE = 29  # a hosted control plane's namespace leaves this much of a label


def is_kubernetes(hub: Hub) -> bool:
    """Whether its orders are stored in its Kubernetes API; otherwise it is embedded and the ledger stores them."""
    return bool(hub.spec.kubeconfig)


def get_system_namespace(hub: Hub) -> str:
    """Where our own objects are on the hub: its settings, claims, the operator and its Lease."""
    return hub.spec.namespace or SYSTEM_NAMESPACE


def get_operator_lease(hub: Hub) -> str:
    """The name of the Lease that a running operator renews; empty when the hub has another operator."""
    name = hub.spec.settings.get(OPERATOR_LEASE_SETTING) or OPERATOR_NAME
    return "" if name == NO_LEASE else name
