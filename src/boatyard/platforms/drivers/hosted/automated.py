"""Lets automation (`Workshop`) create or remove a HostedCluster and checks the result on the hub.

Called by clusters and teardown. They go on only after automation reports success, and only with what the hub shows.
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
# kubectl's copy of the last applied manifest, which may contain secrets.
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SHOWN = ("name", "namespace", "uid", "labels", "annotations", "generation", "deletionTimestamp")


# --- making ------------------------------------------------------------------------------------


async def create_job(
    hub: Hub, place: Place, cluster: Manifest, choice: Choice, *, first: bool
) -> Job:
    """Makes the job: the HostedCluster and, the first time, a NodePool without nodes per node request.

    Later pools would have a release that the control plane has not reached yet; they come with their first node.
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
    """Runs the job. Returns the HostedCluster once it contains all of the manifest; Waiting until then."""
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
            continue  # written by another tool, which names the node set itself
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
    """Runs the deletion job while objects are not being deleted yet or automation's finalizer is on the order.

    Returns None when neither is the case.
    """
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
    # What we know was read before the job ran: the next call reads again and runs another job if needed.
    await workshop.forget(place.key)
    return Waiting("The control plane is being removed.", 1.0, "RemovingControlPlane")


def _reference(kind: Kind, obj: Seen) -> Manifest:
    meta = {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)}
    return _whole(kind, {"metadata": meta})


def _skeleton(place: Place) -> Manifest:
    """Returns a ClusterOrder with only name and namespace, for an order that is already gone."""
    meta = {"name": place.order, "namespace": place.order_namespace}
    return _whole(CLUSTER_ORDERS, {"metadata": meta})


# --- what is shown -----------------------------------------------------------------------------


def shown_order(order: Seen) -> Manifest:
    """Returns the order as it is on the hub, without secrets and without fields that change all the time.

    On a hub with `osac-compatible` the spec contains secrets in the clear, and automation stores and shows its input.
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
        return ""  # unreadable text may contain secrets
    return json.dumps({name: value for name, value in parameters.items() if name not in hidden})


def _whole(kind: Kind, manifest: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}


def number_of(content: object) -> int:
    """Returns a number that identifies the content."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:_NUMBER_BYTES], "big") + 1


def _workshop(hub: Hub) -> Workshop:
    assert hub.workshop is not None
    return hub.workshop
