"""Creates and corrects control planes, and reads their access. Called by the driver."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from boatyard.kube.kinds import NAMESPACES, ROLES
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable, Violation
from boatyard.model.outcome import Done, Outcome, Waiting
from boatyard.platforms.drivers.hosted import (
    automation_jobs,
    cluster_manifests,
    hypershift_status,
    versions,
)
from boatyard.platforms.drivers.hosted.cluster_manifests import (
    ClusterLocation,
    RenderedObject,
    contains_manifest,
)
from boatyard.platforms.drivers.hosted.hub_api import HubApi, await_both
from boatyard.platforms.drivers.hosted.kinds import (
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    ObservedObject,
    generation_of,
    get_path,
    is_being_deleted,
    uid_of,
)
from boatyard.platforms.drivers.hosted.settings import (
    AGENT,
    KUBEVIRT,
    HostedSettings,
    resolve_settings,
    select_hosted_settings,
)
from boatyard.platforms.drivers.hosted.slots import read_slots
from boatyard.platforms.drivers.hosted.validation import (
    check_cluster,
    check_pull_secret,
    check_unchanged,
)
from boatyard.platforms.port import ClusterAccess, DesiredCluster, RestMode

LOOK_AGAIN = 3.0


async def ensure(hub: HubApi, key: str, desired: DesiredCluster) -> Outcome:
    """Does the next part of creating or correcting the cluster. Checks everything before it writes anything."""
    _check_offered(desired)
    place = await hub.locate(key)
    existing, namespace = await await_both(
        hub.get_cluster(place), hub.get(NAMESPACES, place.namespace)
    )
    for kind, obj in ((NAMESPACES, namespace), (HOSTED_CLUSTERS, existing)):
        if obj is not None:
            cluster_manifests.refuse_other_owner(place, kind, obj)
            if is_being_deleted(obj):
                return Waiting("The cluster of before is being removed.", LOOK_AGAIN, "Deleting")
    rendered = await _render_cluster(hub, place, desired, existing)
    pools = await hub.list_pools(place) if existing is not None else []
    await _check_version(hub, desired, rendered, existing, pools)
    if existing is None or not contains_manifest(existing, rendered.cluster):
        written = await _write(hub, place, rendered, namespace, existing)
        if isinstance(written, Waiting):
            return written
        if existing is None or generation_of(written) != generation_of(existing):
            return Waiting("The control plane has been asked for.", 2.0, "StageUnknown")
        existing = written  # only labels or annotations were restored
    return await _check_progress(hub, place, desired, rendered, existing, pools)


def _check_offered(desired: DesiredCluster) -> None:
    if desired.rest != RestMode.AWAKE:
        # Pausing stops HyperShift's reconciling, not the cluster; without nodes its workloads would be lost.
        raise Refused(
            "",
            Violation("rest", "hosted clusters cannot rest", "delete it, or let it run"),
            reason="NoRest",
        )
    if desired.restore is not None:
        raise Refused(
            "",
            Violation("restore", "hosted clusters have no backups", "order it without one"),
            reason="NoBackups",
        )


@dataclass(frozen=True)
class _RenderedCluster:
    """The manifests that one cluster should have on the hub, and the choices behind them."""

    settings: HostedSettings
    image: str
    cluster: Manifest
    secrets: tuple[RenderedObject, ...] = field(repr=False)


async def _render_cluster(
    hub: HubApi, location: ClusterLocation, desired: DesiredCluster, existing: ObservedObject | None
) -> _RenderedCluster:
    immutable = (
        cluster_manifests.read_stored_settings(existing)[1] if existing is not None else None
    )
    choice = resolve_settings(select_hosted_settings(desired.settings), hub.settings, immutable)
    if choice.platform == KUBEVIRT:
        for host_type in desired.host_types:
            choice.vm_size(host_type)
    image = cluster_manifests.choose_release_image(desired, choice)
    pull_text = desired.pull_secret or await _read_hub_pull_secret(hub, choice)
    check_pull_secret(pull_text)
    pull_name = await _choose_secret_name(
        hub,
        location,
        base=hub_names.pull_secret_name(location.order),
        present=get_path(existing, "spec", "pullSecret", "name"),
        entry=".dockerconfigjson",
        text=pull_text,
    )
    secrets = [cluster_manifests.render_pull_secret(location, pull_name, pull_text)]
    key_name = ""
    if desired.ssh_public_key:
        key_name = await _choose_secret_name(
            hub,
            location,
            base=hub_names.ssh_key_name(location.order),
            present=get_path(existing, "spec", "sshKey", "name"),
            entry="id_rsa.pub",
            text=desired.ssh_public_key,
        )
        secrets.append(cluster_manifests.render_ssh_key(location, key_name, desired.ssh_public_key))
    cluster = cluster_manifests.render_hosted_cluster(
        location, desired, choice, image=image, pull_secret_name=pull_name, ssh_key_name=key_name
    )
    check_cluster(cluster)
    if existing is not None:
        check_unchanged(existing, cluster)
    return _RenderedCluster(settings=choice, image=image, cluster=cluster, secrets=tuple(secrets))


async def _read_hub_pull_secret(hub: HubApi, choice: HostedSettings) -> str:
    remedy = "give the order one, or set hosted.pull-secret for the hub"
    if not choice.pull_secret:
        problem = Violation("pull_secret", "there is none", remedy)
        raise Refused("", problem, reason="NoPullSecret")
    namespace, _, name = choice.pull_secret.partition("/")
    data = await hub.read_secret(name, namespace)
    if data is None or ".dockerconfigjson" not in data:
        raise Unavailable(
            f"the hub's pull secret {choice.pull_secret} is not there; {remedy}",
            reason="NoPullSecret",
        )
    return b64decode(data[".dockerconfigjson"]).decode(errors="replace")


async def _choose_secret_name(
    hub: HubApi, location: ClusterLocation, *, base: str, present: str | None, entry: str, text: str
) -> str:
    """Returns the Secret's name: the present one while its text is unchanged, otherwise a new one."""
    if not present:
        return base
    data = await hub.read_secret(present, location.namespace)
    same = data is None or data.get(entry) == b64encode(text.encode()).decode()
    return present if same else cluster_manifests.make_new_secret_name(base, text)


