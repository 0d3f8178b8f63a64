"""A name service in memory with its driver: shows that the dns suite needs nothing of another port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, OwnedObject
from tests.contracts.harness import DnsHarness, NewHarness

ZONE = "memory.example"


class MemoryDns:
    """Keeps one record per key. `profile` makes the service behind it dead, or lets it do nothing."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[str, str]] = {}
        self.profile = "none"

    async def check_ready(self) -> None:
        if self.profile == "dead":
            raise Unavailable("the name service does not answer")

    async def zone(self) -> str:
        return ZONE

    async def ensure_record(self, key: str, name: str, address: str) -> Outcome:
        await self.check_ready()
        if not name.endswith(f".{ZONE}"):
            raise Refused(f"{name} is outside {ZONE}")
        if any(name == known and key != owner for owner, (known, _) in self.records.items()):
            raise Refused(f"{name} belongs to another key")
        if self.profile != "lies":
            self.records[key] = (name, address)
        return self._confirmed(self.records.get(key) == (name, address))

    async def release_record(self, key: str) -> Outcome:
        await self.check_ready()
        if self.profile != "lies":
            self.records.pop(key, None)
        return self._confirmed(key not in self.records)

    async def resolve(self, name: str) -> str | None:
        await self.check_ready()
        return next((address for known, address in self.records.values() if known == name), None)

    async def list_owned(self, prefix: str = "") -> Sequence[OwnedObject]:
        await self.check_ready()
        return [
            OwnedObject(key=key, kind="record", name=name)
            for key, (name, _) in self.records.items()
            if key.startswith(prefix)
        ]

    async def close(self) -> None:
        """Nothing is held."""

    def _confirmed(self, is_so: bool) -> Done:
        if not is_so:
            raise Unavailable("the name service did not do it", reason="NotConfirmed")
        return Done()


def memory_dns_harness(driver: MemoryDns) -> DnsHarness:
    async def wait(_: float) -> None:
        """Nothing takes time here."""

    async def misbehave(profile: str) -> None:
        driver.profile = profile

    return DnsHarness(dns=driver, wait=wait, misbehave=misbehave)


@asynccontextmanager
async def memory_dns() -> AsyncIterator[NewHarness]:
    @asynccontextmanager
    async def new_harness() -> AsyncIterator[DnsHarness]:
        yield memory_dns_harness(MemoryDns())

    yield new_harness
