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
    ClusterOrderSecretReference,
    ClusterOrderWish,
    Credentials,
    Order,
    OrderNodeSet,
    OrderSpec,
    OrderStatus,
)
from boatyard.model.generated.osac import Metadata
from boatyard.orderbook.kube.mapping import camel, parameters
from boatyard.orderbook.port import RETRY, UNREADABLE
from boatyard.roles.values import seal_text

Object = dict[str, Any]

MASK = "***"  # in place of credentials that exist but were not read
PULL_SECRET, PARAMETERS = "pullSecret", "parameters"  # keys of the Secret beside an order
DELETE_WITHIN = timedelta(minutes=15)  # for orders that are deleted without a deadline

_CREATOR = "system"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Place:
    """Where a hub keeps its orders: the hub's id, its namespaces, and how orders are written there."""

    hub: str
    one_namespace: str = ""  # for all tenants' orders; empty: one for each tenant
    system_namespace: str = ""  # Boatyard's own on the hub; nobody else writes there
    osac_compatible: bool = False  # secrets also in the spec, for playbooks that read them there
    delete_within: timedelta = DELETE_WITHIN

    @classmethod
    def of(cls, hub_id: str, settings: Mapping[str, str], *, system_namespace: str = "") -> Place:
        """The place that the hub's settings describe."""
        return cls(
            hub=hub_id,
            system_namespace=system_namespace,
            one_namespace=settings.get("kube.namespace", ""),
            osac_compatible=settings.get("osac-compatible") == "true",
        )

    def namespace(self, tenant: str) -> str:
        return self.one_namespace or hub_names.tenant_namespace(tenant)

    @property
    def aside(self) -> str:
        """The namespace for leftovers whose tenant's namespace is deleted, or whose tenant is not known."""
        return self.one_namespace or self.system_namespace


def order_id(item: Mapping[str, Any], place: Place) -> str:
    """The id of an object's order: the cluster's id, or the object's uid when another tool created it.

    A cluster id in the object counts only if name and namespace are those of that cluster's order. Otherwise whoever
    may write into one namespace could act for a cluster in another.
    """
    metadata, extension = item["metadata"], _wish(item)
    cluster_id = str(extension.get("clusterID") or "")
    is_ours = (
        cluster_id
        and metadata["name"] == hub_names.order_name(cluster_id)
        and metadata["namespace"] == place.namespace(str(extension.get("tenant") or ""))
    )
    return cluster_id if is_ours else str(metadata["uid"])


def _is_ours(item: Mapping[str, Any], place: Place) -> bool:
    return order_id(item, place) != str(item["metadata"]["uid"])


def tenant_of(item: Mapping[str, Any], place: Place) -> str:
    """The tenant of an order. For another tool's order: the tenant its annotation names, else its namespace."""
    metadata = item["metadata"]
    if _is_ours(item, place):
        return str(_wish(item).get("tenant") or "")
    return str((metadata.get("annotations") or {}).get(hub_names.TENANT) or metadata["namespace"])