async def _check_version(
    hub: HubApi,
    desired: DesiredCluster,
    rendered: _RenderedCluster,
    existing: ObservedObject | None,
    pools: list[Manifest],
) -> None:
    """Checks the desired version, unless HyperShift has already been asked for it."""
    if existing is not None and get_path(existing, "spec", "release", "image") == rendered.image:
        return
    versions.check_supported(desired.version, await hub.read_supported_versions())
    present = hypershift_status.running_version(existing) if existing is not None else ""
    if present:
        nodes = [str(version) for pool in pools if (version := get_path(pool, "status", "version"))]
        versions.check_step(present, desired.version, nodes)


async def _write(
    hub: HubApi,
    location: ClusterLocation,
    rendered: _RenderedCluster,
    namespace: ObservedObject | None,
    existing: ObservedObject | None,
) -> Manifest | Waiting:
    """Writes all objects in the order of their dependencies."""
    if hub.automation is None:
        await _write_prerequisites(hub, location, rendered, namespace)
        return await hub.apply(RenderedObject(HOSTED_CLUSTERS, rendered.cluster))
    job = await automation_jobs.create_job(
        hub, location, rendered.cluster, rendered.settings, first=existing is None
    )
    # Called often while the job runs: the prerequisites are written only when one of these has changed.
    contents = automation_jobs.compute_fingerprint([secret.manifest for secret in rendered.secrets])
    fingerprint = (job.number, contents, uid_of(namespace) if namespace is not None else "")
    if namespace is None or hub.prepared.get(location.key) != fingerprint:
        await _write_prerequisites(hub, location, rendered, namespace)
        hub.prepared[location.key] = fingerprint
    return await automation_jobs.run_create_job(hub, location, rendered.cluster, job)


async def _write_prerequisites(
    hub: HubApi,
    location: ClusterLocation,
    rendered: _RenderedCluster,
    namespace: ObservedObject | None,
) -> None:
    """Writes the namespace, role, account and secrets that a HostedCluster needs."""
    if rendered.settings.platform == AGENT:
        await _ensure_agent_role(hub, rendered.settings.agent_namespace)
    first, *prerequisites = cluster_manifests.render_prerequisites(location)
    if not contains_manifest(namespace, first.manifest):
        await hub.apply(first)
    hub.remember_location(location)
    await hub.apply_all((*prerequisites, *rendered.secrets))


async def _ensure_agent_role(hub: HubApi, namespace: str) -> None:
    role, agent_namespace = await await_both(
        hub.get(ROLES, cluster_manifests.AGENT_ROLE, namespace), hub.get(NAMESPACES, namespace)
    )
    if role is not None:
        return
    if agent_namespace is None:
        raise Unavailable(
            f"the hub has no namespace {namespace} (hosted.agent-namespace)", reason="NoAgents"
        )
    await hub.apply(cluster_manifests.render_agent_role(namespace))


