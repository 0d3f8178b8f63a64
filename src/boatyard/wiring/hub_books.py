"""The service's access to the order books of Kubernetes hubs. Used by its reconcilers, order watch and API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from boatyard.kube.client import KubeClient
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import Credentials, Order
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.kube.book import KubeOrderBook, Secrets, always
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.resources.hubs.settings import is_kubernetes, system_namespace
from boatyard.wiring.hub_clients import HubClients


class HubBooks:
    """Order books by hub. The connection to a hub is kept while its client and its settings are the same."""

    def __init__(self, ledger: Ledger, clients: HubClients) -> None:
        self._ledger = ledger
        self._clients = clients
        self._connections: dict[str, tuple[KubeClient, Place, HubConnection]] = {}
        self._seen: dict[str, tuple[float, Hub | None]] = {}
        self.fresh_seconds = 2.0  # for so long a hub is not read again

    async def keeps(self, hub_id: str) -> bool:
        """Whether the hub keeps its own orders; otherwise they are in the ledger."""
        hub = await self.hub(hub_id)
        return hub is not None and is_kubernetes(hub)

    async def hub(self, hub_id: str) -> Hub | None:
        """The hub, also when it was removed: its orders are still there. At most `fresh_seconds` old."""
        now = asyncio.get_running_loop().time()
        until, hub = self._seen.get(hub_id, (0.0, None))
        if now >= until:
            hub = await self._ledger.documents.get(
                Hub, hub_id
            ) or await self._ledger.documents.archived(Hub, hub_id)
            self._seen[hub_id] = now + self.fresh_seconds, hub
        return hub

    async def book(
        self,
        hub_id: str,
        *,
        check: Callable[[], None] = always,
        secrets: Secrets = Secrets.NONE,
    ) -> KubeOrderBook | None:
        """The order book of a hub; None when the ledger keeps its orders. Unavailable when no client can be made.

        The calls of the book are Unavailable, reason OtherCluster, when another cluster answers at the hub's address.
        """
        hub = await self.hub(hub_id)
        if hub is None or not is_kubernetes(hub):
            return None
        return KubeOrderBook(await self.connection(hub), check=check, secrets=secrets)

    async def connection(self, hub: Hub) -> HubConnection:
        client = await self._clients.client(hub)
        system = system_namespace(hub)
        place = Place.of(hub.id, hub.spec.settings, system_namespace=system)
        entry = self._connections.get(hub.id)
        if entry is None or entry[0] is not client or entry[1] != place:
            connection = HubConnection(client, place, system_namespace=system)
            self._connections[hub.id] = entry = client, place, connection
        entry[2].cluster_uid = hub.status.cluster_uid
        return entry[2]

    async def credentials(self, order: Order) -> Credentials | None:
        """The credentials of the order's cluster, read from its hub; None when the ledger keeps them."""
        book = await self.book(order.spec.hub, secrets=Secrets.ALL)
        if book is None:
            return None
        hub_order = await book.get(order.id)
        return hub_order.status.credentials if hub_order is not None else Credentials()
