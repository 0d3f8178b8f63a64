"""The machines that simulated nodes follow, as read from the twin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from boatyard.twin.calls import TwinCalls

FRESH_SECONDS = 0.9
_FORGET_SECONDS = 30.0
_MOST_AT_ONCE = 5000


@dataclass(frozen=True)
class Machine:
    """The state of one machine. Times are wall-clock seconds."""

    power: bool = True
    broken: bool = False
    unready: bool = False  # it runs and reports a problem of its own
    attached: bool = True  # it is on a network
    started_at: float = 0.0  # since when it runs
    boot_seconds: float = 0.0  # from there until it can be a node

    @property
    def runs(self) -> bool:
        return self.power and not self.broken


class Machines(Protocol):
    async def look(self, hosts: Sequence[str]) -> Mapping[str, Machine]:
        """Returns the states of these machines; unknown ones are left out.

        Unavailable when they cannot be read, which says nothing about the machines.
        """


class TwinMachines:
    """The machines of one hub of the twin. All clusters share it, with one call a second for all of them."""

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub
        self._asked: dict[str, float] = {}  # by host: when it was last requested
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._known: dict[str, Machine] = {}
        self._covered: set[str] = set()  # hosts that were read, including those that do not exist
        self._looked_at = float("-inf")
        self._looking = asyncio.Lock()

    async def look(self, hosts: Sequence[str]) -> Mapping[str, Machine]:
        now = asyncio.get_running_loop().time()
        self._asked.update(dict.fromkeys(hosts, now))
        async with self._looking:
            if now - self._looked_at > FRESH_SECONDS:
                await self._refresh(self._wanted(now))
                self._looked_at = now
            elif new := [host for host in hosts if host not in self._covered]:
                await self._refresh(new)
        return {host: self._known[host] for host in hosts if host in self._known}

    def _wanted(self, now: float) -> list[str]:
        for host in [host for host, at in self._asked.items() if now - at > _FORGET_SECONDS]:
            del self._asked[host]
            self._covered.discard(host)
            self._rows.pop(host, None)
            self._known.pop(host, None)
        return list(self._asked)

    async def _refresh(self, hosts: Sequence[str]) -> None:
        for start in range(0, len(hosts), _MOST_AT_ONCE):
            part = hosts[start : start + _MOST_AT_ONCE]
            self._take(part, await self._twin.call("inventory.machines", hub=self._hub, names=part))

    def _take(self, hosts: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> None:
        self._covered.update(hosts)
        for host in hosts:
            row = rows.get(host)
            if row is None:
                self._rows.pop(host, None)
                self._known.pop(host, None)
            elif row != self._rows.get(host):
                self._rows[host] = row
                self._known[host] = Machine(
                    power=row["power"],
                    broken=row["broken"],
                    unready=row["unready"],
                    attached=row["attached"],
                    started_at=row["since"],
                    boot_seconds=row["boot"],
                )
