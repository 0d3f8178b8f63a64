"""Reads a ClusterOrder, ours or another tool's, as an Order. Pure; the other direction is in `to_kube`.

What OSAC's fields cannot express is in `spec.boatyard`. A ClusterOrder without that object was created by another tool
and is read from OSAC's fields alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.generated.boatyard import (
    ClusterOrderExtension,
    ClusterOrderSecretReference,
    Credentials,
    Order,
    OrderNodeSet,
    OrderSpec,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.mapping import kube_json, parameters
from boatyard.orderbook.port import RETRY_ANNOTATION, UNREADABLE_ANNOTATION
from boatyard.roles.parameter_values import encode_secrets

Object = dict[str, Any]

CREDENTIALS_MASK = "***"  # in place of credentials that exist but were not read
PULL_SECRET_KEY, PARAMETERS_KEY = "pullSecret", "parameters"  # keys of the Secret beside an order
DEFAULT_DELETE_PERIOD = timedelta(minutes=15)  # for orders that are deleted without a deadline

_CREATOR = "system"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_INVALID_NAME_CHARACTERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class HubOrderSettings:
    """Where a hub keeps its orders: the hub's id, its namespaces, and how orders are written there."""

    hub: str
    shared_namespace: str = ""  # for all tenants' orders; empty: one for each tenant
    system_namespace: str = ""  # Boatyard's own on the hub; nobody else writes there
    osac_compatible: bool = False  # secrets also in the spec, for playbooks that read them there
    delete_within: timedelta = DEFAULT_DELETE_PERIOD

    @classmethod
    def from_settings(
        cls, hub_id: str, settings: Mapping[str, str], *, system_namespace: str = ""
    ) -> HubOrderSettings:
        """The place that the hub's settings describe."""
        return cls(
            hub=hub_id,
            system_namespace=system_namespace,
            shared_namespace=settings.get("kube.namespace", ""),
            osac_compatible=settings.get("osac-compatible") == "true",
        )

    def get_tenant_namespace(self, tenant: str) -> str:
        return self.shared_namespace or hub_names.tenant_namespace(tenant)

    @property
    def fallback_namespace(self) -> str:
        """The namespace for leftovers whose tenant's namespace is deleted, or whose tenant is not known."""
        return self.shared_namespace or self.system_namespace


def read_order_id(item: Mapping[str, Any], order_settings: HubOrderSettings) -> str:
    """The id of an object's order: the cluster's id, or the object's uid when another tool created it.

    A cluster id in the object counts only if name and namespace are those of that cluster's order. Otherwise whoever
    may write into one namespace could act for a cluster in another.
    """
    metadata, extension = item["metadata"], _get_extension(item)
    cluster_id = str(extension.get("clusterID") or "")
    is_ours = (
        cluster_id
        and metadata["name"] == hub_names.order_name(cluster_id)
        and metadata["namespace"]
        == order_settings.get_tenant_namespace(str(extension.get("tenant") or ""))
    )
    return cluster_id if is_ours else str(metadata["uid"])


def _is_ours(item: Mapping[str, Any], order_settings: HubOrderSettings) -> bool:
    return read_order_id(item, order_settings) != str(item["metadata"]["uid"])


def read_tenant(item: Mapping[str, Any], order_settings: HubOrderSettings) -> str:
    """The tenant of an order. For another tool's order: the tenant its annotation names, else its namespace."""
    metadata = item["metadata"]
    if _is_ours(item, order_settings):
        return str(_get_extension(item).get("tenant") or "")
    return str((metadata.get("annotations") or {}).get(hub_names.TENANT) or metadata["namespace"])


