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
from boatyard.kube.kinds import KubeKind
from boatyard.ledger.changes import Due
from boatyard.ledger.ledger import Ledger
from boatyard.model.clock import Clock
from boatyard.model.errors import BoatyardError
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS, LEFTOVERS
from boatyard.orderbook.kube.mapping import from_kube, leftovers
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.wiring.hub_cache import HubCache
from boatyard.wiring.hub_clients import HubClients

logger = logging.getLogger(__name__)

_LIST_SECONDS = 5.0  # between two looks for new, removed or changed hubs
_BATCH_SECONDS = 0.05  # changes within it are written together
_RETRY_SECONDS = 2.0
_BATCH_SIZE = 200
_LONGEST_PAUSE_SECONDS = 10.0

Dues = dict[tuple[str, str], Due]


class OrderWatch:
    """Watches every Kubernetes hub, collects the changes, and writes them as due work."""

    def __init__(
        self, ledger: Ledger, hubs: HubCache, clients: HubClients, *, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._hubs = hubs
        self._clients = clients
        self._clock = clock
        self._due_changes: Dues = {}
        self._has_changes = asyncio.Event()
        self._watches_by_hub: dict[
            str, tuple[KubeClient, HubOrderSettings, list[asyncio.Task[None]]]
        ] = {}

    async def run(self) -> None:
        """Runs until cancelled. A hub that cannot be watched is tried again."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_changes(), name="feedback")
            while True:
                try:
                    await self._update_watches(tasks)
                except BoatyardError as error:
                    logger.warning("hubs not listed", extra={"why": str(error)})
                await asyncio.sleep(_LIST_SECONDS)

    async def _update_watches(self, tasks: asyncio.TaskGroup) -> None:
        """Starts the watches of each hub, and restarts them when its credentials or settings have changed."""
        hubs = await self._hubs.read_all()
        kubernetes_hubs = {hub.id: hub for hub in hubs if is_kubernetes(hub)}
        for hub_id in self._watches_by_hub.keys() - kubernetes_hubs.keys():
            self._stop_watches(hub_id)
        for hub in kubernetes_hubs.values():
            try:
                client = await self._clients.client(hub)
            except BoatyardError as error:
                logger.warning("hub not watched", extra={"hub": hub.id, "why": str(error)})
                continue
            place = HubOrderSettings.from_settings(hub.id, hub.spec.settings)
            current = self._watches_by_hub.get(hub.id)
            if current is not None and current[0] is client and current[1] == place:
                continue
            self._stop_watches(hub.id)
            informers = self.make_informers(client, place)
            watch_tasks = [
                tasks.create_task(informer.run(), name=f"ear {hub.id}") for informer in informers
            ]
            self._watches_by_hub[hub.id] = client, place, watch_tasks

    def _stop_watches(self, hub_id: str) -> None:
        for task in self._watches_by_hub.pop(hub_id, (None, None, []))[2]:
            task.cancel()

    def make_informers(
        self, client: KubeClient, order_settings: HubOrderSettings
    ) -> list[Informer]:
        """Informers for the orders and Leftovers of a hub. They keep only ids and versions of the objects."""

        def make_informer(kind: KubeKind, due_kind: str) -> Informer:
            def shape(item: dict[str, Any]) -> dict[str, Any]:
                return _trim_object(item, due_kind, order_settings)

            def on_change(_: str, old: Any, new: Any) -> None:
                self._collect_change(new or old, due_kind, order_settings.hub)

            return Informer(
                *(client, kind, order_settings.shared_namespace),
                shape=shape,
                on_change=on_change,
                longest_pause=_LONGEST_PAUSE_SECONDS,
            )

        return [make_informer(CLUSTER_ORDERS, "Cluster"), make_informer(LEFTOVERS, "Leftover")]

    def _collect_change(self, item: Mapping[str, Any], kind: str, hub_id: str) -> None:
        if item["id"] == item["metadata"]["uid"]:
            return  # created by another tool: there is no cluster for it
        due = Due(kind, item["id"], self._clock.now(), tenant=item["tenant"], hub=hub_id)
        self._due_changes[kind, item["id"]] = due
        self._has_changes.set()

    async def _write_changes(self) -> None:
        while True:
            await self._has_changes.wait()
            await asyncio.sleep(_BATCH_SECONDS)
            self._has_changes.clear()
            try:
                await self.flush()
            except BoatyardError as error:
                logger.warning("changes on hubs not written yet", extra={"why": str(error)})
                self._has_changes.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def flush(self) -> int:
        """Writes the collected changes as due work; returns how many. What could not be written stays."""
        count = 0
        while self._due_changes:
            batch = dict(list(self._due_changes.items())[:_BATCH_SIZE])
            await self._ledger.commit(list(batch.values()), now=self._clock.now())
            for key, due in batch.items():
                if self._due_changes.get(key) is due:
                    del self._due_changes[key]
            count += len(batch)
        return count


def _trim_object(
    item: dict[str, Any], due_kind: str, order_settings: HubOrderSettings
) -> dict[str, Any]:
    metadata = item["metadata"]
    if due_kind == "Cluster":
        id, tenant = (
            from_kube.read_order_id(item, order_settings),
            from_kube.read_tenant(item, order_settings),
        )
    else:
        id = leftovers.read_leftover_id(item, order_settings)
        tenant = str((item.get("spec") or {}).get("tenant") or "")
    shown_metadata = {
        name: metadata.get(name) for name in ("name", "namespace", "resourceVersion", "uid")
    }
    return {"metadata": shown_metadata, "id": id, "tenant": tenant}
