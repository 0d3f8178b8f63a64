"""Installs on a Kubernetes hub what orders need: our namespace, the hub's settings, our CRDs.

Called by the hub reconciler (the settings) and by `hub prepare` (all of it). Every function may be called repeatedly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from boatyard.kube.client import KubeClient
from boatyard.kube.cluster_identity import check_cluster_uid
from boatyard.kube.kinds import CONFIG_MAPS, CRDS, NAMESPACES
from boatyard.model import hub_names
from boatyard.model.backoff import Backoff
from boatyard.model.errors import Conflict, Exists, NotFound, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.collect import extract_schemas
from boatyard.resources.hubs.check.evaluate import format_settings, get_registered_hub_id
from boatyard.resources.hubs.check.model import Manifest
from boatyard.resources.hubs.settings import get_system_namespace

logger = logging.getLogger(__name__)

_OUR_LABELS = {hub_names.MANAGED_BY: hub_names.BOATYARD}
_SERVED_TIMEOUT_SECONDS = 10.0
_POLLING = Backoff(first=0.05, longest=0.5)


async def prepare_hub(client: KubeClient, hub: Hub, crds: Sequence[Manifest]) -> list[str]:
    """Installs what is missing and corrects what differs. Returns what was done, in sentences.

    Raises Refused with the hub's message when our rights do not suffice; earlier steps stay done. Raises
    Unavailable and does nothing when a different cluster answers than the one that was registered.
    """
    await check_cluster_uid(client, hub.status.cluster_uid)
    done = await _ensure_namespace(client, get_system_namespace(hub))
    for crd in crds:
        done += await _ensure_crd(client, crd)
    return done + await ensure_settings(client, hub)


async def ensure_settings(client: KubeClient, hub: Hub) -> list[str]:
    """Writes the ConfigMap that tells the operator which hub this is. Settings of another hub are left alone."""
    namespace = get_system_namespace(hub)
    done: list[str] = []
    data = {hub_names.HUB_CONFIG_KEY: format_settings(hub)}
    metadata = {"name": hub_names.HUB_CONFIG, "labels": _OUR_LABELS}
    try:
        config_map = await client.get(CONFIG_MAPS, hub_names.HUB_CONFIG, namespace)
    except NotFound:
        done += await _ensure_namespace(client, namespace)
        try:
            # Created, not applied: of two services that register this cluster at once, one fails and sees the other.
            body = {"metadata": metadata, "data": data}
            await client.create(CONFIG_MAPS, body, namespace)
        except Exists:
            return done
        return [*done, f"Wrote the hub's settings to {namespace}"]
    if config_map.get("data") == data or get_registered_hub_id(config_map) not in ("", hub.id):
        return done
    new_metadata = {**metadata, "resourceVersion": config_map["metadata"]["resourceVersion"]}
    try:
        await client.replace(CONFIG_MAPS, {"metadata": new_metadata, "data": data}, namespace)
    except Conflict:
        return done  # somebody else wrote it first; the next pass reads that
    return [*done, f"Changed the hub's settings in {namespace}"]


async def remove_settings(client: KubeClient, hub: Hub) -> None:
    """Deletes our ConfigMap, so that the cluster can be registered again. Settings of another hub are left alone."""
    namespace = get_system_namespace(hub)
    try:
        config_map = await client.get(CONFIG_MAPS, hub_names.HUB_CONFIG, namespace)
        if get_registered_hub_id(config_map) == hub.id:
            uid = config_map["metadata"]["uid"]
            await client.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, namespace, uid=uid)
    except (NotFound, Conflict):
        return


async def _ensure_namespace(client: KubeClient, name: str) -> list[str]:
    try:
        await client.get(NAMESPACES, name)
    except NotFound:
        try:
            await client.create(NAMESPACES, {"metadata": {"name": name, "labels": _OUR_LABELS}})
        except Exists:
            return []
        return [f"Created namespace {name}"]
    return []


async def _ensure_crd(client: KubeClient, crd: Manifest) -> list[str]:
    name = crd["metadata"]["name"]
    try:
        installed_crd = await client.get(CRDS, name)
    except NotFound:
        await client.apply(CRDS, name, _without_status(crd))
        await _wait_until_served(client, name)
        return [f"Installed {name}"]
    if extract_schemas(installed_crd) == extract_schemas(crd):
        return []
    await client.apply(CRDS, name, _without_status(crd))
    await _wait_until_served(client, name)
    return [f"Changed {name} to the one of this Boatyard"]


def _without_status(crd: Manifest) -> dict[str, object]:
    return {field: value for field, value in crd.items() if field != "status"}


async def _wait_until_served(client: KubeClient, name: str) -> None:
    pauses = _POLLING.pauses()
    try:
        async with asyncio.timeout(_SERVED_TIMEOUT_SECONDS):
            while True:
                status = (await client.get(CRDS, name)).get("status") or {}
                if any(
                    condition.get("type") == "Established" and condition.get("status") == "True"
                    for condition in status.get("conditions") or ()
                ):
                    return
                await asyncio.sleep(next(pauses))
    except TimeoutError:
        raise Unavailable(f"{name} is installed but not served yet; look again soon") from None