def _get_extension(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return (item.get("spec") or {}).get("boatyard") or {}


def read_secret_ref(item: Mapping[str, Any]) -> ClusterOrderSecretReference | None:
    """The Secret with the order's inputs; None when it has none.

    A reference to any other Secret is ignored: who may write an order must not have others' Secrets read or deleted.
    """
    fields = _get_extension(item).get("secretRef")
    reference = kube_json.load(ClusterOrderSecretReference, fields) if fields else None
    own_name = hub_names.inputs_secret_name(item["metadata"]["name"])
    return reference if reference is not None and reference.name == own_name else None


def read_credentials_ref(item: Mapping[str, Any]) -> Object | None:
    """The Secret of the cluster's kubeconfig, by the status; None when there is none, or it is not this order's."""
    reference: Object = (item.get("status") or {}).get("credentialsRef") or {}
    metadata = item["metadata"]
    if reference.get("name") != hub_names.credentials_secret_name(metadata["name"]):
        return None
    namespace, order_namespace = str(reference.get("namespace")), str(metadata["namespace"])
    own_namespaces = (
        order_namespace,
        hub_names.cluster_namespace(order_namespace, metadata["name"]),
    )
    # The cluster of another tool's order is named after the object's uid, which nobody can choose.
    is_foreign_cluster = hub_names.order_namespace_of(
        namespace, hub_names.order_name(str(metadata["uid"]))
    )
    return reference if namespace in own_namespaces or is_foreign_cluster else None


def to_order(
    item: Mapping[str, Any],
    order_settings: HubOrderSettings,
    *,
    secrets: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
) -> Order:
    """The order in an object, with the secrets given, and `***` for existing credentials that were not given.

    Whoever may write orders may write one that cannot be read. Such an order has `unreadable` set, an empty spec and
    generation 0. Its identity, its deletion and its items are read all the same, so that it can be deleted. Refused
    only when not even its items can be read, which the CRD rules out.
    """
    progress = (item.get("status") or {}).get("boatyard") or {}
    extension_fields = _get_extension(item) if _is_ours(item, order_settings) else {}
    try:
        spec = (
            _read_our_spec(item, secrets or {})
            if extension_fields
            else _read_foreign_spec(item, order_settings)
        )
        status, extension = (
            kube_json.load(OrderStatus, progress),
            kube_json.load(ClusterOrderExtension, extension_fields),
        )
        annotations = _read_annotations(item)
    except Refused as error:
        extension = kube_json.load_readable(ClusterOrderExtension, extension_fields)
        spec = _make_unreadable_spec(item, order_settings, extension)
        items = kube_json.load(OrderStatus, {"items": progress.get("items")}).items
        status = msgspec.structs.replace(
            kube_json.load_readable(OrderStatus, progress), items=items
        )
        annotations = {**_read_annotations(item), UNREADABLE_ANNOTATION: str(error)}
    return _order(
        item,
        order_settings,
        spec,
        _with_credentials(status, item, credentials),
        extension,
        annotations,
    )


def _with_credentials(
    status: OrderStatus, item: Mapping[str, Any], credentials: Credentials | None
) -> OrderStatus:
    if credentials is None and read_credentials_ref(item):
        credentials = Credentials(kubeconfig=CREDENTIALS_MASK)
    if credentials is None:
        return status
    return msgspec.structs.replace(status, credentials=credentials)


def _order(
    item: Mapping[str, Any],
    order_settings: HubOrderSettings,
    spec: OrderSpec,
    status: OrderStatus,
    extension: ClusterOrderExtension,
    annotations: Mapping[str, str],
) -> Order:
    id = read_order_id(item, order_settings)
    return Order(
        id=id,
        metadata=Metadata(
            name=id,
            tenant=read_tenant(item, order_settings),
            creator=_CREATOR,
            creation_timestamp=extension.ordered_at
            or _parse_time(item["metadata"].get("creationTimestamp")),
            deletion_timestamp=_get_deletion_time(item, extension),
            annotations=annotations,
        ),
        spec=spec,
        status=status,
    )


def _get_deletion_time(
    item: Mapping[str, Any], extension: ClusterOrderExtension
) -> datetime | None:
    """When deletion was requested: Kubernetes says whether, and for our own requests our own clock says when."""
    deletion_time = _parse_time(item["metadata"].get("deletionTimestamp"))
    return (extension.deleted_at or deletion_time) if deletion_time else None


def _read_annotations(item: Mapping[str, Any]) -> dict[str, str]:
    annotations = item["metadata"].get("annotations") or {}
    return {
        name: str(annotations[name])
        for name in (hub_names.MANAGEMENT_STATE, RETRY_ANNOTATION)
        if name in annotations
    }


def _make_unreadable_spec(
    item: Mapping[str, Any], order_settings: HubOrderSettings, extension: ClusterOrderExtension
) -> OrderSpec:
    """The spec of an order that cannot be read: only what its deletion needs."""
    deletion_time = _parse_time(item["metadata"].get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=extension.cluster_name or item["metadata"]["name"],
        hub=extension.hub or order_settings.hub,
        platform_settings=extension.platform_settings,
        delete_by=(extension.delete_by or deletion_time + order_settings.delete_within)
        if deletion_time
        else None,
    )


def _read_our_spec(item: Mapping[str, Any], secrets: Mapping[str, str]) -> OrderSpec:
    spec = item["spec"]
    extension = kube_json.load(ClusterOrderExtension, spec["boatyard"])
    if extension.secret_ref.name and read_secret_ref(item) is None:
        raise Refused(
            "spec.boatyard.secretRef names a Secret that is not this order's;"
            f" name {hub_names.inputs_secret_name(item['metadata']['name'])}",
            reason="BadReference",
        )
    network = spec.get("network") or {}
    visible_parameters = parameters.from_text(
        spec.get("templateParameters") or "", extension.parameter_types
    )
    hidden_parameters = parameters.from_text(
        secrets.get(PARAMETERS_KEY, ""), extension.parameter_types
    )
    return OrderSpec(
        cluster_name=extension.cluster_name,
        hub=extension.hub,
        template=extension.template if "template" in spec["boatyard"] else spec["templateID"],
        template_parameters={
            name: value
            for name, value in visible_parameters.items()
            if name not in extension.secret_parameters
        },
        template_digest=extension.template_digest,
        template_phases=extension.template_phases,
        labels=extension.labels,
        annotations=extension.annotations,
        project=extension.project,
        display_name=extension.display_name,
        secret_parameters=extension.secret_parameters,
        secret_values=encode_secrets(hidden_parameters),
        node_sets=_node_sets(spec.get("nodeRequests") or (), ours=True),
        version=extension.version,
        release_image=extension.release_image or spec.get("releaseImage") or "",
        ssh_public_key=extension.ssh_public_key or spec.get("sshPublicKey") or "",
        pull_secret=secrets.get(PULL_SECRET_KEY) or spec.get("pullSecret") or "",
        pod_cidr=extension.pod_cidr or network.get("podCIDR") or "",
        service_cidr=extension.service_cidr or network.get("serviceCIDR") or "",
        generation=extension.generation,
        delete_by=extension.delete_by,
        platform_settings=extension.platform_settings,
        rest=extension.rest,
        restore=extension.restore,
    )


def _read_foreign_spec(item: Mapping[str, Any], order_settings: HubOrderSettings) -> OrderSpec:
    spec, metadata = item.get("spec") or {}, item["metadata"]
    network = spec.get("network") or {}
    image = str(spec.get("releaseImage") or "")
    version = _VERSION.search(image.rpartition(":")[2])
    deletion_time = _parse_time(metadata.get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=metadata["name"],
        hub=order_settings.hub,
        template=str(spec.get("templateID") or ""),
        template_parameters=parameters.from_text(spec.get("templateParameters") or "", {}),
        node_sets=_node_sets(spec.get("nodeRequests") or (), ours=False),
        version=version.group() if version else "",
        release_image=image,
        ssh_public_key=str(spec.get("sshPublicKey") or ""),
        pull_secret=str(spec.get("pullSecret") or ""),
        pod_cidr=str(network.get("podCIDR") or ""),
        service_cidr=str(network.get("serviceCIDR") or ""),
        generation=int(metadata.get("generation") or 1),
        delete_by=deletion_time + order_settings.delete_within if deletion_time else None,
    )


def _node_sets(requests: Sequence[Mapping[str, Any]], *, ours: bool) -> dict[str, OrderNodeSet]:
    """Node sets by name. One without a name is named after its resource class; equal names get a number."""
    node_sets: dict[str, OrderNodeSet] = {}
    for request in requests:
        size = int(request["numberOfNodes"])
        instance = str((request.get("bareMetal") or {}).get("instanceType") or "")
        host_type = instance or str(request.get("resourceClass") or "")
        name = str(request.get("nodeSet") or "")
        if not ours:
            host_type = host_type or name
            name = _make_unique_name(name or host_type, node_sets)
        node_sets[name] = OrderNodeSet(host_type=host_type, size=size)
    return node_sets


def _make_unique_name(text: str, used_names: Mapping[str, object]) -> str:
    stem = _INVALID_NAME_CHARACTERS.sub("-", text.lower()).strip("-") or "nodes"
    name, number = stem, 1
    while name in used_names:
        number += 1
        name = f"{stem}-{number}"
    return name


def _parse_time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError as error:
        raise Refused(f"{text!r} is no time", reason="Unreadable") from error
