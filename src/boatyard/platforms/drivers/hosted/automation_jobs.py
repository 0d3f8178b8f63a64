"""Lets automation (`Workshop`) create or remove a HostedCluster and checks the result on the hub.

Called by clusters and teardown. They go on only after automation reports success, and only with what the hub shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from boatyard.kube.kinds import KubeKind
from boatyard.model import hub_names
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Waiting
from boatyard.platforms.drivers.hosted import cluster_manifests
from boatyard.platforms.drivers.hosted.cluster_automation import AutomationJob, ClusterAutomation
from boatyard.platforms.drivers.hosted.cluster_manifests import ClusterLocation, contains_manifest
from boatyard.platforms.drivers.hosted.hub_api import HubApi
from boatyard.platforms.drivers.hosted.kinds import (
    CLUSTER_ORDERS,
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    ObservedObject,
    get_path,
    is_being_deleted,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from boatyard.platforms.drivers.hosted.settings import HostedSettings
from boatyard.platforms.drivers.hosted.validation import check_pool

_NUMBER_BYTES = 6
# kubectl's copy of the last applied manifest, which may contain secrets.
_LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_SHOWN_METADATA = (
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "generation",
    "deletionTimestamp",
)


# --- making ------------------------------------------------------------------------------------


async def create_job(
    hub: HubApi,
    location: ClusterLocation,
    cluster: Manifest,
    choice: HostedSettings,
    *,
    first: bool,
) -> AutomationJob:
    """Makes the job: the HostedCluster and, the first time, a NodePool without nodes per node request.

    Later pools would have a release that the control plane has not reached yet; they come with their first node.
    """
    order = await hub.get_order(location)
    if order is None:
        raise Unavailable(
            f"there is no ClusterOrder {location.order_namespace}/{location.order} to hand on",
            reason="NoOrder",
        )
    pools = _pools(location, order, cluster, choice) if first else []
    manifests = [
        _with_kind(HOSTED_CLUSTERS, cluster),
        *(_with_kind(NODE_POOLS, pool) for pool in pools),
    ]
    number = compute_fingerprint([uid_of(order), cluster])
    return AutomationJob(number=number, order=redact_order(order), manifests=manifests)


async def run_create_job(
    hub: HubApi, location: ClusterLocation, cluster: Manifest, job: AutomationJob
) -> Manifest | Waiting:
    """Runs the job. Returns the HostedCluster once it contains all of the manifest; Waiting until then."""
    workshop = _get_automation(hub)
    outcome = await workshop.create(location.key, job)
    if isinstance(outcome, Waiting):
        return outcome
    existing = await hub.get_cluster(location)
    if existing is not None and contains_manifest(existing, cluster):
        return existing
    await workshop.forget(location.key)
    return Waiting("The control plane is asked for again.", 1.0, "StageUnknown")


def _pools(
    location: ClusterLocation, order: ObservedObject, cluster: Manifest, choice: HostedSettings
) -> list[Manifest]:
    pools: list[Manifest] = []
    for request in get_path(order, "spec", "nodeRequests") or ():
        node_set = str(request.get("nodeSet") or "")
        if not node_set:
            continue  # written by another tool, which names the node set itself
        host_type = (
            get_path(request, "bareMetal", "instanceType") or request.get("resourceClass") or ""
        )
        image = cluster["spec"]["release"]["image"]
        pool = cluster_manifests.render_node_pool(
            location, cluster, choice, node_set, str(host_type), image=image
        )
        check_pool(pool, cluster)
        pool["spec"]["replicas"] = 0
        pools.append(pool)
    return pools


# --- taking away -------------------------------------------------------------------------------


async def run_delete_job(
    hub: HubApi, location: ClusterLocation, pools: Sequence[Manifest], cluster: Manifest | None
) -> Waiting | None:
    """Runs the deletion job while objects are not being deleted yet or automation's finalizer is on the order.

    Returns None when neither is the case.
    """
    workshop = _get_automation(hub)
    order = await hub.get_order(location)
    has_finalizer = hub_names.AUTOMATION_FINALIZER in (
        metadata_of(order or {}).get("finalizers") or ()
    )
    references = [_reference(NODE_POOLS, pool) for pool in pools if not is_being_deleted(pool)]
    if cluster is not None and not is_being_deleted(cluster):
        references.append(_reference(HOSTED_CLUSTERS, cluster))
    if not references and not has_finalizer:
        return None
    job = AutomationJob(
        number=compute_fingerprint([uid_of(order or {}), "delete"]),
        order=redact_order(order) if order is not None else _minimal_order(location),
        manifests=references,
    )
    outcome = await workshop.delete(location.key, job)
    if isinstance(outcome, Waiting):
        return outcome
    # What we know was read before the job ran: the next call reads again and runs another job if needed.
    await workshop.forget(location.key)
    return Waiting("The control plane is being removed.", 1.0, "RemovingControlPlane")


def _reference(kind: KubeKind, obj: ObservedObject) -> Manifest:
    meta = {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)}
    return _with_kind(kind, {"metadata": meta})


def _minimal_order(location: ClusterLocation) -> Manifest:
    """Returns a ClusterOrder with only name and namespace, for an order that is already gone."""
    meta = {"name": location.order, "namespace": location.order_namespace}
    return _with_kind(CLUSTER_ORDERS, {"metadata": meta})


# --- what is shown -----------------------------------------------------------------------------


def redact_order(order: ObservedObject) -> Manifest:
    """Returns the order as it is on the hub, without secrets and without fields that change all the time.

    On a hub with `osac-compatible` the spec contains secrets in the clear, and automation stores and shows its input.
    """
    spec = {
        name: value for name, value in (order.get("spec") or {}).items() if name != "pullSecret"
    }
    hidden = get_path(spec, "boatyard", "secretParameters") or ()
    if hidden and spec.get("templateParameters"):
        spec["templateParameters"] = _remove_parameters(spec["templateParameters"], hidden)
    meta = {name: value for name, value in metadata_of(order).items() if name in _SHOWN_METADATA}
    if "annotations" in meta:
        meta["annotations"] = {
            name: value
            for name, value in meta["annotations"].items()
            if name != _LAST_APPLIED_ANNOTATION
        }
    return _with_kind(CLUSTER_ORDERS, {"metadata": meta, "spec": spec})


def _remove_parameters(text: str, hidden: Sequence[str]) -> str:
    try:
        parameters = json.loads(text)
    except ValueError:
        parameters = None
    if not isinstance(parameters, dict):
        return ""  # unreadable text may contain secrets
    return json.dumps({name: value for name, value in parameters.items() if name not in hidden})


def _with_kind(kind: KubeKind, manifest: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **manifest}


def compute_fingerprint(content: object) -> int:
    """Returns a number that identifies the content."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:_NUMBER_BYTES], "big") + 1


def _get_automation(hub: HubApi) -> ClusterAutomation:
    assert hub.automation is not None
    return hub.automation
