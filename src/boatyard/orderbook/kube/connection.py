"""What all order books of one Kubernetes hub share: the client, caches, and limits on concurrency and time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from boatyard.kube.client import KubeClient
from boatyard.kube.errors import about_an_order
from boatyard.kube.identity import check_cluster
from boatyard.model.errors import Refused, Unavailable
from boatyard.orderbook.kube.claims import HubClaims, KnownClaims
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.orderbook.kube.objects import HubObjects

CALL_SECONDS = 15.0  # for one verb of the order book, all its requests together
AT_ONCE = 8  # verbs under way on one hub
ENTRY_SECONDS = 5.0  # how long a verb waits until it may start
_MOST_KEPT = 1024


class HubConnection:
    """The connection to one hub, one per process. A slow or dead hub blocks few workers, and none for long."""

    def __init__(
        self,
        client: KubeClient,
        place: Place,
        *,
        system_namespace: str,
        known_claims: KnownClaims | None = None,
        at_once: int = AT_ONCE,
        call_seconds: float = CALL_SECONDS,
        entry_seconds: float = ENTRY_SECONDS,
    ) -> None:
        self.objects = HubObjects(client, place)
        self.claims = HubClaims(client, system_namespace, cache=known_claims)
        self.place = place
        # The uid of the hub's cluster, once known. What is missing in another cluster is not deleted.
        self.cluster_uid = ""
        self.where: dict[str, tuple[str, str]] = {}  # order id to namespace and name
        self._seats = asyncio.Semaphore(at_once)
        self._call_seconds = call_seconds
        self._entry_seconds = entry_seconds
        self._inputs: OrderedDict[tuple[str, str, str], Mapping[str, str]] = OrderedDict()

    @asynccontextmanager
    async def call(self, action: str) -> AsyncIterator[None]:
        """Runs the block as one verb. Unavailable when it takes too long, or too many verbs are under way."""
        try:
            async with asyncio.timeout(self._entry_seconds):
                await self._seats.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"{action}: hub {self.place.hub} is busy with other orders", reason="Busy"
            ) from error
        try:
            async with asyncio.timeout(self._call_seconds):
                yield
        except TimeoutError as error:
            raise Unavailable(
                f"{action}: hub {self.place.hub} did not answer within {self._call_seconds:g} s",
                reason="Timeout",
            ) from error
        except Refused as error:
            raise about_an_order(error) from error
        finally:
            self._seats.release()

    async def check_cluster(self) -> None:
        """Raises Unavailable, reason OtherCluster, when the answering cluster is not the hub's."""
        await check_cluster(self.objects.client, self.cluster_uid)

    async def inputs(self, namespace: str, name: str, version: str) -> Mapping[str, str]:
        """The contents of an order's Secret, read once per version. Unavailable while it does not exist."""
        key = namespace, name, version
        contents = self._inputs.get(key)
        if contents is None:
            secret = await self.objects.read_secret(namespace, name)
            if secret is None:
                raise Unavailable(
                    f"the Secret {namespace}/{name} of an order is not there", reason="NoSecret"
                )
            contents = self._inputs[key] = secret
            if len(self._inputs) > _MOST_KEPT:
                self._inputs.popitem(last=False)
        return contents
