"""What stands around a driver under test, made in the twin by the twin's own verbs: no driver takes part in it."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from boatyard.checks.port import Subject
from boatyard.model.outcome import Done
from boatyard.twin.calls import TwinCalls
from boatyard.twin.layout import HubLayout
from tests.contracts.harness import MAX_LOOKS

HOST_TYPE = "bm-small"
HUB_LAYOUT = HubLayout(hosts={HOST_TYPE: 12, "bm-large": 2}, zone="boston.example")
SERVICES = ("inventory", "l2", "l3", "dns", "platform")
ORDER = "order-1"


class TwinSurroundings:
    """One hub of the twin, seen from behind."""

    def __init__(self, twin: TwinCalls, hub: str, wait: Callable[[float], Awaitable[None]]) -> None:
        self.wait = wait
        self._twin = twin
        self._hub = hub
        self._numbers = itertools.count(1)
        self._host = ""

    def misbehave(self, service: str) -> Callable[[str], Awaitable[None]]:
        """Lets that service be "dead", let it lie, or answer again."""

        async def misbehave(profile: str) -> None:
            await self.call("twin.set_fault", service=service, profile=profile)

        return misbehave

    async def break_host(self, host: str) -> None:
        await self.call("twin.fail_host", host=host)

    async def hosts(self, count: int) -> Sequence[str]:
        """Hosts nobody holds, held from now on."""
        names = await self.free_hosts(count)
        for host in names:
            key = f"hold-{next(self._numbers)}/host"
            await self.until_done("inventory.ensure_held", key=key, host=host)
        return names

    async def connect_host(self, host: str) -> None:
        """Binds the host's port to a network that is nobody else's."""
        order = f"net-{next(self._numbers)}"
        await self.make_l2_network(f"{order}/l2")
        await self._bind(f"{order}/port", f"{order}/l2", host)

    async def make_l2_network(self, key: str) -> None:
        # From the end: a suite takes its own from the start.
        vlan = (await self.call("l2.vlans"))[1] - next(self._numbers)
        await self.until_done("l2.ensure_network", key=key, vlan=vlan)

    async def host_with_agent(self, order: str, slot: str) -> tuple[str, str]:
        """A host that is held and on the order's network, and its agent's address."""
        (host,) = await self.free_hosts(1)
        key, network = f"{order}/host/{slot}", f"{order}/l2"
        await self.until_done("inventory.ensure_held", key=key, host=host)
        vlan = (await self.call("l2.vlans"))[0] + int(order.partition("-")[2])
        await self.until_done("l2.ensure_network", key=network, vlan=vlan)
        await self._bind(f"{order}/port/{slot}", network, host)
        agent = await self.until_done("inventory.agent_address", key=key, host=host)
        return host, agent.facts["address"]

    async def make_cluster(self) -> Subject:
        """A whole cluster of `ORDER` with one node."""
        self._host, address = await self.host_with_agent(ORDER, "compute-0")
        cidr = (await self.call("l3.subnets"))[0]
        api, ingress = (await self.call("l3.floating_addresses"))[:2]
        zone = await self.call("dns.zone")
        names = f"api.one.{zone}", f"*.apps.one.{zone}"
        subnet, cluster = f"{ORDER}/l3", f"{ORDER}/cluster"
        await self.until_done("l3.ensure_network", key=subnet, cidr=cidr)
        await self.until_done(
            "l3.ensure_binding", key=f"{ORDER}/binding", network_key=subnet, l2_key=f"{ORDER}/l2"
        )
        for purpose, floating, name in zip(("api", "ingress"), (api, ingress), names, strict=True):
            await self.until_done(
                "l3.ensure_floating",
                key=f"{ORDER}/{purpose}-address",
                address=floating,
                network_key=subnet,
                purpose=purpose,
            )
            key = f"{ORDER}/{purpose}-name"
            await self.until_done("dns.ensure_record", key=key, name=name, address=floating)
        await self.until_done(
            "platform.ensure_cluster",
            key=cluster,
            name="one",
            version="4.17.1",
            api_name=names[0],
            api_address=api,
            ingress_name=names[1],
            ingress_address=ingress,
        )
        await self.until_done(
            "platform.ensure_node",
            key=f"{ORDER}/node/compute-0",
            cluster_key=cluster,
            slot="compute-0",
            node_set="compute",
            host=self._host,
            address=address,
        )
        return Subject(cluster, names[0], api, names[1], ingress, ("compute-0",), "4.17.1")

    async def lose_node(self) -> None:
        await self.break_host(self._host)

    async def remove_name(self, purpose: str) -> None:
        await self.until_done("dns.release_record", key=f"{ORDER}/{purpose}-name")

    async def misdirect_api_name(self) -> None:
        zone, address = await self.call("dns.zone"), (await self.call("l3.floating_addresses"))[1]
        key, name = f"{ORDER}/api-name", f"api.one.{zone}"
        await self.until_done("dns.ensure_record", key=key, name=name, address=address)

    async def remove_route(self, purpose: str) -> None:
        await self.until_done("l3.release_floating", key=f"{ORDER}/{purpose}-address")

    async def everything(self) -> list[Any]:
        return [await self.call(f"{service}.list_owned", prefix="") for service in SERVICES]

    async def call(self, verb: str, **args: Any) -> Any:
        return await self._twin.call(verb, hub=self._hub, **args)

    async def until_done(self, verb: str, **args: Any) -> Done:
        for _ in range(MAX_LOOKS):
            outcome = await self.call(verb, **args)
            if isinstance(outcome, Done):
                return outcome
            await self.wait(outcome.look_again)
        raise AssertionError(f"{verb} still answers {outcome}")

    async def free_hosts(self, count: int) -> list[str]:
        """Hosts that nobody holds."""
        rows = await self.call("inventory.list_free", host_type=HOST_TYPE, limit=count, seed="")
        assert len(rows) == count, "the hub has hosts to give"
        return [row["name"] for row in rows]

    async def _bind(self, key: str, network: str, host: str) -> None:
        await self.until_done("l2.ensure_port", key=key, network_key=network, host=host)
