"""How hubs are reached, and what is installed on them. Put together by app; used by the reconciler and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from boatyard.kube.client import KubeClient
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import Manifest, Roles


class Clients(Protocol):
    async def client(self, hub: Hub) -> KubeClient:
        """The hub's client, for the credentials it has now. Unavailable, with a reason, when there can be none."""

    async def forget(self, hub_id: str) -> None:
        """Lets go of the client of a hub that is gone."""


@dataclass(frozen=True)
class HubAccess:
    clients: Clients
    roles: Roles
    crds: Sequence[Manifest]
