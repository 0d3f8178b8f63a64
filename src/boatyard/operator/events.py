"""Kubernetes Events about orders, for people who use kubectl. Best effort: nothing depends on an Event that is lost."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import EVENTS
from boatyard.ledger.changes import EventNote
from boatyard.model.errors import BoatyardError
from boatyard.orderbook.kube.kinds import CLUSTER_ORDERS

logger = logging.getLogger(__name__)

COMPONENT = "boatyard-operator"
_MOST_QUEUED = 256
_LONGEST_MESSAGE = 1024
_WARNING_REASONS = frozenset(("Abandoned", "SetAside", "Failed"))


class EventRecorder:
    def __init__(self, client: KubeClient, *, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_MOST_QUEUED)

    def record_event(self, item: Mapping[str, Any], note: EventNote) -> None:
        """Queues an Event to be written soon. Never waits: when the queue is full the Event is lost."""
        if not self._queue.full():
            self._queue.put_nowait(_event(item, note, self._now()))

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._client.create(EVENTS, event)
            except BoatyardError as error:
                logger.debug("event not written", extra={"why": str(error)})


def _event(item: Mapping[str, Any], note: EventNote, now: datetime) -> dict[str, Any]:
    metadata = item["metadata"]
    timestamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    # The same message at the same second is the same Event.
    identity = f"{metadata['uid']}/{note.reason}/{note.message}/{timestamp}"
    return {
        "metadata": {
            "name": f"{metadata['name']}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": CLUSTER_ORDERS.api_version,
            "kind": CLUSTER_ORDERS.kind,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "reason": note.reason,
        "message": note.message[:_LONGEST_MESSAGE],
        "type": "Warning" if note.reason in _WARNING_REASONS else "Normal",
        "source": {"component": COMPONENT},
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
    }
