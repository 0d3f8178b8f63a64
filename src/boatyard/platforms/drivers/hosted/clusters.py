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
from boatyard.platforms.drivers.hosted import automated, reading, rendering, versions
from boatyard.platforms.drivers.hosted.checking import (
    check_cluster,
    check_pull_secret,
    check_unchanged,
)
from boatyard.platforms.drivers.hosted.hub import Hub, together
from boatyard.platforms.drivers.hosted.kinds import (
    HOSTED_CLUSTERS,
    NODE_POOLS,
    Manifest,
    Seen,
    at,
    generation_of,
    is_leaving,
    uid_of,
)
from boatyard.platforms.drivers.hosted.rendering import Place, Rendered, covers
from boatyard.platforms.drivers.hosted.settings import (
    AGENT,
    KUBEVIRT,
    Choice,
    choose,
    template_part,
)
from boatyard.platforms.drivers.hosted.slots import read_slots
from boatyard.platforms.port import Access, ClusterWanted, Rest

LOOK_AGAIN = 3.0


async def ensure(hub: Hub, key: str, desired: ClusterWanted) -> Outcome:
    """Does the next part of creating or correcting the cluster. Checks everything before it writes anything."""
    _check_offered(desired)
    place = await hub.locate(key)
    existing, namespace = await together(hub.cluster(place), hub.get(NAMESPACES, place.namespace))
    for kind, obj in ((NAMESPACES, namespace), (HOSTED_CLUSTERS, existing)):
        if obj is not None:
            rendering.refuse_stranger(place, kind, obj)
            if is_leaving(obj):
                return Waiting("The cluster of before is being removed.", LOOK_AGAIN, "Deleting")
    rendered = await _wish(hub, place, desired, existing)
    pools = await hub.pools(place) if existing is not None else []
    await _check_version(hub, desired, rendered, existing, pools)
    if existing is None or not covers(existing, rendered.cluster):
        written = await _write(hub, place, rendered, namespace, existing)
        if isinstance(written, Waiting):
            return written
        if existing is None or generation_of(written) != generation_of(existing):
            return Waiting("The control plane has been asked for.", 2.0, "StageUnknown")
        existing = written  # only labels or annotations were restored
    return await _judge(hub, place, desired, rendered, existing, pools)


def _check_offered(desired: ClusterWanted) -> None:
    if desired.rest != Rest.AWAKE:
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
class _Wish:
    """The manifests that one cluster should have on the hub, and the choices behind them."""

    choice: Choice
    image: str
    cluster: Manifest
    inputs: tuple[Rendered, ...] = field(repr=False)


async def _wish(hub: Hub, place: Place, desired: ClusterWanted, existing: Seen | None) -> _Wish:
    immutable = rendering.remembered(existing)[1] if existing is not None else None
    choice = choose(template_part(desired.settings), hub.settings, immutable)
    if choice.platform == KUBEVIRT:
        for host_type in desired.host_types:
            choice.vm_size(host_type)
    image = rendering.release_image(desired, choice)
    pull_text = desired.pull_secret or await _hubs_pull_secret(hub, choice)
    check_pull_secret(pull_text)
    pull_name = await _input_name(
        hub,
        place,
        base=hub_names.pull_secret_name(place.order),
        present=at(existing, "spec", "pullSecret", "name"),
        entry=".dockerconfigjson",
        text=pull_text,
    )
    secrets = [rendering.pull_secret(place, pull_name, pull_text)]
    key_name = ""
    if desired.ssh_public_key:
        key_name = await _input_name(
            hub,
            place,
            base=hub_names.ssh_key_name(place.order),
            present=at(existing, "spec", "sshKey", "name"),
            entry="id_rsa.pub",
            text=desired.ssh_public_key,
        )
        secrets.append(rendering.ssh_key(place, key_name, desired.ssh_public_key))
    cluster = rendering.hosted_cluster(
        place, desired, choice, image=image, pull_secret_name=pull_name, ssh_key_name=key_name
    )
    check_cluster(cluster)
    if existing is not None:
        check_unchanged(existing, cluster)
    return _Wish(choice=choice, image=image, cluster=cluster, inputs=tuple(secrets))


