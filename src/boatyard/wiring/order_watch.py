"""Hears from Kubernetes hubs: a watch per hub makes a cluster due when its order has changed. Run by `work` and `up`.

A change that is not heard costs time, never an order: the cluster reconciler looks by itself now and then.
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

_LOOK_SECONDS = 5.0  # for hubs that came, went or changed
_BREATH_SECONDS = 0.05  # what changes within it is told at once
_AGAIN_SECONDS = 2.0
_MOST_AT_ONCE = 200
_LONGEST_PAUSE = 10.0

Dues = dict[tuple[str, str], Due]


class Feedback:
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
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tell(), name="feedback")
            while True:
                try:
                    await self._listen(tasks)
                except BoatyardError as error:
                    logger.warning("hubs not looked up", extra={"why": str(error)})
                await asyncio.sleep(_LOOK_SECONDS)

    async def _listen(self, tasks: asyncio.TaskGroup) -> None:
        """One set of watches per hub, for as long as its credentials and settings are the same."""
        hubs = (await self._ledger.documents.list(Hub, limit=1000, with_total=False)).items
        kubernetes_hubs = {hub.id: hub for hub in hubs if is_kubernetes(hub)}
        for hub_id in self._ears.keys() - kubernetes_hubs.keys():
            self._stop(hub_id)
        for hub in kubernetes_hubs.values():
            try:
                client = await self._clients.client(hub)
            except BoatyardError as error:
                logger.warning("hub not heard", extra={"hub": hub.id, "why": str(error)})
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
        """For orders and for what is left. Only that something changed is kept, not what."""

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
            return  # made by another tool: no cluster of ours
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
                logger.warning("feedback waits", extra={"why": str(error)})
                self._heard.set()
                await asyncio.sleep(_AGAIN_SECONDS)

    async def flush(self) -> int:
        """Makes due what has been heard of; how many. What could not be written stays."""
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
