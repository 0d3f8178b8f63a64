"""Random lives: whatever is ordered, changed, broken and healed in whatever order, all of it can be taken back."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.model.generated.osac import ClusterState
from tests.journeys.conftest import check_promises
from tests.support.postgres import migrated
from tests.support.stage import EVEN, small_layout
from tests.support.yard import Yard, open_yard

SERVICES = st.sampled_from(["inventory", "l2", "l3", "dns", "platform", "checks", "*"])
WHO = st.integers(0, 2)
MOVES = st.one_of(
    st.tuples(st.just("order"), st.integers(0, 3)),
    st.tuples(st.just("scale"), WHO, st.integers(0, 4)),
    st.tuples(st.just("version"), WHO, st.sampled_from(["4.17.9", "4.18.3"])),
    st.tuples(st.just("delete"), WHO),
    st.tuples(st.just("retry"), WHO),
    st.tuples(st.just("break"), SERVICES, st.sampled_from(["dead", "flaky", "lies"])),
    st.tuples(st.just("heal")),
    st.tuples(st.just("step"), st.integers(1, 12)),
    st.tuples(st.just("pass"), st.integers(1, 20)),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, min_size=4, max_size=14))
def test_every_life_can_be_taken_back(
    postgres: EmbeddedPostgres, moves: list[tuple[object, ...]]
) -> None:
    asyncio.run(_live(postgres, moves))


async def _live(postgres: EmbeddedPostgres, moves: list[tuple[object, ...]]) -> None:
    async with (
        migrated(postgres) as url,
        open_yard(url, layout=small_layout(hosts=5, hubs=2), overrides=EVEN) as yard,
    ):
        orders: list[str] = []
        for verb, *args in moves:
            await _move(yard, orders, str(verb), args)
        await check_promises(yard)

        await yard.heal()
        for order in orders:
            if await yard.state(order) is not None:
                await yard.delete(order)
        await yard.run_until_nothing_is_left()

        await yard.assert_nothing_left()
        await check_promises(yard)


async def _move(yard: Yard, orders: list[str], verb: str, args: list[object]) -> None:
    match verb, *args:
        case "order", int(size):
            orders.append(await yard.order(f"web-{len(orders)}", sizes={"compute": size}))
        case "break", str(service), str(profile):
            await yard.break_service(service, profile, every=5)
        case "heal":
            await yard.heal()
        case "step", int(count):
            await yard.turn()
            for _ in range(count):
                await yard.step()
        case "pass", int(minutes):
            await yard.run(within=timedelta(minutes=minutes))
        case _, int(who), *rest if who < len(orders):
            await _change(yard, orders[who], verb, rest)


async def _change(yard: Yard, order: str, verb: str, rest: list[object]) -> None:
    state = await yard.state(order)
    if state in (None, ClusterState.DELETING) and verb != "delete":
        return
    if state is None:
        return
    match verb, *rest:
        case "scale", int(size):
            await yard.scale(order, compute=size)
        case "version", str(version):
            await yard.set_version(order, version)
        case "delete":
            await yard.delete(order)
        case "retry":
            await yard.retry_if_ordered(order)
