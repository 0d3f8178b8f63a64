"""What all order books of one Kubernetes hub share: the client, caches, and limits on concurrency and time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from boatyard.kube.client import KubeClient
from boatyard.kube.cluster_identity import check_cluster_uid
from boatyard.kube.errors import to_order_error
from boatyard.model.errors import Refused, Unavailable
from boatyard.orderbook.kube.claims import ClaimCache, HubClaims
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.orderbook.kube.objects import HubObjects

CALL_SECONDS = 15.0  # for one verb of the order book, all its requests together
MAX_CONCURRENT_CALLS = 8  # verbs under way on one hub
ENTRY_SECONDS = 5.0  # how long a verb waits until it may start
_LARGEST_CACHE = 1024


class HubConnection:
    """The connection to one hub, one per process. A slow or dead hub blocks few workers, and none for long."""

    def __init__(
        self,
        client: KubeClient,
        order_settings: HubOrderSettings,
        *,
        system_namespace: str,
        known_claims: ClaimCache | None = None,
        at_once: int = MAX_CONCURRENT_CALLS,
        call_seconds: float = CALL_SECONDS,
        entry_seconds: float = ENTRY_SECONDS,
    ) -> None:
        self.objects = HubObjects(client, order_settings)
        self.claims = HubClaims(client, system_namespace, cache=known_claims)
        self.order_settings = order_settings
        # The uid of the hub's cluster, once known. What is missing in another cluster is not deleted.
        self.cluster_uid = ""
        self.order_locations: dict[str, tuple[str, str]] = {}  # order id to namespace and name
        self._call_slots = asyncio.Semaphore(at_once)
        self._call_seconds = call_seconds
        self._entry_seconds = entry_seconds
        self._inputs_cache: OrderedDict[tuple[str, str, str], Mapping[str, str]] = OrderedDict()

    @asynccontextmanager
    async def limit_call(self, action: str) -> AsyncIterator[None]:
        """Runs the block as one verb. Unavailable when it takes too long, or too many verbs are under way."""
        try:
            async with asyncio.timeout(self._entry_seconds):
                await self._call_slots.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"{action}: hub {self.order_settings.hub} is busy with other orders", reason="Busy"
            ) from error
        try:
            async with asyncio.timeout(self._call_seconds):
                yield
        except TimeoutError as error:
            raise Unavailable(
                f"{action}: hub {self.order_settings.hub} did not answer within {self._call_seconds:g} s",
                reason="Timeout",
            ) from error
        except Refused as error:
            raise to_order_error(error) from error
        finally:
            self._call_slots.release()

    async def check_cluster(self) -> None:
        """Raises Unavailable, reason OtherCluster, when the answering cluster is not the hub's."""
        await check_cluster_uid(self.objects.client, self.cluster_uid)

    async def read_inputs(self, namespace: str, name: str, version: str) -> Mapping[str, str]:
        """The contents of an order's Secret, read once per version. Unavailable while it does not exist."""
        key = namespace, name, version
        contents = self._inputs_cache.get(key)
        if contents is None:
            secret = await self.objects.read_secret(namespace, name)
            if secret is None:
                raise Unavailable(
                    f"the Secret {namespace}/{name} of an order is not there", reason="NoSecret"
                )
            contents = self._inputs_cache[key] = secret
            if len(self._inputs_cache) > _LARGEST_CACHE:
                self._inputs_cache.popitem(last=False)
        return contents
