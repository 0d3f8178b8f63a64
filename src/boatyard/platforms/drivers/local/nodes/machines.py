"""The machines that simulated nodes follow, as read from the twin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from boatyard.twin.calls import TwinCalls

FRESH_SECONDS = 0.9
_UNUSED_SECONDS = 30.0
_MAX_BATCH = 5000


@dataclass(frozen=True)
class MachineState:
    """The state of one machine. Times are wall-clock seconds."""

    power: bool = True
    broken: bool = False
    unready: bool = False  # it runs and reports a problem of its own
    attached: bool = True  # it is on a network
    started_at: float = 0.0  # since when it runs
    boot_seconds: float = 0.0  # from there until it can be a node

    @property
    def is_running(self) -> bool:
        return self.power and not self.broken


class MachineSource(Protocol):
    async def read_states(self, hosts: Sequence[str]) -> Mapping[str, MachineState]:
        """Returns the states of these machines; unknown ones are left out.

        Unavailable when they cannot be read, which says nothing about the machines.
        """


class TwinMachineSource:
    """The machines of one hub of the twin. All clusters share it, with one call a second for all of them."""

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub
        self._requested_at: dict[str, float] = {}  # by host: when it was last requested
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._states: dict[str, MachineState] = {}
        self._read_hosts: set[str] = (
            set()
        )  # hosts that were read, including those that do not exist
        self._refreshed_at = float("-inf")
        self._refresh_lock = asyncio.Lock()

    async def read_states(self, hosts: Sequence[str]) -> Mapping[str, MachineState]:
        now = asyncio.get_running_loop().time()
        self._requested_at.update(dict.fromkeys(hosts, now))
        async with self._refresh_lock:
            if now - self._refreshed_at > FRESH_SECONDS:
                await self._refresh(self._list_used_hosts(now))
                self._refreshed_at = now
            elif new := [host for host in hosts if host not in self._read_hosts]:
                await self._refresh(new)
        return {host: self._states[host] for host in hosts if host in self._states}

    def _list_used_hosts(self, now: float) -> list[str]:
        for host in [host for host, at in self._requested_at.items() if now - at > _UNUSED_SECONDS]:
            del self._requested_at[host]
            self._read_hosts.discard(host)
            self._rows.pop(host, None)
            self._states.pop(host, None)
        return list(self._requested_at)

    async def _refresh(self, hosts: Sequence[str]) -> None:
        for start in range(0, len(hosts), _MAX_BATCH):
            part = hosts[start : start + _MAX_BATCH]
            self._store_rows(
                part, await self._twin.call("inventory.machines", hub=self._hub, names=part)
            )

    def _store_rows(self, hosts: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> None:
        self._read_hosts.update(hosts)
        for host in hosts:
            row = rows.get(host)
            if row is None:
                self._rows.pop(host, None)
                self._states.pop(host, None)
            elif row != self._rows.get(host):
                self._rows[host] = row
                self._states[host] = MachineState(
                    power=row["power"],
                    broken=row["broken"],
                    unready=row["unready"],
                    attached=row["attached"],
                    started_at=row["since"],
                    boot_seconds=row["boot"],
                )
