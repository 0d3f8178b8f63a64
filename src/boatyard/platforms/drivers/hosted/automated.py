"""Asks a workshop to make or take away a HostedCluster, and looks whether it is so. Called by clusters and teardown.

Without the workshop's word nothing follows from its work, and with it only what the hub shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.kube.kinds import Kind
from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted import rendering
from boatyard.platforms.drivers.hosted.checking import check_pool
from boatyard.platforms.drivers.hosted.hub import Hub
from boatyard.platforms.drivers.hosted.kinds import (
    CLUSTER_ORDERS,
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    Seen,
    at,
    is_leaving,
    metadata,
    name_of,
    namespace_of,
    uid_of,
)
from boatyard.platforms.drivers.hosted.rendering import Place, covers
from boatyard.platforms.drivers.hosted.settings import Choice
from boatyard.platforms.drivers.hosted.workshop import Job, Workshop

_NUMBER_BYTES = 6
# What kubectl was once given, whole: also what is secret.
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SHOWN = ("name", "namespace", "uid", "labels", "annotations", "generation", "deletionTimestamp")


# --- making ------------------------------------------------------------------------------------


async def create_job(
    hub: Hub, place: Place, cluster: Manifest, choice: Choice, *, first: bool
) -> Job:
    """The HostedCluster, and with the first one a NodePool without nodes per node request.

    Later ones would come at a release that the control plane has not reached; they are made with their first node.
    """
    order = await hub.order(place)
    if order is None:
        raise Unavailable(
            f"there is no ClusterOrder {place.order_namespace}/{place.order} to hand on",
            reason="NoOrder",
        )
    pools = _pools(place, order, cluster, choice) if first else []
    manifests = [_whole(HOSTED_CLUSTERS, cluster), *(_whole(NODE_POOLS, pool) for pool in pools)]
    number = number_of([uid_of(order), cluster])
    return Job(number=number, order=shown_order(order), manifests=manifests)


async def create(hub: Hub, place: Place, cluster: Manifest, job: Job) -> Manifest | Waiting:
    """The HostedCluster as it is, once it says what it should."""
    workshop = _workshop(hub)
    outcome = await workshop.create(place.key, job)
    if isinstance(outcome, Waiting):
        return outcome
    existing = await hub.cluster(place)
    if existing is not None and covers(existing, cluster):
        return existing
    await workshop.forget(place.key)
    return Waiting("The control plane is asked for again.", 1.0, "StageUnknown")


def _pools(place: Place, order: Seen, cluster: Manifest, choice: Choice) -> list[Manifest]:
    pools: list[Manifest] = []
    for request in at(order, "spec", "nodeRequests") or ():
        node_set = str(request.get("nodeSet") or "")
        if not node_set:
            continue  # another tool's: its name is decided by whoever reads the order
        host_type = at(request, "bareMetal", "instanceType") or request.get("resourceClass") or ""
        image = cluster["spec"]["release"]["image"]
        pool = rendering.node_pool(place, cluster, choice, node_set, str(host_type), image=image)
        check_pool(pool, cluster)
        pool["spec"]["replicas"] = 0
        pools.append(pool)
    return pools


# --- taking away -------------------------------------------------------------------------------


async def remove(
    hub: Hub, place: Place, pools: Sequence[Manifest], cluster: Manifest | None
) -> Waiting | None:
    """Asks while something stands that nobody has asked to go, or while automation keeps the order; else None."""
    workshop = _workshop(hub)
    order = await hub.order(place)
    has_finalizer = hub_names.AUTOMATION_FINALIZER in (
        metadata(order or {}).get("finalizers") or ()
    )
    references = [_reference(NODE_POOLS, pool) for pool in pools if not is_leaving(pool)]
    if cluster is not None and not is_leaving(cluster):
        references.append(_reference(HOSTED_CLUSTERS, cluster))
    if not references and not has_finalizer:
        return None
    job = Job(
        number=number_of([uid_of(order or {}), "delete"]),
        order=shown_order(order) if order is not None else _skeleton(place),
        manifests=references,
    )
    outcome = await workshop.delete(place.key, job)
    if isinstance(outcome, Waiting):
        return outcome
    # Looked at before it was asked: the next look sees what has come of it, and asks again if need be.
    await workshop.forget(place.key)
    return Waiting("The control plane is being removed.", 1.0, "RemovingControlPlane")


def _reference(kind: Kind, obj: Seen) -> Manifest:
    meta = {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)}
    return _whole(kind, {"metadata": meta})


def _skeleton(place: Place) -> Manifest:
    """The order's name and place where it has gone already."""
    meta = {"name": place.order, "namespace": place.order_namespace}
    return _whole(CLUSTER_ORDERS, {"metadata": meta})


# --- what is shown -----------------------------------------------------------------------------


def shown_order(order: Seen) -> Manifest:
    """The order as the hub has it, without what is secret, and without what changes all the time.

    On a hub with `osac-compatible` secrets stand in the spec in the clear; an event is kept and shown by others.
    """
    spec = {
        name: value for name, value in (order.get("spec") or {}).items() if name != "pullSecret"
    }
    hidden = at(spec, "boatyard", "secretParameters") or ()
    if hidden and spec.get("templateParameters"):
        spec["templateParameters"] = _without(spec["templateParameters"], hidden)
    meta = {name: value for name, value in metadata(order).items() if name in _SHOWN}
    if "annotations" in meta:
        meta["annotations"] = {
            name: value for name, value in meta["annotations"].items() if name != _APPLIED
        }
    return _whole(CLUSTER_ORDERS, {"metadata": meta, "spec": spec})


def _without(text: str, hidden: Sequence[str]) -> str:
    try:
        parameters = json.loads(text)
    except ValueError:
        parameters = None
    if not isinstance(parameters, dict):
        return ""  # what cannot be read may hold anything
    return json.dumps({name: value for name, value in parameters.items() if name not in hidden})


def _whole(kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}


def number_of(content: object) -> int:
    """Another number for other content."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:_NUMBER_BYTES], "big") + 1


def _workshop(hub: Hub) -> Workshop:
    assert hub.workshop is not None
    return hub.workshop
