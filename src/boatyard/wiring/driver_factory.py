"""Makes the drivers of a hub by name. Used by the directory of hubs in the service and by the operator of one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from boatyard.automation.port import Automation
from boatyard.kube.client import KubeClient
from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local.driver import KeeperClient
from boatyard.resources.admission_context import SettingChecks
from boatyard.resources.hubs.ports import DEFAULT_DRIVER, OPTIONAL_PORTS, PORTS, SETTING_CHECKS
from boatyard.resources.hubs.settings import SYSTEM_NAMESPACE
from boatyard.resources.orders.drivers import HubDrivers
from boatyard.twin.calls import TwinCalls
from boatyard.twin.client import TwinClient
from boatyard.wiring.automated_clusters import AutomatedClusters

CLUSTER_AUTOMATION = "eda"  # the automation driver that creates control planes
ROLE_AUTOMATION = "local"  # the automation driver that runs the roles of templates

Connect = Callable[[str], TwinCalls]  # connects to the server on a socket path


def connect_twin(path: str) -> TwinCalls:
    return TwinClient(Path(path))


@dataclass(frozen=True)
class LocalServers:
    """The servers on this machine that drivers call, and how to connect to them. A hub's settings may name others."""

    twin_socket: str
    connect_twin: Connect
    keeper_socket: str = ""
    connect_keeper: Connect = lambda path: KeeperClient(Path(path))
    automation: Callable[[str], Automation] | None = None  # runs the roles of a hub, by its id


def load_setting_checks() -> SettingChecks:
    """The functions, by port and driver, that refuse hub settings with which the driver could not work."""
    return {
        (port, name): _import_object(import_path)
        for port, drivers in SETTING_CHECKS.items()
        for name, import_path in drivers.items()
    }


class DriverFactory:
    """Makes the drivers of hubs. Connections to the twin and the keeper are opened once per socket and shared."""

    def __init__(self, site: LocalServers) -> None:
        self._servers = site
        self._connections: dict[tuple[str, str], TwinCalls] = {}

    def make_drivers(
        self,
        hub_id: str,
        drivers: Mapping[str, str],
        settings: Mapping[str, str],
        *,
        client: KubeClient | None = None,
        system_namespace: str = SYSTEM_NAMESPACE,
    ) -> HubDrivers:
        """One driver per port; `client` speaks to the hub itself where that is Kubernetes.

        Refused when a name is not known, Unavailable when what a driver needs is not here.
        """
        workshop = self._make_cluster_automation(
            drivers.get("automation", ""), hub_id, settings, client, system_namespace
        )
        drivers_by_port = {
            port: self._make_driver(
                port,
                drivers.get(port, DEFAULT_DRIVER),
                hub_id,
                settings,
                client=client,
                automation=workshop,
            )
            for port in PORTS
        }
        return HubDrivers(
            **drivers_by_port, automation=self._find_automation(hub_id, drivers, client)
        )

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()

    def _make_driver(
        self,
        port: str,
        name: str,
        hub_id: str,
        settings: Mapping[str, str],
        *,
        client: KubeClient | None,
        automation: AutomatedClusters | None,
    ) -> Any:
        make_driver = _load_driver(PORTS, port, name, hub_id)
        twin_hub = settings.get("twin.hub") or hub_id
        match name:
            case "sim":
                return make_driver(self._connect_twin(settings), twin_hub)
            case "local":
                return make_driver(self._connect_keeper(settings), twin_hub)
            case "hosted" if port == "platform":
                if client is None:
                    raise Unavailable(
                        f"hub {hub_id} is embedded: it hosts no clusters", reason="Embedded"
                    )
                return make_driver(client, settings, hub_id, automation=automation)
        return make_driver()

    def _make_cluster_automation(
        self,
        name: str,
        hub_id: str,
        settings: Mapping[str, str],
        client: KubeClient | None,
        system_namespace: str,
    ) -> AutomatedClusters | None:
        """The adapter through which automation creates a platform's control planes, if the hub uses one."""
        if name != CLUSTER_AUTOMATION:
            return None
        make_driver = _load_driver(OPTIONAL_PORTS, "automation", name, hub_id)
        if client is None:
            raise Unavailable(
                f"hub {hub_id} is embedded: its runs are recorded nowhere", reason="Embedded"
            )
        driver = make_driver(
            client,
            settings,
            hub_id,
            namespace=system_namespace,
            now=lambda: datetime.now(UTC),
            new_secret=lambda: secrets.token_hex(32),
        )
        return AutomatedClusters(driver)

    def _find_automation(
        self, hub_id: str, drivers: Mapping[str, str], client: KubeClient | None
    ) -> Automation | None:
        """The automation that runs the roles of the hub's orders; None when they run on another machine."""
        name = drivers.get("automation") or ("" if client is not None else ROLE_AUTOMATION)
        if name:
            _load_driver(OPTIONAL_PORTS, "automation", name, hub_id)
        if name != ROLE_AUTOMATION or self._servers.automation is None:
            return None
        return self._servers.automation(hub_id)

    def _connect_twin(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("twin.socket") or self._servers.twin_socket
        return self._get_connection("twin", path, self._servers.connect_twin)

    def _connect_keeper(self, settings: Mapping[str, str]) -> TwinCalls:
        path = settings.get("local.socket") or self._servers.keeper_socket
        if not path:
            raise Unavailable("no keeper of local clusters runs here", reason="NoKeeper")
        return self._get_connection("keeper", path, self._servers.connect_keeper)

    def _get_connection(self, service: str, path: str, connect: Connect) -> TwinCalls:
        if (service, path) not in self._connections:
            self._connections[service, path] = connect(path)
        return self._connections[service, path]


def _load_driver(
    ports: Mapping[str, Mapping[str, str]], port: str, name: str, hub_id: str
) -> Callable[..., Any]:
    import_path = ports[port].get(name)
    if import_path is None:
        raise Refused(
            f"hub {hub_id}: there is no {port} driver {name!r}; there is {', '.join(ports[port])}"
        )
    return _import_object(import_path)


def _import_object(import_path: str) -> Callable[..., Any]:
    module, _, name = import_path.partition(":")
    imported: Callable[..., Any] = getattr(import_module(module), name)
    return imported
