"""The settings of an operator's hub, from the ConfigMap that the service writes when the hub is registered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from boatyard.kube.client import KubeClient
from boatyard.kube.informer import Informer
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.model import hub_names
from boatyard.orderbook.kube.mapping.from_kube import HubOrderSettings

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 5.0


class HubConfig(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    drivers: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}

    def make_order_settings(self, system_namespace: str) -> HubOrderSettings:
        return HubOrderSettings.from_settings(
            self.id, self.settings, system_namespace=system_namespace
        )


def read_config(item: Mapping[str, Any] | None) -> HubConfig | None:
    """Decodes the hub's ConfigMap. None when the hub is not registered, or the content cannot be read."""
    text = ((item or {}).get("data") or {}).get(hub_names.HUB_CONFIG_KEY) or ""
    if not text:
        return None
    try:
        config = msgspec.json.decode(text, type=HubConfig)
    except msgspec.DecodeError as error:
        logger.error("hub settings cannot be read", extra={"why": str(error)})
        return None
    return config if config.id else None


class ConfigWatch:
    """Keeps the hub's current settings. The caller runs `informer` in a task."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.current: HubConfig | None = None
        self.informer = Informer(
            client,
            CONFIG_MAPS,
            namespace,
            fields=f"metadata.name={hub_names.HUB_CONFIG}",
            on_change=lambda key, old, new: self._handle_change(new),
            longest_pause=_LONGEST_PAUSE,
        )
        self._changed = asyncio.Event()

    def _handle_change(self, item: Mapping[str, Any] | None) -> None:
        config = read_config(item)
        if config != self.current:
            self.current = config
            self._changed.set()

    async def get(self) -> HubConfig:
        """Returns the settings; waits until the hub is registered."""
        while self.current is None:
            await self.wait_until_not(None)
        return self.current

    async def wait_until_not(self, config: HubConfig | None) -> None:
        """Returns once the settings differ from `config`."""
        while self.current == config:
            self._changed.clear()
            await self._changed.wait()