def _wish(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return (item.get("spec") or {}).get("boatyard") or {}


def secret_ref(item: Mapping[str, Any]) -> ClusterOrderSecretReference | None:
    """The Secret with the order's inputs; None when it has none.

    A reference to any other Secret is ignored: who may write an order must not have others' Secrets read or deleted.
    """
    fields = _wish(item).get("secretRef")
    reference = camel.load(ClusterOrderSecretReference, fields) if fields else None
    own_name = hub_names.inputs_secret_name(item["metadata"]["name"])
    return reference if reference is not None and reference.name == own_name else None


def credentials_ref(item: Mapping[str, Any]) -> Object | None:
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
    place: Place,
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
    extension_fields = _wish(item) if _is_ours(item, place) else {}
    try:
        spec = _read_ours(item, secrets or {}) if extension_fields else _read_theirs(item, place)
        status, extension = (
            camel.load(OrderStatus, progress),
            camel.load(ClusterOrderWish, extension_fields),
        )
        annotations = _kept_annotations(item)
    except Refused as error:
        extension = camel.load_readable(ClusterOrderWish, extension_fields)
        spec = _unread(item, place, extension)
        items = camel.load(OrderStatus, {"items": progress.get("items")}).items
        status = msgspec.structs.replace(camel.load_readable(OrderStatus, progress), items=items)
        annotations = {**_kept_annotations(item), UNREADABLE: str(error)}
    return _order(
        item, place, spec, _with_credentials(status, item, credentials), extension, annotations
    )


def _with_credentials(
    status: OrderStatus, item: Mapping[str, Any], credentials: Credentials | None
) -> OrderStatus:
    if credentials is None and credentials_ref(item):
        credentials = Credentials(kubeconfig=MASK)
    if credentials is None:
        return status
    return msgspec.structs.replace(status, credentials=credentials)


def _order(
    item: Mapping[str, Any],
    place: Place,
    spec: OrderSpec,
    status: OrderStatus,
    extension: ClusterOrderWish,
    annotations: Mapping[str, str],
) -> Order:
    id = order_id(item, place)
    return Order(
        id=id,
        metadata=Metadata(
            name=id,
            tenant=tenant_of(item, place),
            creator=_CREATOR,
            creation_timestamp=extension.ordered_at
            or _moment(item["metadata"].get("creationTimestamp")),
            deletion_timestamp=_deleted_at(item, extension),
            annotations=annotations,
        ),
        spec=spec,
        status=status,
    )


def _deleted_at(item: Mapping[str, Any], extension: ClusterOrderWish) -> datetime | None:
    """When deletion was requested: Kubernetes says whether, and for our own requests our own clock says when."""
    deletion_time = _moment(item["metadata"].get("deletionTimestamp"))
    return (extension.deleted_at or deletion_time) if deletion_time else None


def _kept_annotations(item: Mapping[str, Any]) -> dict[str, str]:
    annotations = item["metadata"].get("annotations") or {}
    return {
        name: str(annotations[name])
        for name in (hub_names.MANAGEMENT_STATE, RETRY)
        if name in annotations
    }


def _unread(item: Mapping[str, Any], place: Place, extension: ClusterOrderWish) -> OrderSpec:
    """The spec of an order that cannot be read: only what its deletion needs."""
    deletion_time = _moment(item["metadata"].get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=extension.cluster_name or item["metadata"]["name"],
        hub=extension.hub or place.hub,
        platform_settings=extension.platform_settings,
        delete_by=(extension.delete_by or deletion_time + place.delete_within)
        if deletion_time
        else None,
    )


def _read_ours(item: Mapping[str, Any], secrets: Mapping[str, str]) -> OrderSpec:
    spec = item["spec"]
    extension = camel.load(ClusterOrderWish, spec["boatyard"])
    if extension.secret_ref.name and secret_ref(item) is None:
        raise Refused(
            "spec.boatyard.secretRef names a Secret that is not this order's;"
            f" name {hub_names.inputs_secret_name(item['metadata']['name'])}",
            reason="BadReference",
        )
    network = spec.get("network") or {}
    visible_parameters = parameters.from_text(
        spec.get("templateParameters") or "", extension.parameter_types
    )
    hidden_parameters = parameters.from_text(secrets.get(PARAMETERS, ""), extension.parameter_types)
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
        secret_values=seal_text(hidden_parameters),
        node_sets=_node_sets(spec.get("nodeRequests") or (), ours=True),
        version=extension.version,
        release_image=extension.release_image or spec.get("releaseImage") or "",
        ssh_public_key=extension.ssh_public_key or spec.get("sshPublicKey") or "",
        pull_secret=secrets.get(PULL_SECRET) or spec.get("pullSecret") or "",
        pod_cidr=extension.pod_cidr or network.get("podCIDR") or "",
        service_cidr=extension.service_cidr or network.get("serviceCIDR") or "",
        generation=extension.generation,
        delete_by=extension.delete_by,
        platform_settings=extension.platform_settings,
        rest=extension.rest,
        restore=extension.restore,
    )


def _read_theirs(item: Mapping[str, Any], place: Place) -> OrderSpec:
    spec, metadata = item.get("spec") or {}, item["metadata"]
    network = spec.get("network") or {}
    image = str(spec.get("releaseImage") or "")
    version = _VERSION.search(image.rpartition(":")[2])
    deletion_time = _moment(metadata.get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=metadata["name"],
        hub=place.hub,
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
        delete_by=deletion_time + place.delete_within if deletion_time else None,
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
            name = _free_name(name or host_type, node_sets)
        node_sets[name] = OrderNodeSet(host_type=host_type, size=size)
    return node_sets


def _free_name(text: str, used_names: Mapping[str, object]) -> str:
    stem = _NOT_IN_NAMES.sub("-", text.lower()).strip("-") or "nodes"
    name, number = stem, 1
    while name in used_names:
        number += 1
        name = f"{stem}-{number}"
    return name


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError as error:
        raise Refused(f"{text!r} is no time", reason="Unreadable") from error