async def _check_progress(
    hub: HubApi,
    location: ClusterLocation,
    desired: DesiredCluster,
    rendered: _RenderedCluster,
    cluster: Manifest,
    pools: list[Manifest],
) -> Outcome:
    """Returns the outcome that follows from what HyperShift reports."""
    await _revert_refused_release(hub, rendered, cluster)
    hypershift_status.check_not_blocked(cluster)
    if not hypershift_status.is_available(cluster):
        stage = hypershift_status.stage_of(cluster)
        return Waiting(stage.message, LOOK_AGAIN, stage.reason)
    nodes = any(get_path(pool, "spec", "replicas") or read_slots(pool) for pool in pools)
    release = hypershift_status.HostedRelease(desired.version, rendered.image)
    image_version = hypershift_status.version_of_image(cluster, rendered.image)
    if image_version and image_version != desired.version:
        remedy = "give the version the image of its own release"
        message = f"the image is version {image_version}, not {desired.version}"
        raise Refused("", Violation("release_image", message, remedy), reason="WrongRelease")
    if not hypershift_status.has_reached_release(cluster, release, nodes=nodes):
        return Waiting("The control plane is being updated.", LOOK_AGAIN, "Updating")
    return await _update_pools(hub, location, rendered, cluster, pools, desired.version)


async def _revert_refused_release(
    hub: HubApi, rendered: _RenderedCluster, cluster: Manifest
) -> None:
    """Sets the release back to the running one when HyperShift refuses the new one, and raises Refused."""
    refusal = hypershift_status.blocked_release(cluster)
    running = hypershift_status.find_completed_release(cluster)
    if refusal is None or running is None or not running.image or running.image == rendered.image:
        return
    if hub.automation is not None:
        # Written directly, although automation writes clusters here: its run would end after this call returns,
        # and until then the refused release would still look like the desired one.
        await hub.patch_object(
            HOSTED_CLUSTERS, cluster, {"spec": {"release": {"image": running.image}}}
        )
    else:
        previous = {
            **rendered.cluster,
            "spec": {**rendered.cluster["spec"], "release": {"image": running.image}},
        }
        await hub.apply(RenderedObject(HOSTED_CLUSTERS, previous))
    raise Refused(
        f"HyperShift does not roll out {rendered.image}: {refusal.message or refusal.reason}; "
        f"the cluster runs {running.version} as before",
        reason="UpgradeFailed",
    )


async def _update_pools(
    hub: HubApi,
    location: ClusterLocation,
    rendered: _RenderedCluster,
    cluster: Manifest,
    pools: list[Manifest],
    version: str,
) -> Outcome:
    """Moves the node pools to the release of their control plane, which is there already."""
    waiting = False
    for pool in pools:
        if is_being_deleted(pool) or not cluster_manifests.belongs_to(location, pool):
            continue
        manifest = cluster_manifests.render_updated_pool(
            location, cluster, rendered.settings, pool, image=rendered.image
        )
        if not contains_manifest(pool, manifest):
            written = await hub.apply(RenderedObject(NODE_POOLS, manifest))
            if generation_of(written) != generation_of(pool):
                waiting = True
                continue
        hypershift_status.check_pool_not_blocked(pool)
        # A pool without nodes has nothing to update and reports no version.
        has_nodes = bool(get_path(pool, "spec", "replicas"))
        waiting = waiting or (
            has_nodes and not hypershift_status.is_pool_updated(pool, rendered.image, version)
        )
    if waiting:
        return Waiting("The nodes are being updated.", LOOK_AGAIN, "UpdatingNodes")
    return Done({"version": version})


# --- access ------------------------------------------------------------------------------------


async def read_access(hub: HubApi, key: str) -> ClusterAccess:
    place = await hub.find_location(key)
    cluster = await hub.get_cluster(place) if place is not None else None
    if place is None or cluster is None or not cluster_manifests.belongs_to(place, cluster):
        raise NotFound(f"there is no hosted cluster {key}")
    kubeconfig = await _secret_text(hub, place, cluster, "kubeconfig", "kubeconfig")
    if not kubeconfig:
        raise NotFound(f"cluster {key} has no kubeconfig yet")
    password = await _secret_text(hub, place, cluster, "kubeadminPassword", "password")
    return ClusterAccess(
        api_url=_server(kubeconfig, key),
        console_url=_console(cluster),
        kubeconfig=kubeconfig,
        username="kubeadmin" if password else "",
        password=password,
    )


async def _secret_text(
    hub: HubApi, location: ClusterLocation, cluster: ObservedObject, field: str, entry: str
) -> str:
    name = hypershift_status.secret_name(cluster, field)
    data: Mapping[str, str] | None = (
        await hub.read_secret(name, location.namespace) if name else None
    )
    return b64decode((data or {}).get(entry, "")).decode(errors="replace")


def _server(kubeconfig: str, key: str) -> str:
    try:
        return str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        # Not chained: the parser's message quotes the kubeconfig.
        raise Unavailable(f"the kubeconfig of {key} cannot be read", reason="NoAccess") from None


def _console(cluster: ObservedObject) -> str:
    base = get_path(cluster, "spec", "dns", "baseDomain")
    if not base:
        return ""
    prefix = get_path(cluster, "spec", "dns", "baseDomainPrefix")
    domain = f"{prefix}.{base}" if prefix else base
    return f"https://console-openshift-console.apps.{domain}"
