"""The way between operator and API server is cut in the middle of things: all comes back, and once.

How long a cut lasts stops mattering once every timeout on the way has passed: a request (10 s), a verb with its
retries (15 s), the Lease (12 s), the longest pause between tries of a watch (5 s). From then on nothing new happens:
the lead is lost, and two loops ask at their slowest pace. A cut of 20 s is past all of them; minutes are the same.
`make soak` cuts for three minutes and shows that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.kube.config import read_kubeconfig
from boatyard.model.errors import Unavailable
from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.wiring.hub_clients import connect_hub
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import hang_up
from tests.support.kube_hub.fault_environment import BACK, BRISK, FaultyHubEnvironment, until
from tests.support.kube_hub.fault_proxy import REFUSED, SILENT, FaultProxy, ProxiedRequest
from tests.support.soak import soak

CUT_SECONDS = soak(short=20.0, long=180.0)
SETTLING = 3.0  # what was under way when it was cut fails first
NEIGHBOURLY = 1.0  # seconds for each step beside a cut: its orders come and go, and cost little
MOST = 2.0  # requests per second that may reach a hub that fails

Match = Callable[[ProxiedRequest], bool]


def claiming(asked: ProxiedRequest) -> bool:
    return asked.method == "POST" and asked.path.endswith("/claims")


def telling(asked: ProxiedRequest) -> bool:
    return asked.method == "PATCH" and asked.path.endswith("/status")


def unclaiming(asked: ProxiedRequest) -> bool:
    return asked.method == "DELETE" and "/claims/" in asked.path


def letting_go(asked: ProxiedRequest) -> bool:
    return asked.method == "PATCH" and "/clusterorders/" in asked.path and not telling(asked)


def cut_at(proxy: FaultProxy, match: Match, mode: str, time: int = 1) -> asyncio.Event:
    """Cuts the way just as such a request comes for that time, and that request with it. Set once it is cut."""
    cut = asyncio.Event()
    came = 0

    def hook(asked: ProxiedRequest, body: bytes) -> None:
        nonlocal came
        came += match(asked)
        if came == time and not cut.is_set():
            proxy.set(cut=mode)
            cut.set()

    proxy.hook = hook
    return cut


async def sit_out(proxy: FaultProxy, cut: asyncio.Event) -> None:
    """Waits for the cut and until it is over; few requests come meanwhile."""
    async with asyncio.timeout(120):
        await cut.wait()
    began = time.monotonic()
    await asyncio.sleep(CUT_SECONDS)
    rate = proxy.most_per_second(began + SETTLING, time.monotonic(), window=10.0)
    assert proxy.count(began + SETTLING, time.monotonic()) > 0, "nobody has tried"
    print(f"{rate:g} requests per second at most")
    told = [
        (round(one.at - began, 1), one.method, one.path) for one in proxy.asked if one.at > began
    ]
    assert rate <= MOST, f"{rate:g} requests per second reached a hub that fails: {told}"
    proxy.hook = None
    proxy.heal()


async def cut_in_every_stage(
    hub: FaultyHubEnvironment, mode: str, *, deleting: Match, replicas: int
) -> list[float]:
    """An order's life with three cuts; how long after each all was as it should be."""
    for _ in range(replicas):
        await hub.start()
    back = []
    cut = cut_at(hub.proxy, claiming, mode)
    await hub.put("c-1", 2)
    await sit_out(hub.proxy, cut)
    back.append(await hub.until_ready("c-1", 2, seconds=BACK))
    cut = cut_at(hub.proxy, telling, mode, time=2)
    await hub.put("c-1", 4, generation=2)
    await sit_out(hub.proxy, cut)
    back.append(await hub.until_ready("c-1", 4, generation=2, seconds=BACK))
    cut = cut_at(hub.proxy, deleting, mode)
    await hub.delete("c-1")
    await sit_out(hub.proxy, cut)
    back.append(await hub.until_deleted("c-1", seconds=BACK))
    await hub.until_nothing_is_left()
    assert await hub.doubled("c-1") == []
    return back


async def lives(hub: FaultyHubEnvironment, ended: asyncio.Event) -> int:
    """One order after the other, each from its creation to its end, until told."""
    await hub.start()
    count = 0
    while not ended.is_set():
        await hub.life(f"n-{count}", seconds=BACK)
        assert await hub.doubled(f"n-{count}") == []
        count += 1
    return count


@pytest.mark.timeout(340 + 3 * CUT_SECONDS)
async def test_cut_in_create_scale_and_delete_while_another_hub_goes_on(
    plane: ControlPlane,
) -> None:
    async with AsyncExitStack() as stack:
        refused, silent, neighbour = [
            await stack.enter_async_context(
                FaultyHubEnvironment.open_faulty(plane, seed=number, delays=delays)
            )
            for number, delays in enumerate((BRISK, BRISK, dict.fromkeys(BRISK, NEIGHBOURLY)))
        ]
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            beside = tasks.create_task(lives(neighbour, ended))
            parts = [
                tasks.create_task(cut_in_every_stage(*how, deleting=deleting, replicas=replicas))
                for *how, deleting, replicas in (
                    (refused, REFUSED, letting_go, 2),
                    (silent, SILENT, unclaiming, 1),
                )
            ]
            await asyncio.wait(parts)
            ended.set()
        print("seconds from healing to well:", [part.result() for part in parts])
        # Its orders take as long as ever: each cut alone would be time enough for one.
        assert beside.result() >= 3