async def _hubs_pull_secret(hub: Hub, choice: Choice) -> str:
    remedy = "give the order one, or set hosted.pull-secret for the hub"
    if not choice.pull_secret:
        problem = Violation("pull_secret", "there is none", remedy)
        raise Refused("", problem, reason="NoPullSecret")
    namespace, _, name = choice.pull_secret.partition("/")
    data = await hub.secret(name, namespace)
    if data is None or ".dockerconfigjson" not in data:
        raise Unavailable(
            f"the hub's pull secret {choice.pull_secret} is not there; {remedy}",
            reason="NoPullSecret",
        )
    return b64decode(data[".dockerconfigjson"]).decode(errors="replace")


async def _input_name(
    hub: Hub, place: Place, *, base: str, present: str | None, entry: str, text: str
) -> str:
    """Returns the Secret's name: the present one while its text is unchanged, otherwise a new one."""
    if not present:
        return base
    data = await hub.secret(present, place.namespace)
    same = data is None or data.get(entry) == b64encode(text.encode()).decode()
    return present if same else rendering.changed_name(base, text)


async def _check_version(
    hub: Hub, desired: ClusterWanted, rendered: _Wish, existing: Seen | None, pools: list[Manifest]
) -> None:
    """Checks the desired version, unless HyperShift has already been asked for it."""
    if existing is not None and at(existing, "spec", "release", "image") == rendered.image:
        return
    versions.check_supported(desired.version, await hub.supported_versions())
    present = reading.running_version(existing) if existing is not None else ""
    if present:
        nodes = [str(version) for pool in pools if (version := at(pool, "status", "version"))]
        versions.check_step(present, desired.version, nodes)


async def _write(
    hub: Hub, place: Place, rendered: _Wish, namespace: Seen | None, existing: Seen | None
) -> Manifest | Waiting:
    """Writes all objects in the order of their dependencies."""
    if hub.workshop is None:
        await _prepare(hub, place, rendered, namespace)
        return await hub.apply(Rendered(HOSTED_CLUSTERS, rendered.cluster))
    job = await automated.create_job(
        hub, place, rendered.cluster, rendered.choice, first=existing is None
    )
    # Called often while the job runs: the prerequisites are written only when one of these has changed.
    contents = automated.number_of([secret.manifest for secret in rendered.inputs])
    fingerprint = (job.number, contents, uid_of(namespace) if namespace is not None else "")
    if namespace is None or hub.prepared.get(place.key) != fingerprint:
        await _prepare(hub, place, rendered, namespace)
        hub.prepared[place.key] = fingerprint
    return await automated.create(hub, place, rendered.cluster, job)


async def _prepare(hub: Hub, place: Place, rendered: _Wish, namespace: Seen | None) -> None:
    """Writes the namespace, role, account and secrets that a HostedCluster needs."""
    if rendered.choice.platform == AGENT:
        await _ensure_agent_role(hub, rendered.choice.agent_namespace)
    first, *prerequisites = rendering.ground(place)
    if not covers(namespace, first.manifest):
        await hub.apply(first)
    hub.remember(place)
    await hub.apply_all((*prerequisites, *rendered.inputs))


async def _ensure_agent_role(hub: Hub, namespace: str) -> None:
    role, agent_namespace = await together(
        hub.get(ROLES, rendering.AGENT_ROLE, namespace), hub.get(NAMESPACES, namespace)
    )
    if role is not None:
        return
    if agent_namespace is None:
        raise Unavailable(
            f"the hub has no namespace {namespace} (hosted.agent-namespace)", reason="NoAgents"
        )
    await hub.apply(rendering.agent_role(namespace))


async def _judge(
    hub: Hub,
    place: Place,
    desired: ClusterWanted,
    rendered: _Wish,
    cluster: Manifest,
    pools: list[Manifest],
) -> Outcome:
    """Returns the outcome that follows from what HyperShift reports."""
    await _take_back_refused_release(hub, rendered, cluster)
    reading.check_not_blocked(cluster)
    if not reading.is_available(cluster):
        stage = reading.stage_of(cluster)
        return Waiting(stage.words, LOOK_AGAIN, stage.reason)
    nodes = any(at(pool, "spec", "replicas") or read_slots(pool) for pool in pools)
    release = reading.Release(desired.version, rendered.image)
    image_version = reading.version_of_image(cluster, rendered.image)
    if image_version and image_version != desired.version:
        remedy = "give the version the image of its own release"
        message = f"the image is version {image_version}, not {desired.version}"
        raise Refused("", Violation("release_image", message, remedy), reason="WrongRelease")
    if not reading.is_settled_at(cluster, release, nodes=nodes):
        return Waiting("The control plane is being updated.", LOOK_AGAIN, "Updating")
    return await _update_pools(hub, place, rendered, cluster, pools, desired.version)


