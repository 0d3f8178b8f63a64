"""A ClusterOrder of anybody's as an order. Pure; the way there is in `to_kube`.

What OSAC's fields cannot say stands in `spec.boatyard`. An order without that object was made by somebody else's
tool and is understood from OSAC's fields alone.
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

MASK = "***"  # in place of credentials that there are but that were not read
PULL_SECRET, PARAMETERS = "pullSecret", "parameters"  # keys of the Secret beside an order
DELETE_WITHIN = timedelta(minutes=15)  # for whoever deletes an order without saying by when

_CREATOR = "system"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Place:
    """How a hub keeps its orders: whose hub it is, and where orders are."""

    hub: str
    one_namespace: str = ""  # for all tenants' orders; empty: one for each tenant
    system_namespace: str = ""  # our own on the hub; nobody but us writes there
    osac_compatible: bool = False  # secrets also in the clear, for playbooks that know no other way
    delete_within: timedelta = DELETE_WITHIN

    @classmethod
    def of(cls, hub_id: str, settings: Mapping[str, str], *, system_namespace: str = "") -> Place:
        """As the settings of the hub say."""
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
        """Where that is left whose tenant's namespace is gone, or whose tenant nobody knows any more."""
        return self.one_namespace or self.system_namespace


def order_id(item: Mapping[str, Any], place: Place) -> str:
    """Whose order an object is: the cluster's id, or the object's own where nobody of ours made it.

    An id that the object names counts only where that very order belongs; otherwise whoever may write into one
    namespace could speak for a cluster in another.
    """
    about, wish = item["metadata"], _wish(item)
    named = str(wish.get("clusterID") or "")
    ours = (
        named
        and about["name"] == hub_names.order_name(named)
        and about["namespace"] == place.namespace(str(wish.get("tenant") or ""))
    )
    return named if ours else str(about["uid"])


def _is_ours(item: Mapping[str, Any], place: Place) -> bool:
    return order_id(item, place) != str(item["metadata"]["uid"])


def tenant_of(item: Mapping[str, Any], place: Place) -> str:
    """Of ours, whom the order says; of others', whom its annotation names, else the namespace itself."""
    about = item["metadata"]
    if _is_ours(item, place):
        return str(_wish(item).get("tenant") or "")
    return str((about.get("annotations") or {}).get(hub_names.TENANT) or about["namespace"])


def _wish(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return (item.get("spec") or {}).get("boatyard") or {}


def secret_ref(item: Mapping[str, Any]) -> ClusterOrderSecretReference | None:
    """The Secret beside the order; None when it needs none.

    Any other than its own does not count: whoever may write an order may not have others' Secrets read or deleted.
    """
    said = _wish(item).get("secretRef")
    reference = camel.load(ClusterOrderSecretReference, said) if said else None
    own = hub_names.inputs_secret_name(item["metadata"]["name"])
    return reference if reference is not None and reference.name == own else None


def credentials_ref(item: Mapping[str, Any]) -> Object | None:
    """Where the status says that the cluster's kubeconfig is; None when it says nothing, or a place not its own."""
    said: Object = (item.get("status") or {}).get("credentialsRef") or {}
    about = item["metadata"]
    if said.get("name") != hub_names.credentials_secret_name(about["name"]):
        return None
    where, beside = str(said.get("namespace")), str(about["namespace"])
    own = (beside, hub_names.cluster_namespace(beside, about["name"]))
    # The cluster of another tool's order is called after the object's uid, which nobody chooses.
    theirs = hub_names.order_namespace_of(where, hub_names.order_name(str(about["uid"])))
    return said if where in own or theirs else None


def to_order(
    item: Mapping[str, Any],
    place: Place,
    *,
    secrets: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
) -> Order:
    """The order that an object is, with the secrets given, and `***` for credentials that were not.

    Whoever may write orders may write what cannot be understood. Such an order has `unreadable` set and asks for
    nothing, under generation 0; who it is, whether it leaves and what it holds is told all the same, so that it can be
    taken back. Refused only when not even its items can be read, which the CRD rules out.
    """
    said = (item.get("status") or {}).get("boatyard") or {}
    wish = _wish(item) if _is_ours(item, place) else {}
    try:
        read = _read_ours(item, secrets or {}) if wish else _read_theirs(item, place)
        status, known = camel.load(OrderStatus, said), camel.load(ClusterOrderWish, wish)
        kept = _kept_annotations(item)
    except Refused as error:
        known = camel.load_readable(ClusterOrderWish, wish)
        read = _unread(item, place, known)
        items = camel.load(OrderStatus, {"items": said.get("items")}).items
        status = msgspec.structs.replace(camel.load_readable(OrderStatus, said), items=items)
        kept = {**_kept_annotations(item), UNREADABLE: str(error)}
    return _order(item, place, read, _with_credentials(status, item, credentials), known, kept)


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
    wish: ClusterOrderWish,
    annotations: Mapping[str, str],
) -> Order:
    id = order_id(item, place)
    return Order(
        id=id,
        metadata=Metadata(
            name=id,
            tenant=tenant_of(item, place),
            creator=_CREATOR,
            creation_timestamp=wish.ordered_at
            or _moment(item["metadata"].get("creationTimestamp")),
            deletion_timestamp=_deleted_at(item, wish),
            annotations=annotations,
        ),
        spec=spec,
        status=status,
    )


