"""Random lives: whatever is ordered, changed, broken and healed in whatever order, all of it can be taken back."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.model.generated.osac import ClusterState
from tests.journeys.conftest import check_promises
from tests.support.postgres import migrated
from tests.support.simulated.environment import SimulatedEnvironment, open_environment
from tests.support.simulated.twin import EVEN, small_layout

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
        open_environment(url, layout=small_layout(hosts=5, hubs=2), overrides=EVEN) as environment,
    ):
        orders: list[str] = []
        for verb, *args in moves:
            await _move(environment, orders, str(verb), args)
        await check_promises(environment)

        await environment.heal()
        for order in orders:
            if await environment.state(order) is not None:
                await environment.delete(order)
        await environment.run_until_nothing_is_left()

        await environment.assert_nothing_left()
        await check_promises(environment)


async def _move(
    environment: SimulatedEnvironment, orders: list[str], verb: str, args: list[object]
) -> None:
    match verb, *args:
        case "order", int(size):
            orders.append(await environment.order(f"web-{len(orders)}", sizes={"compute": size}))
        case "break", str(service), str(profile):
            await environment.break_service(service, profile, every=5)
        case "heal":
            await environment.heal()
        case "step", int(count):
            await environment.turn()
            for _ in range(count):
                await environment.step()
        case "pass", int(minutes):
            await environment.run(within=timedelta(minutes=minutes))
        case _, int(who), *rest if who < len(orders):
            await _change(environment, orders[who], verb, rest)


async def _change(
    environment: SimulatedEnvironment, order: str, verb: str, rest: list[object]
) -> None:
    state = await environment.state(order)
    if state in (None, ClusterState.DELETING) and verb != "delete":
        return
    if state is None:
        return
    match verb, *rest:
        case "scale", int(size):
            await environment.scale(order, compute=size)
        case "version", str(version):
            await environment.set_version(order, version)
        case "delete":
            await environment.delete(order)
        case "retry":
            await environment.retry_if_ordered(order)
