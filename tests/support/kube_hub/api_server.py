"""A real API server that can be a hub: our CRDs are on it, controllers are not. For suites that need a Kubernetes hub.

Each test has namespaces of its own on it, so one serves a whole session.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from boatyard.assets import DEFAULT_VERSION
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CRDS, NAMESPACES
from boatyard.model.errors import BoatyardError, NotFound
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kube_hub.crds import crds

_NUMBERS = itertools.count(1)
_PATIENCE = 400  # looks, 25 ms apart


@contextmanager
def hub_plane(
    version: str = DEFAULT_VERSION,
    api_flags: Sequence[str] | Callable[[ControlPlane], Sequence[str]] = (),
    manifests: Sequence[dict[str, Any]] | None = None,
) -> Iterator[ControlPlane]:
    """One with the CRDs installed; skips where the programs are not."""
    with control_plane(version, api_flags) as plane:
        asyncio.run(install(plane, crds() if manifests is None else manifests))
        yield plane


async def install(plane: ControlPlane, manifests: Sequence[dict[str, Any]]) -> None:
    client = admin(plane)
    try:
        for manifest in manifests:
            await client.apply(CRDS, manifest["metadata"]["name"], manifest)
        for manifest in manifests:
            await _until_established(client, manifest["metadata"]["name"])
        for kind in (CLUSTER_ORDERS, CLAIMS, LEFTOVERS):
            await _until_served(client, kind)
    finally:
        await client.close()


def admin(plane: ControlPlane, **how: Any) -> KubeClient:
    """A client that may do anything."""
    return KubeClient(read_kubeconfig(plane.kubeconfig()), **{"timeout": 30, **how})


async def hang_up(*clients: KubeClient) -> None:
    """Closes them, and gives connections that were cut off in mid-request the moment TLS takes to part."""
    for client in clients:
        await client.close()
    await asyncio.sleep(0.05)


async def new_place(client: KubeClient, **how: Any) -> tuple[HubOrderSettings, str]:
    """A hub of one's own on a shared API server: one namespace for its orders, and one for the rest."""
    number = f"{os.getpid()}-{next(_NUMBERS)}"
    orders, system = f"orders-{number}", f"system-{number}"
    for name in (orders, system):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    said = {"hub": "hub-1", "shared_namespace": orders, "system_namespace": system, **how}
    return HubOrderSettings(**said), system


async def until(holds: Callable[[], Any], what: str = "") -> None:
    """Looks again and again until it is so. For what comes by itself, soon."""
    for _ in range(_PATIENCE):
        answer = holds()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return
        await asyncio.sleep(0.025)
    raise AssertionError(f"it did not come true: {what or holds}")


async def _until_established(client: KubeClient, name: str) -> None:
    async def established() -> bool:
        crd = await client.get(CRDS, name)
        found = (crd.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in found)

    await until(established, f"{name} is established")


async def _until_served(client: KubeClient, kind: Any) -> None:
    """An API server that has taken a kind in answers 404 for it a little longer."""

    async def served() -> bool:
        try:
            await client.list(kind)
        except (NotFound, BoatyardError):
            return False
        return True

    await until(served, f"{kind.plural} are served")