@pytest.mark.parametrize("fault", [{"cut": REFUSED}, {"cut": SILENT}, {"code": 500}], ids=str)
async def test_the_service_spares_a_hub_that_fails(
    hub: FaultyHubEnvironment, fault: dict[str, Any]
) -> None:
    assert await asked_by_the_service(hub, fault, CircuitBreaker()) <= MOST


async def test_without_its_gate_the_service_would_not(hub: FaultyHubEnvironment) -> None:
    """The planted fault: the same, with a gate that never closes."""
    assert await asked_by_the_service(hub, {"code": 500}, CircuitBreaker(failures=10**9)) > MOST


async def asked_by_the_service(
    hub: FaultyHubEnvironment, fault: dict[str, Any], circuit_breaker: CircuitBreaker
) -> float:
    """Many workers want something of the hub at once, for a while; the requests per second that reach it."""
    client = connect_hub(read_kubeconfig(hub.proxy.kubeconfig(hub.credentials)), circuit_breaker)
    book = KubeOrderBook(HubConnection(client, hub.place, system_namespace=hub.system))
    assert await book.get("c-1") is None
    hub.proxy.set(**fault)
    began = time.monotonic()
    end = began + SETTLING + 6.0

    async def worker() -> None:
        while time.monotonic() < end:
            with pytest.raises(Unavailable):
                await book.get("c-1")
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(worker())
    assert time.monotonic() < end + 20.0, "nobody waits for it for long"
    rate = hub.proxy.most_per_second(began + SETTLING, end)
    hub.proxy.heal()

    async def answers() -> bool:
        try:
            return await book.get("c-1") is None
        except Unavailable:
            return False

    await until(answers, "it is asked again", seconds=BACK)
    await hang_up(client)
    return rate


@pytest.mark.timeout(300)
async def test_an_operator_with_much_to_do_spares_a_hub_that_fails(plane: ControlPlane) -> None:
    """Beside it, as a planted fault, one whose gate is always open."""
    async with (
        FaultyHubEnvironment.open_faulty(plane) as sound,
        FaultyHubEnvironment.open_faulty(plane) as careless,
    ):
        rates = await asyncio.gather(
            asked_by_an_operator(sound),
            asked_by_an_operator(careless, plant="tests.support.planted_bugs.operator:no_gate"),
        )
    assert rates[0] <= MOST < rates[1]


async def asked_by_an_operator(hub: FaultyHubEnvironment, plant: str = "") -> float:
    """The requests per second that reach a hub that answers 500, with a dozen orders begun on it."""
    replica = await hub.start(plant=plant)
    await hub.until_leading(replica)
    claimed = cut_at(hub.proxy, claiming, "", time=6)
    for number in range(12):
        await hub.put(f"c-{number}", 0)
    async with asyncio.timeout(120):
        await claimed.wait()
    hub.proxy.set(code=500)
    began = time.monotonic()
    await asyncio.sleep(SETTLING + 6.0)
    return hub.proxy.most_per_second(began + SETTLING, time.monotonic())


@pytest.mark.timeout(300)
async def test_who_is_cut_off_does_nothing_on_what_it_saw_last(plane: ControlPlane) -> None:
    """Two operators; the leader loses the hub and keeps the data centre. Beside it, one that forgets to ask."""
    async with (
        FaultyHubEnvironment.open_faulty(plane) as sound,
        FaultyHubEnvironment.open_faulty(plane) as careless,
    ):
        found = await asyncio.gather(
            overtaken(sound),
            overtaken(careless, plant="tests.support.planted_bugs.operator:leads_for_ever"),
        )
    assert found[0] == []
    assert found[1] != [], "an operator that acts without leading was not noticed"


async def overtaken(hub: FaultyHubEnvironment, plant: str = "") -> list[Any]:
    """What was done twice: a leader is cut off while a cluster grows; its successor shrinks the cluster again."""
    first = await hub.start(plant=plant)
    await hub.until_leading(first)
    second = await hub.start(direct=True)
    await hub.put("c-1", 1)
    await hub.until_ready("c-1", 1)
    cut = cut_at(hub.proxy, telling, REFUSED, time=2)
    await hub.put("c-1", 4, generation=2)
    async with asyncio.timeout(120):
        await cut.wait()
    began = time.monotonic()
    took = await hub.until_leading(second, seconds=60)
    assert took <= 15.0, f"{took:.1f} s until the second leads"
    await hub.until_ready("c-1", 4, generation=2, seconds=BACK)
    await hub.put("c-1", 1, generation=3)
    await hub.until_ready("c-1", 1, generation=3, seconds=BACK)
    # By then one that goes on as if it led has tried four times, each time twice as late as before.
    await asyncio.sleep(max(0.0, began + 40.0 - time.monotonic()))
    hub.proxy.hook = None
    hub.proxy.heal()
    await hub.delete("c-1")
    if not plant:
        await hub.until_deleted("c-1", seconds=BACK)
        await hub.until_nothing_is_left()
    return await hub.doubled("c-1")
