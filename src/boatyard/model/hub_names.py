"""What our objects on a Kubernetes hub are called, and the labels, annotations and finalizers they carry. Pure.

Called by the order book, the operator and the platform driver of a hub: whoever knows a cluster's id finds all that
belongs to it. Names that others must recognise are those of OSAC; ours begin with `boatyard.io/`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache

from boatyard.model.errors import Refused, Violation

# --- labels, annotations, finalizers -----------------------------------------------------------

ORDER_UUID = "osac.openshift.io/clusterorder-uuid"  # label: the cluster's id, as a label value
ORDER = "osac.openshift.io/clusterorder"  # label of a child: the order's name
TENANT = "osac.openshift.io/tenant"  # annotation
MANAGEMENT_STATE = "osac.openshift.io/management-state"  # annotation: unmanaged or manual
UNMANAGED, MANUAL = "unmanaged", "manual"
API_ENDPOINT = "osac.openshift.io/api-endpoint"  # annotation
INGRESS_ENDPOINT = "osac.openshift.io/ingress-endpoint"  # annotation
RESOURCE_CLASS = "osac.openshift.io/resource_class"  # label of an agent
INSTANCE_TYPE = "osac.openshift.io/instance_type"  # label of an agent, its newer spelling
HOST_UUID = "osac.openshift.io/host_uuid"  # annotation of an agent

CLUSTER = "boatyard.io/cluster"  # annotation: the cluster's id, whole
KEY = "boatyard.io/key"  # annotation: the key whole; label: the same as a label value
HUB = "boatyard.io/hub"  # label: which hub's operator keeps it
NODE_SET = "boatyard.io/node-set"
SLOT = "boatyard.io/slot"
MANAGED_BY = "app.kubernetes.io/managed-by"  # label, with the value below
BOATYARD = "boatyard"

OPERATOR_FINALIZER = "osac.openshift.io/finalizer"  # until all is gone or stands in a Leftover
FEEDBACK_FINALIZER = "osac.openshift.io/clusterorder-feedback"  # until the service has heard of it
AUTOMATION_FINALIZER = "osac.openshift.io/infrastructure"  # until the delete playbook has run

# --- names -------------------------------------------------------------------------------------

SYSTEM_NAMESPACE = "boatyard-system"
HUB_CONFIG = "boatyard-hub"  # ConfigMap in the system namespace
HUB_CONFIG_KEY = "hub.json"

SERVICE_ACCOUNT = "osac"
ROLE_BINDING = "osac"
HUB_ACCESS = "hub-access"
NETWORK_POLICY = "boatyard"

# HyperShift runs a control plane in "<namespace>-<name>", here "<order namespace>-<order>-<order>". With an order's
# 16 characters that leaves 29 of a label's 63 for the namespace of orders, and 20 of those for the tenant.
LONGEST_LABEL = 63
LONGEST_ORDER_NAMESPACE = 29
_TENANT_PREFIX = "boatyard-"
_ORDER_PREFIX = "order-"
_ORDER_LETTERS = 10
_HASH_LETTERS = 9  # unlike an order's, so that a tenant's namespace is never a cluster's

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LOOKS_HASHED = re.compile(rf"-[a-z2-7]{{{_HASH_LETTERS},{_ORDER_LETTERS}}}$")
_HASHED_VALUE = "sha256-"


def order_name(cluster_id: str) -> str:
    """The name of the cluster's ClusterOrder, and of its HostedCluster."""
    return _ORDER_PREFIX + _hash_text(cluster_id, _ORDER_LETTERS)


def tenant_namespace(tenant: str) -> str:
    """Where a tenant's orders are. Different tenants never share one."""
    reserved = (SYSTEM_NAMESPACE.removeprefix(_TENANT_PREFIX),)
    longest = LONGEST_ORDER_NAMESPACE - len(_TENANT_PREFIX)
    return _TENANT_PREFIX + _fit_label(tenant, longest, reserved)


def check_order_namespace(namespace: str, field: str) -> str:
    """Returns a chosen namespace for orders unchanged. Refused when names of clusters in it would be too long."""
    if is_label(namespace) and len(namespace) <= LONGEST_ORDER_NAMESPACE:
        return namespace
    message = f"{namespace!r} cannot hold orders"
    remedy = f"name a namespace of at most {LONGEST_ORDER_NAMESPACE} lower-case letters, digits and dashes"
    raise Refused("", Violation(field, message, remedy), reason="BadNamespace")


def cluster_namespace(order_namespace: str, order_name: str) -> str:
    """The namespace of one cluster, with its HostedCluster, node pools and secrets."""
    return f"{order_namespace}-{order_name}"


def order_namespace_of(cluster_namespace: str, order_name: str) -> str:
    """The inverse of `cluster_namespace`; empty when this is no namespace of that order."""
    order_namespace = cluster_namespace.removesuffix(f"-{order_name}")
    return "" if order_namespace == cluster_namespace else order_namespace


def control_plane_namespace(cluster_namespace: str, order_name: str) -> str:
    """Where HyperShift runs the control plane and keeps the cluster's machines."""
    return f"{cluster_namespace}-{order_name}"


def node_pool_name(order_name: str, node_set: str) -> str:
    prefix = f"nodepool-{order_name}-"
    return prefix + _fit_label(node_set, LONGEST_LABEL - len(prefix))


def pull_secret_name(order_name: str) -> str:
    return f"pullsecret-cluster-{order_name}"


def ssh_key_name(order_name: str) -> str:
    return f"sshkey-cluster-{order_name}"


def inputs_secret_name(order_name: str) -> str:
    """The Secret beside an order with what must not stand in its spec."""
    return f"{order_name}-inputs"


def credentials_secret_name(order_name: str) -> str:
    """The Secret with the cluster's kubeconfig, beside the order or in the cluster's own namespace."""
    return f"{order_name}-credentials"


def claim_name(pool: str, item: str) -> str:
    """The name of a claim: whoever creates it first has the item."""
    # The length keeps "a/b" + "c" and "a" + "b/c" apart.
    return "claim-" + _hash_text(f"{len(pool)}/{pool}/{item}", 40)


def label_value(text: str) -> str:
    """The text itself where it is a label value, else its hash; different texts never share one."""
    plain = _LABEL_VALUE.fullmatch(text) and len(text) <= LONGEST_LABEL
    if plain and not text.startswith(_HASHED_VALUE):
        return text
    return _HASHED_VALUE + _hash_text(text, 40)


def is_label(text: str) -> bool:
    """Whether it is a DNS label, as names of namespaces and most objects must be."""
    return len(text) <= LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def _fit_label(text: str, longest: int, reserved: tuple[str, ...] = ()) -> str:
    """The text where it is a label of that length, else a readable stem and a hash.

    A text that looks as if it were hashed already is hashed too: nobody may choose another's name.
    """
    fits = is_label(text) and len(text) <= longest and text not in reserved
    if fits and not _LOOKS_HASHED.search(text):
        return text
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower())[: longest - _HASH_LETTERS - 1].strip("-")
    return f"{stem or 'x'}-{_hash_text(text, _HASH_LETTERS)}"


@lru_cache(maxsize=8192)  # an order's name is asked for at every look at its object
def _hash_text(text: str, count: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:count]