def _deleted_at(item: Mapping[str, Any], wish: ClusterOrderWish) -> datetime | None:
    """Kubernetes says whether; our own clock says when, if it was us who asked."""
    asked = _moment(item["metadata"].get("deletionTimestamp"))
    return (wish.deleted_at or asked) if asked else None


def _kept_annotations(item: Mapping[str, Any]) -> dict[str, str]:
    said = item["metadata"].get("annotations") or {}
    return {name: str(said[name]) for name in (hub_names.MANAGEMENT_STATE, RETRY) if name in said}


def _unread(item: Mapping[str, Any], place: Place, wish: ClusterOrderWish) -> OrderSpec:
    """In place of a wish that cannot be understood: what taking the order back needs."""
    asked = _moment(item["metadata"].get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=wish.cluster_name or item["metadata"]["name"],
        hub=wish.hub or place.hub,
        platform_settings=wish.platform_settings,
        delete_by=(wish.delete_by or asked + place.delete_within) if asked else None,
    )


def _read_ours(item: Mapping[str, Any], secrets: Mapping[str, str]) -> OrderSpec:
    spec = item["spec"]
    wish = camel.load(ClusterOrderWish, spec["boatyard"])
    if wish.secret_ref.name and secret_ref(item) is None:
        raise Refused(
            "spec.boatyard.secretRef names a Secret that is not this order's;"
            f" name {hub_names.inputs_secret_name(item['metadata']['name'])}",
            reason="BadReference",
        )
    network = spec.get("network") or {}
    shown = parameters.from_text(spec.get("templateParameters") or "", wish.parameter_types)
    hidden = parameters.from_text(secrets.get(PARAMETERS, ""), wish.parameter_types)
    return OrderSpec(
        cluster_name=wish.cluster_name,
        hub=wish.hub,
        template=wish.template if "template" in spec["boatyard"] else spec["templateID"],
        template_parameters={
            name: value for name, value in shown.items() if name not in wish.secret_parameters
        },
        template_digest=wish.template_digest,
        template_phases=wish.template_phases,
        labels=wish.labels,
        annotations=wish.annotations,
        project=wish.project,
        display_name=wish.display_name,
        secret_parameters=wish.secret_parameters,
        secret_values=seal_text(hidden),
        node_sets=_node_sets(spec.get("nodeRequests") or (), ours=True),
        version=wish.version,
        release_image=wish.release_image or spec.get("releaseImage") or "",
        ssh_public_key=wish.ssh_public_key or spec.get("sshPublicKey") or "",
        pull_secret=secrets.get(PULL_SECRET) or spec.get("pullSecret") or "",
        pod_cidr=wish.pod_cidr or network.get("podCIDR") or "",
        service_cidr=wish.service_cidr or network.get("serviceCIDR") or "",
        generation=wish.generation,
        delete_by=wish.delete_by,
        platform_settings=wish.platform_settings,
        rest=wish.rest,
        restore=wish.restore,
    )


def _read_theirs(item: Mapping[str, Any], place: Place) -> OrderSpec:
    spec, about = item.get("spec") or {}, item["metadata"]
    network = spec.get("network") or {}
    image = str(spec.get("releaseImage") or "")
    version = _VERSION.search(image.rpartition(":")[2])
    asked = _moment(about.get("deletionTimestamp"))
    return OrderSpec(
        cluster_name=about["name"],
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
        generation=int(about.get("generation") or 1),
        delete_by=asked + place.delete_within if asked else None,
    )


def _node_sets(requests: Sequence[Mapping[str, Any]], *, ours: bool) -> dict[str, OrderNodeSet]:
    """By name. One that has none is called after its resource class; two of a class are told apart by number."""
    found: dict[str, OrderNodeSet] = {}
    for request in requests:
        size = int(request["numberOfNodes"])
        instance = str((request.get("bareMetal") or {}).get("instanceType") or "")
        host_type = instance or str(request.get("resourceClass") or "")
        name = str(request.get("nodeSet") or "")
        if not ours:
            host_type = host_type or name
            name = _free_name(name or host_type, found)
        found[name] = OrderNodeSet(host_type=host_type, size=size)
    return found


def _free_name(text: str, taken: Mapping[str, object]) -> str:
    stem = _NOT_IN_NAMES.sub("-", text.lower()).strip("-") or "nodes"
    name, number = stem, 1
    while name in taken:
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
