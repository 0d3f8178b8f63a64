"""Makes the drivers of a hub by name. Used by the directory of hubs in the service and by the operator of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.resources.hubs.ports import PORTS
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.twin.calls import TwinCalls
from boatyard.twin.client import TwinClient

DEFAULT_DRIVER = "sim"

Connect = Callable[[str], TwinCalls]  # a connection to whoever listens on a socket path


def connect_twin(path: str) -> TwinCalls:
    return TwinClient(Path(path))


@dataclass(frozen=True)
class Site:
    """What drivers speak to on this machine, and how one connects to it. A hub's settings may name others."""

    twin_socket: str
    connect_twin: Connect
    keeper_socket: str = ""
    connect_keeper: Connect = lambda path: KeeperClient(Path(path))


class DriverMaker:
    """Connections to the twin and the keeper are made once per socket and shared by all hubs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._connections: dict[tuple[str, str], TwinCalls] = {}

    def make(
        self,
        hub_id: str,
        drivers: Mapping[str, str],
        settings: Mapping[str, str],
        *,
        client: KubeClient | None = None,
    ) -> HubDrivers:
        """One driver per port; `client` speaks to the hub itself where that is Kubernetes.

        Refused when a name is not known, Unavailable when what a driver needs is not here.
        """
        made = {
            port: self._driver(
                port, drivers.get(port, DEFAULT_DRIVER), hub_id, settings, client=client
            )
            for port in PORTS
        }
        return HubDrivers(**made)

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()

    def _driver(
        self,
        port: str,
        name: str,
        hub_id: str,
        settings: Mapping[str, str],
        *,
        client: KubeClient | None,
    ) -> Any:
        place = PORTS[port].get(name)
        if place is None:
            raise Refused(
                f"hub {hub_id}: there is no {port} driver {name!r}; there is {', '.join(PORTS[port])}"
            )
        module, _, cls = place.partition(":")
        make: Callable[..., Any] = getattr(import_module(module), cls)
        simulated = settings.get("twin.hub") or hub_id
        match name:
            case "sim":
                return make(self._twin(settings), simulated)
            case "local":
                return make(self._keeper(settings), simulated)
            case "hosted" if port == "platform":
                if client is None:
                    raise Unavailable(
                        f"hub {hub_id} is embedded: it hosts no clusters", reason="Embedded"
                    )
                return make(client, settings, hub_id)
        return make()

    def _twin(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("twin.socket") or self._site.twin_socket
        return self._connected("twin", path, self._site.connect_twin)

    def _keeper(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("local.socket") or self._site.keeper_socket
        if not path:
            raise Unavailable("no keeper of local clusters runs here", reason="NoKeeper")
        return self._connected("keeper", path, self._site.connect_keeper)

    def _connected(self, what: str, path: str, connect: Connect) -> TwinCalls:
        if (what, path) not in self._connections:
            self._connections[what, path] = connect(path)
        return self._connections[what, path]
