"""More nodes, fewer nodes, another version, and a changed mind half way."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from boatyard.model.generated.osac import ClusterNodeSet, ClusterState, HostTypeReference
from boatyard.twin.layout import Layout
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import EVEN, small_layout


async def test_scaling_up_adds_nodes_and_touches_nothing_else(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    before = await environment.held(web)

    await environment.scale(web, compute=4)
    await environment.turn()
    assert await environment.state(web) == ClusterState.PROGRESSING
    await environment.run_to(web, ClusterState.READY)

    after = await environment.held(web)
    assert len(after["node"]) == 4
    for kind, things in before.items():
        assert things.items() <= after[kind].items(), kind
    assert (await environment.cluster(web)).status.ready_nodes == {"compute": 4}


async def test_scaling_down_drains_the_node_the_platform_names_before_its_host_goes(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 3})
    await environment.run_to(web, ClusterState.READY)
    # The platform prefers one that is not ready, so compute-0 it is and not the youngest.
    held = await environment.held(web)
    (host,) = held["host"][f"{web}/host/compute-0"]
    await environment.call("node_not_ready", hub="hub-1", host=host)
    seen = len(await environment.happenings())

    await environment.scale(web, compute=2)
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)

    assert sorted((await environment.held(web))["node"]) == [
        f"{web}/node/compute-1",
        f"{web}/node/compute-2",
    ]
    assert (await environment.happenings())[seen:] == [
        ("node", f"{web}/node/compute-0", -1),
        ("port", f"{web}/port/compute-0", -1),
        ("host", f"{web}/host/compute-0", -1),
    ]


@pytest.mark.parametrize("overrides", [{}, EVEN], ids=["at once", "in two seconds each"])
async def test_scaling_down_keeps_its_reservation_until_the_nodes_and_hosts_are_gone(
    new_environment: NewEnvironment, overrides: dict[str, float]
) -> None:
    environment = await new_environment(overrides=overrides)
    web = await environment.order("web", sizes={"compute": 5})
    await environment.run_to(web, ClusterState.READY)

    await environment.scale(web, compute=2)
    await environment.turn()
    while len(await environment.names("host", web)) > 2:
        assert (await environment.ledger.claims.list_reservations(web))[
            "hub-1/capacity/bm-small"
        ] == 5
        await environment.step()
    await environment.run(within=timedelta(minutes=5))

    assert await environment.state(web) == ClusterState.READY
    reserved = await environment.ledger.claims.list_reservations(web)
    assert reserved == {"hub-1/capacity/bm-small": 2, "hub-1/capacity/clusters": 1}
    assert len(await environment.pool_claims("hub-1/hosts")) == 2


async def test_a_node_set_that_goes_gives_back_its_host_type(
    new_environment: NewEnvironment,
) -> None:
    layout = small_layout(hubs=1)
    hub = layout.hubs["hub-1"]
    hosts = {"bm-small": 4, "bm-large": 4}
    layout = Layout(hubs={"hub-1": msgspec.structs.replace(hub, hosts=hosts)})
    environment = await new_environment(layout=layout)
    web = await environment.order("web", sizes={"compute": 1})
    small = (await environment.cluster(web)).spec.node_sets["compute"]
    large = ClusterNodeSet(host_type=HostTypeReference(id="bm-large", name="bm-large"), size=2)
    await environment.change(web, node_sets={"compute": small, "more": large})
    await environment.run_to(web, ClusterState.READY)
    assert (await environment.ledger.claims.list_reservations(web))["hub-1/capacity/bm-large"] == 2

    await environment.change(web, node_sets={"compute": small})
    await environment.run(within=timedelta(minutes=5))

    assert await environment.ledger.claims.list_reservations(web) == {
        "hub-1/capacity/bm-small": 1,
        "hub-1/capacity/clusters": 1,
    }


async def test_scaling_to_nothing_and_back(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    for size in (0, 3):
        await environment.scale(web, compute=size)
        await environment.turn()
        await environment.run_to(web, ClusterState.READY)
        assert len(await environment.names("node", web)) == size


@pytest.mark.form_cases("moments", [0, 2, 4, 6], on_hub=[2, 6])
async def test_growing_again_while_shrinking_ends_with_what_was_asked_last(
    new_environment: NewEnvironment, moments: int
) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 4})
    await environment.run_to(web, ClusterState.READY)

    await environment.scale(web, compute=1)
    await environment.turn()
    for _ in range(moments):
        await environment.step()
    await environment.scale(web, compute=3)
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)

    held = await environment.held(web)
    assert [len(held[kind]) for kind in ("host", "port", "node")] == [3, 3, 3]
    assert len(await environment.pool_claims("hub-1/hosts")) == 3
    assert (await environment.ledger.claims.list_reservations(web))["hub-1/capacity/bm-small"] == 3


@pytest.mark.form_cases("moments", [0, 4, 8], on_hub=[4])
async def test_scaling_down_while_still_creating(
    new_environment: NewEnvironment, moments: int
) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 3})
    await environment.turn()
    for _ in range(moments):
        await environment.step()

    await environment.scale(web, compute=1)
    await environment.turn()
    await environment.run_to(web, ClusterState.READY)
    await environment.run(within=timedelta(minutes=2))

    assert len(await environment.names("host", web)) == 1
    assert (await environment.ledger.claims.list_reservations(web))["hub-1/capacity/bm-small"] == 1


async def test_a_version_taken_back_half_way_is_taken_back_outside_too(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)

    await environment.set_version(web, "4.18.3")
    await environment.turn()
    await environment.set_version(web, "4.17.9")
    await environment.run(within=timedelta(minutes=2))

    assert await environment.state(web) == ClusterState.READY
    seen = environment.world.call(
        "platform.observe",
        {"hub": "hub-1", "cluster_key": f"{web}/cluster"},
        environment.clock.now().timestamp(),
    ).value
    assert seen["version"] == "4.17.9"


async def test_scaling_down_while_the_platform_is_dead_waits_for_its_choice(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 3})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service("platform", "dead")
    seen = len(await environment.happenings())

    await environment.scale(web, compute=1)
    await environment.run(within=timedelta(minutes=30))
    assert len(await environment.happenings()) == seen, (
        "nobody leaves before the platform has chosen"
    )
    assert await environment.state(web) == ClusterState.PROGRESSING
    explanation = await environment.explain(web)
    assert explanation.blocked_by == "install"

    await environment.heal()
    await environment.run_to(web, ClusterState.READY)
    assert len(await environment.names("node", web)) == 1