async def _take_back_refused_release(hub: Hub, rendered: _Wish, cluster: Manifest) -> None:
    """Sets the release back to the running one when HyperShift refuses the new one, and raises Refused."""
    refusal = reading.blocked_release(cluster)
    running = reading.completed(cluster)
    if refusal is None or running is None or not running.image or running.image == rendered.image:
        return
    if hub.workshop is not None:
        # Written directly, although automation writes clusters here: its run would end after this call returns,
        # and until then the refused release would still look like the desired one.
        await hub.change(HOSTED_CLUSTERS, cluster, {"spec": {"release": {"image": running.image}}})
    else:
        previous = {
            **rendered.cluster,
            "spec": {**rendered.cluster["spec"], "release": {"image": running.image}},
        }
        await hub.apply(Rendered(HOSTED_CLUSTERS, previous))
    raise Refused(
        f"HyperShift does not roll out {rendered.image}: {refusal.message or refusal.reason}; "
        f"the cluster runs {running.version} as before",
        reason="UpgradeFailed",
    )


async def _update_pools(
    hub: Hub,
    place: Place,
    rendered: _Wish,
    cluster: Manifest,
    pools: list[Manifest],
    version: str,
) -> Outcome:
    """Moves the node pools to the release of their control plane, which is there already."""
    waiting = False
    for pool in pools:
        if is_leaving(pool) or not rendering.is_of(place, pool):
            continue
        manifest = rendering.updated_pool(
            place, cluster, rendered.choice, pool, image=rendered.image
        )
        if not covers(pool, manifest):
            written = await hub.apply(Rendered(NODE_POOLS, manifest))
            if generation_of(written) != generation_of(pool):
                waiting = True
                continue
        reading.check_pool_not_blocked(pool)
        # A pool without nodes has nothing to update and reports no version.
        has_nodes = bool(at(pool, "spec", "replicas"))
        waiting = waiting or (
            has_nodes and not reading.is_pool_updated(pool, rendered.image, version)
        )
    if waiting:
        return Waiting("The nodes are being updated.", LOOK_AGAIN, "UpdatingNodes")
    return Done({"version": version})


# --- access ------------------------------------------------------------------------------------


async def access(hub: Hub, key: str) -> Access:
    place = await hub.find(key)
    cluster = await hub.cluster(place) if place is not None else None
    if place is None or cluster is None or not rendering.is_of(place, cluster):
        raise NotFound(f"there is no hosted cluster {key}")
    kubeconfig = await _secret_text(hub, place, cluster, "kubeconfig", "kubeconfig")
    if not kubeconfig:
        raise NotFound(f"cluster {key} has no kubeconfig yet")
    password = await _secret_text(hub, place, cluster, "kubeadminPassword", "password")
    return Access(
        api_url=_server(kubeconfig, key),
        console_url=_console(cluster),
        kubeconfig=kubeconfig,
        username="kubeadmin" if password else "",
        password=password,
    )


async def _secret_text(hub: Hub, place: Place, cluster: Seen, field: str, entry: str) -> str:
    name = reading.secret_name(cluster, field)
    data: Mapping[str, str] | None = await hub.secret(name, place.namespace) if name else None
    return b64decode((data or {}).get(entry, "")).decode(errors="replace")


def _server(kubeconfig: str, key: str) -> str:
    try:
        return str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        # Not chained: the parser's message quotes the kubeconfig.
        raise Unavailable(f"the kubeconfig of {key} cannot be read", reason="NoAccess") from None


def _console(cluster: Seen) -> str:
    base = at(cluster, "spec", "dns", "baseDomain")
    if not base:
        return ""
    prefix = at(cluster, "spec", "dns", "baseDomainPrefix")
    domain = f"{prefix}.{base}" if prefix else base
    return f"https://console-openshift-console.apps.{domain}"
