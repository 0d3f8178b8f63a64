"""Watches the orders on Kubernetes hubs and makes a cluster due when its order has changed. Run by `work` and `up`.

A missed change costs time, never an order: the cluster reconciler also looks by itself now and then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import Kind
from boatyard.ledger.changes import Due
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError
from boatyard.model.generated.osac import Hub
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import Place
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.wiring.hub_books import HubBooks
from boatyard.wiring.hub_clients import HubClients

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0  # between two looks for new, removed or changed hubs
_BREATH_SECONDS = 0.05  # changes within it are written together
_AGAIN_SECONDS = 2.0
_MOST_AT_ONCE = 200
_LONGEST_PAUSE = 10.0

Dues = dict[tuple[str, str], Due]


class Feedback:
    """Watches every Kubernetes hub, collects the changes, and writes them as due work."""

    def __init__(
        self, ledger: Ledger, books: HubBooks, clients: HubClients, *, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._books = books
        self._clients = clients
        self._clock = clock
        self._due: Dues = {}
        self._heard = asyncio.Event()
        self._ears: dict[str, tuple[KubeClient, Place, list[asyncio.Task[None]]]] = {}

    async def run(self) -> None:
        """Runs until cancelled. A hub that cannot be watched is tried again."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tell(), name="feedback")
            while True:
                try:
                    await self._listen(tasks)
                except BoatyardError as error:
                    logger.warning("hubs not listed", extra={"why": str(error)})
                await asyncio.sleep(_LOOK_SECONDS)

    async def _listen(self, tasks: asyncio.TaskGroup) -> None:
        """Starts the watches of each hub, and restarts them when its credentials or settings have changed."""
        hubs = (await self._ledger.documents.list(Hub, limit=1000, with_total=False)).items
        kubernetes_hubs = {hub.id: hub for hub in hubs if is_kubernetes(hub)}
        for hub_id in self._ears.keys() - kubernetes_hubs.keys():
            self._stop(hub_id)
        for hub in kubernetes_hubs.values():
            try:
                client = await self._clients.client(hub)
            except BoatyardError as error:
                logger.warning("hub not watched", extra={"hub": hub.id, "why": str(error)})
                continue
            place = Place.of(hub.id, hub.spec.settings)
            current = self._ears.get(hub.id)
            if current is not None and current[0] is client and current[1] == place:
                continue
            self._stop(hub.id)
            informers = self.informers(client, place)
            watch_tasks = [
                tasks.create_task(informer.run(), name=f"ear {hub.id}") for informer in informers
            ]
            self._ears[hub.id] = client, place, watch_tasks

    def _stop(self, hub_id: str) -> None:
        for task in self._ears.pop(hub_id, (None, None, []))[2]:
            task.cancel()

    def informers(self, client: KubeClient, place: Place) -> list[Informer]:
        """Informers for the orders and Leftovers of a hub. They keep only ids and versions of the objects."""

        def make_informer(kind: Kind, due_kind: str) -> Informer:
            def shape(item: dict[str, Any]) -> dict[str, Any]:
                return _small(item, due_kind, place)

            def on_change(_: str, old: Any, new: Any) -> None:
                self._hear(new or old, due_kind, place.hub)

            return Informer(
                *(client, kind, place.one_namespace),
                shape=shape,
                on_change=on_change,
                longest_pause=_LONGEST_PAUSE,
            )

        return [make_informer(CLUSTER_ORDERS, "Cluster"), make_informer(LEFTOVERS, "Leftover")]

    def _hear(self, item: Mapping[str, Any], kind: str, hub_id: str) -> None:
        if item["id"] == item["metadata"]["uid"]:
            return  # created by another tool: there is no cluster for it
        due = Due(kind, item["id"], self._clock.now(), tenant=item["tenant"], hub=hub_id)
        self._due[kind, item["id"]] = due
        self._heard.set()

    async def _tell(self) -> None:
        while True:
            await self._heard.wait()
            await asyncio.sleep(_BREATH_SECONDS)
            self._heard.clear()
            try:
                await self.flush()
            except BoatyardError as error:
                logger.warning("changes on hubs not written yet", extra={"why": str(error)})
                self._heard.set()
                await asyncio.sleep(_AGAIN_SECONDS)

    async def flush(self) -> int:
        """Writes the collected changes as due work; returns how many. What could not be written stays."""
        count = 0
        while self._due:
            batch = dict(list(self._due.items())[:_MOST_AT_ONCE])
            await self._ledger.commit(list(batch.values()), now=self._clock.now())
            for key, due in batch.items():
                if self._due.get(key) is due:
                    del self._due[key]
            count += len(batch)
        return count


def _small(item: dict[str, Any], due_kind: str, place: Place) -> dict[str, Any]:
    metadata = item["metadata"]
    if due_kind == "Cluster":
        id, tenant = from_kube.order_id(item, place), from_kube.tenant_of(item, place)
    else:
        id = leftovers.leftover_id(item, place)
        tenant = str((item.get("spec") or {}).get("tenant") or "")
    shown_metadata = {
        name: metadata.get(name) for name in ("name", "namespace", "resourceVersion", "uid")
    }
    return {"metadata": shown_metadata, "id": id, "tenant": tenant}
