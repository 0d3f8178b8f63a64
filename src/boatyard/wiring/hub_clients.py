"""One Kubernetes client per hub, while its credentials are the same. Used by reconcilers, order books and the API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.settings import CONTEXT_SETTING

# Short: hubs do not wait for each other, but each call occupies a worker meanwhile.
REQUEST_SECONDS = 8.0
RETRY_SECONDS = 12.0

Connect = Callable[[KubeConfig, CircuitBreaker], KubeClient]
HubRevision = tuple[datetime | None, int]


def connect_hub(config: KubeConfig, circuit_breaker: CircuitBreaker) -> KubeClient:
    return KubeClient(
        config, timeout=REQUEST_SECONDS, patience=RETRY_SECONDS, circuit_breaker=circuit_breaker
    )


@dataclass(frozen=True)
class _OpenClient:
    revision: HubRevision
    digest: str
    client: KubeClient


class HubClients:
    """The clients of all hubs. Hubs share nothing here: a dead one costs the others nothing.

    A hub that fails gets at most two requests a second in all (`kube/circuit_breaker.py`); other calls are
    Unavailable at once.
    """

    def __init__(self, connect: Connect = connect_hub) -> None:
        self._connect = connect
        self._open_clients: dict[str, _OpenClient] = {}

    async def client(self, hub: Hub) -> KubeClient:
        """The client of the hub. `hub` must have its secrets in clear. Makes no request to the hub.

        Changed credentials take effect with this call: the old client is closed, which ends its requests and watches
        with Unavailable, and their callers ask here again. A caller with an older version of the hub gets the newer
        client. Unavailable, with `reason` Embedded or BadKubeconfig, when no client can be made.
        """
        current = self._open_clients.get(hub.id)
        edition = hub.metadata.creation_timestamp, hub.metadata.generation
        if current is not None and _is_older(edition, current.revision):
            return current.client
        digest = credentials_digest(hub)
        if current is not None and current.digest == digest and not current.client.closed.is_set():
            if current.revision != edition:
                self._open_clients[hub.id] = _OpenClient(edition, digest, current.client)
            return current.client
        replacement = _OpenClient(
            edition, digest, self._connect(_parse_config(hub), CircuitBreaker())
        )
        self._open_clients[hub.id] = replacement
        if current is not None:
            await current.client.close()
        return replacement.client

    async def forget(self, hub_id: str) -> None:
        """Closes the client of a hub that is no longer registered. Content when there is none."""
        current = self._open_clients.pop(hub_id, None)
        if current is not None:
            await current.client.close()

    async def close(self) -> None:
        for hub_id in list(self._open_clients):
            await self.forget(hub_id)


def credentials_digest(hub: Hub) -> str:
    """A digest that differs when the hub's credentials differ, and does not reveal them."""
    parts = hub.spec.kubeconfig, hub.spec.settings.get(CONTEXT_SETTING, "").encode()
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _is_older(edition: HubRevision, other: HubRevision) -> bool:
    """Whether `edition` is older. A hub that was removed and registered again starts with generation 1."""
    created, generation = edition
    other_created, other_generation = other
    if created is None or other_created is None or created == other_created:
        return generation < other_generation
    return created < other_created


def _parse_config(hub: Hub) -> KubeConfig:
    """The hub's kubeconfig. Unavailable when it names a program or a file: these would be of this machine."""
    if not hub.spec.kubeconfig:
        raise Unavailable(f"hub {hub.id} is embedded: it has no Kubernetes API", reason="Embedded")
    try:
        config = read_kubeconfig(hub.spec.kubeconfig, hub.spec.settings.get(CONTEXT_SETTING, ""))
    except Refused as error:
        raise _make_config_error(hub, str(error)) from error
    files = (config.ca_file, config.certificate_file, config.key_file, config.token_file)
    # The API refuses these too; here they would be run or read with the rights of the service.
    if config.plugin is not None or any(files):
        raise _make_config_error(hub, "the kubeconfig names a program or a file of another machine")
    return config


def _make_config_error(hub: Hub, problem: str) -> Unavailable:
    return Unavailable(f"hub {hub.id} cannot be asked: {problem}", reason="BadKubeconfig")
