"""How Kubernetes hubs are reached, and what is installed on them. Built by app; used by the reconciler and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from boatyard.kube.client import KubeClient
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import Manifest, Roles


class Clients(Protocol):
    async def client(self, hub: Hub) -> KubeClient:
        """The client for the hub's current credentials. Raises Unavailable, with a reason, when there can be none."""

    async def forget(self, hub_id: str) -> None:
        """Closes the client of a hub that was deleted."""


@dataclass(frozen=True)
class HubAccess:
    clients: Clients
    roles: Roles
    crds: Sequence[Manifest]
