"""The service's access to the order books of Kubernetes hubs. Used by its reconcilers, order watch and API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from boatyard.kube.client import KubeClient
from boatyard.ledger.ledger import Ledger
from boatyard.model.generated.boatyard import Credentials, Order
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.kube.book import KubeOrderBook, SecretScope, skip_lease_check
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.resources.hubs.settings import get_system_namespace, is_kubernetes
from boatyard.wiring.hub_cache import HubCache
from boatyard.wiring.hub_clients import HubClients


@asynccontextmanager
async def open_hub_books(ledger: Ledger) -> AsyncIterator[HubOrderBooks]:
    """The order books for one process, with one cache and one client per hub. Closes the clients at the end."""
    clients = HubClients()
    try:
        yield HubOrderBooks(HubCache(ledger), clients)
    finally:
        await clients.close()


class HubOrderBooks:
    """Order books by hub. The connection to a hub is kept while its client and its settings are the same."""

    def __init__(self, hubs: HubCache, clients: HubClients) -> None:
        self.hubs = hubs
        self.clients = clients
        self._connections: dict[str, tuple[KubeClient, HubOrderSettings, HubConnection]] = {}

    async def stores_orders(self, hub_id: str) -> bool:
        """Whether the hub keeps its own orders; otherwise they are in the ledger."""
        hub = await self.hubs.known(hub_id)
        return hub is not None and is_kubernetes(hub)

    async def open_book(
        self,
        hub_id: str,
        *,
        check: Callable[[], None] = skip_lease_check,
        secrets: SecretScope = SecretScope.NONE,
    ) -> KubeOrderBook | None:
        """The order book of a hub; None when the ledger keeps its orders. Unavailable when no client can be made.

        The calls of the book are Unavailable, reason OtherCluster, when another cluster answers at the hub's address.
        """
        hub = await self.hubs.known(hub_id)
        if hub is None or not is_kubernetes(hub):
            return None
        return KubeOrderBook(await self.connect(hub), check=check, secrets=secrets)

    async def connect(self, hub: Hub) -> HubConnection:
        client = await self.clients.client(hub)
        system = get_system_namespace(hub)
        place = HubOrderSettings.from_settings(hub.id, hub.spec.settings, system_namespace=system)
        entry = self._connections.get(hub.id)
        if entry is None or entry[0] is not client or entry[1] != place:
            connection = HubConnection(client, place, system_namespace=system)
            self._connections[hub.id] = entry = client, place, connection
        entry[2].cluster_uid = hub.status.cluster_uid
        return entry[2]

    async def read_credentials(self, order: Order) -> Credentials | None:
        """The credentials of the order's cluster, read from its hub; None when the ledger keeps them."""
        book = await self.open_book(order.spec.hub, secrets=SecretScope.ALL)
        if book is None:
            return None
        hub_order = await book.get(order.id)
        return hub_order.status.credentials if hub_order is not None else Credentials()
