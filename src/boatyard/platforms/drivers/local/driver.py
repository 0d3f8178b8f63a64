"""The platform driver `local`: forwards each verb to the keeper of this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from boatyard.model.outcome import Outcome, OwnedObject
from boatyard.platforms.port import (
    ClusterAccess,
    DesiredCluster,
    DesiredNode,
    ObservedCluster,
    ObservedNode,
    RestMode,
)
from boatyard.processes.socket_client import SocketClient

CALL_SECONDS = 25.0  # a verb waits a moment for its result, and an API server may be busy


class KeeperClient(SocketClient):
    peer_name = "the keeper of local clusters"

    def __init__(self, socket_path: Path, *, timeout: float = CALL_SECONDS) -> None:
        super().__init__(socket_path, timeout=timeout)


class KeeperConnection(Protocol):
    async def call(self, verb: str, /, **args: Any) -> Any:
        """Calls one verb of the keeper and returns its result."""


class LocalPlatform:
    """`hub` is the name of the hub in the twin, whose machines the simulated nodes follow.

    The connection is shared and closed by its owner.
    """

    def __init__(self, keeper: KeeperConnection, hub: str) -> None:
        self._keeper = keeper
        self._hub = hub

    async def check_ready(self) -> None:
        await self._keeper.call("keeper.ping")

    def needs_hosts(self, settings: Mapping[str, str]) -> bool:
        return True

    async def ensure_cluster(self, key: str, desired: DesiredCluster) -> Outcome:
        return await self._act(
            "ensure_cluster", key=key, hub=self._hub, wanted=dataclasses.asdict(desired)
        )

    async def release_cluster(self, key: str) -> Outcome:
        return await self._act("release_cluster", key=key)

    async def ensure_node(self, key: str, cluster_key: str, node: DesiredNode) -> Outcome:
        return await self._act(
            "ensure_node", key=key, cluster_key=cluster_key, node=dataclasses.asdict(node)
        )

    async def release_node(
        self, key: str, cluster_key: str, slot: str, *, drain: bool = True
    ) -> Outcome:
        return await self._act(
            "release_node", key=key, cluster_key=cluster_key, slot=slot, drain=drain
        )

    async def choose_leaving(
        self, cluster_key: str, node_set: str, slots: Sequence[str], count: int
    ) -> Sequence[str]:
        chosen: Sequence[str] = await self._keeper.call(
            "keeper.choose_leaving",
            cluster_key=cluster_key,
            node_set=node_set,
            slots=list(slots),
            count=count,
        )
        return chosen

    async def observe(self, cluster_key: str) -> ObservedCluster:
        state = await self._keeper.call("keeper.observe", cluster_key=cluster_key)
        if not state["exists"]:
            return ObservedCluster(exists=False)
        return ObservedCluster(
            exists=True,
            available=state["available"],
            degraded=state["degraded"],
            version=state["version"],
            message=state["message"],
            rest=RestMode(state["rest"]),
            nodes=tuple(ObservedNode(*node) for node in state["nodes"]),
        )

    async def access(self, cluster_key: str) -> ClusterAccess:
        return ClusterAccess(**await self._keeper.call("keeper.access", cluster_key=cluster_key))

    async def ensure_backup(self, key: str, cluster_key: str, folder: str = "") -> Outcome:
        return await self._act("ensure_backup", key=key, cluster_key=cluster_key, folder=folder)

    async def release_backup(self, key: str) -> Outcome:
        return await self._act("release_backup", key=key)

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        rows = await self._keeper.call("keeper.list_owned", hub=self._hub, prefix=prefix)
        return [OwnedObject(key=key, kind=kind, name=name) for key, kind, name in rows]

    async def close(self) -> None:
        return None

    async def _act(self, verb: str, **args: Any) -> Outcome:
        outcome: Outcome = await self._keeper.call(f"keeper.{verb}", **args)
        return outcome
