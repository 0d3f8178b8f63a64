"""More nodes, fewer nodes, another version, and a changed mind half way."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from boatyard.model.generated.osac import ClusterNodeSet, ClusterState, HostTypeReference
from boatyard.twin.layout import Layout
from tests.journeys.conftest import NewYard
from tests.support.stage import EVEN, small_layout
from tests.support.yard import Yard


async def test_scaling_up_adds_nodes_and_touches_nothing_else(new_yard: NewYard) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    before = await yard.held(web)

    await yard.scale(web, compute=4)
    await yard.turn()
    assert await yard.state(web) == ClusterState.PROGRESSING
    await yard.run_to(web, ClusterState.READY)

    after = await yard.held(web)
    assert len(after["node"]) == 4
    for kind, things in before.items():
        assert things.items() <= after[kind].items(), kind
    assert (await yard.cluster(web)).status.ready_nodes == {"compute": 4}


async def test_scaling_down_drains_the_node_the_platform_names_before_its_host_goes(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(delays="demo")
    web = await yard.order("web", sizes={"compute": 3})
    await yard.run_to(web, ClusterState.READY)
    # The platform prefers one that is not ready, so compute-0 it is and not the youngest.
    held = await yard.held(web)
    (host,) = held["host"][f"{web}/host/compute-0"]
    await yard.call("node_not_ready", hub="hub-1", host=host)
    seen = len(await yard.happenings())

    await yard.scale(web, compute=2)
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)

    assert sorted((await yard.held(web))["node"]) == [
        f"{web}/node/compute-1",
        f"{web}/node/compute-2",
    ]
    assert (await yard.happenings())[seen:] == [
        ("node", f"{web}/node/compute-0", -1),
        ("port", f"{web}/port/compute-0", -1),
        ("host", f"{web}/host/compute-0", -1),
    ]


@pytest.mark.parametrize("overrides", [{}, EVEN], ids=["at once", "in two seconds each"])
async def test_scaling_down_keeps_its_reservation_until_the_nodes_and_hosts_are_gone(
    new_yard: NewYard, overrides: dict[str, float]
) -> None:
    yard = await new_yard(overrides=overrides)
    web = await yard.order("web", sizes={"compute": 5})
    await yard.run_to(web, ClusterState.READY)

    await yard.scale(web, compute=2)
    await yard.turn()
    while len(await yard.names("host", web)) > 2:
        assert (await yard.ledger.claims.reservations(web))["hub-1/capacity/bm-small"] == 5
        await yard.step()
    await yard.run(within=timedelta(minutes=5))

    assert await yard.state(web) == ClusterState.READY
    reserved = await yard.ledger.claims.reservations(web)
    assert reserved == {"hub-1/capacity/bm-small": 2, "hub-1/capacity/clusters": 1}
    assert len(await yard.pool_claims("hub-1/hosts")) == 2


async def test_a_node_set_that_goes_gives_back_its_host_type(new_yard: NewYard) -> None:
    layout = small_layout(hubs=1)
    hub = layout.hubs["hub-1"]
    hosts = {"bm-small": 4, "bm-large": 4}
    layout = Layout(hubs={"hub-1": msgspec.structs.replace(hub, hosts=hosts)})
    yard = await new_yard(layout=layout)
    web = await yard.order("web", sizes={"compute": 1})
    small = (await yard.cluster(web)).spec.node_sets["compute"]
    large = ClusterNodeSet(host_type=HostTypeReference(id="bm-large", name="bm-large"), size=2)
    await yard.change(web, node_sets={"compute": small, "more": large})
    await yard.run_to(web, ClusterState.READY)
    assert (await yard.ledger.claims.reservations(web))["hub-1/capacity/bm-large"] == 2

    await yard.change(web, node_sets={"compute": small})
    await yard.run(within=timedelta(minutes=5))

    assert await yard.ledger.claims.reservations(web) == {
        "hub-1/capacity/bm-small": 1,
        "hub-1/capacity/clusters": 1,
    }


async def test_scaling_to_nothing_and_back(yard: Yard) -> None:
    web = await yard.order("web", sizes={"compute": 2})
    await yard.run_to(web, ClusterState.READY)
    for size in (0, 3):
        await yard.scale(web, compute=size)
        await yard.turn()
        await yard.run_to(web, ClusterState.READY)
        assert len(await yard.names("node", web)) == size


@pytest.mark.form_cases("moments", [0, 2, 4, 6], on_hub=[2, 6])
async def test_growing_again_while_shrinking_ends_with_what_was_asked_last(
    new_yard: NewYard, moments: int
) -> None:
    yard = await new_yard(overrides=EVEN)
    web = await yard.order("web", sizes={"compute": 4})
    await yard.run_to(web, ClusterState.READY)

    await yard.scale(web, compute=1)
    await yard.turn()
    for _ in range(moments):
        await yard.step()
    await yard.scale(web, compute=3)
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)

    held = await yard.held(web)
    assert [len(held[kind]) for kind in ("host", "port", "node")] == [3, 3, 3]
    assert len(await yard.pool_claims("hub-1/hosts")) == 3
    assert (await yard.ledger.claims.reservations(web))["hub-1/capacity/bm-small"] == 3


@pytest.mark.form_cases("moments", [0, 4, 8], on_hub=[4])
async def test_scaling_down_while_still_creating(new_yard: NewYard, moments: int) -> None:
    yard = await new_yard(overrides=EVEN)
    web = await yard.order("web", sizes={"compute": 3})
    await yard.turn()
    for _ in range(moments):
        await yard.step()

    await yard.scale(web, compute=1)
    await yard.turn()
    await yard.run_to(web, ClusterState.READY)
    await yard.run(within=timedelta(minutes=2))

    assert len(await yard.names("host", web)) == 1
    assert (await yard.ledger.claims.reservations(web))["hub-1/capacity/bm-small"] == 1


async def test_a_version_taken_back_half_way_is_taken_back_outside_too(new_yard: NewYard) -> None:
    yard = await new_yard(overrides=EVEN)
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)

    await yard.set_version(web, "4.18.3")
    await yard.turn()
    await yard.set_version(web, "4.17.9")
    await yard.run(within=timedelta(minutes=2))

    assert await yard.state(web) == ClusterState.READY
    seen = yard.world.call(
        "platform.observe",
        {"hub": "hub-1", "cluster_key": f"{web}/cluster"},
        yard.clock.now().timestamp(),
    ).value
    assert seen["version"] == "4.17.9"


async def test_scaling_down_while_the_platform_is_dead_waits_for_its_choice(
    new_yard: NewYard,
) -> None:
    yard = await new_yard(layout=small_layout(hubs=1))
    web = await yard.order("web", sizes={"compute": 3})
    await yard.run_to(web, ClusterState.READY)
    await yard.break_service("platform", "dead")
    seen = len(await yard.happenings())

    await yard.scale(web, compute=1)
    await yard.run(within=timedelta(minutes=30))
    assert len(await yard.happenings()) == seen, "nobody leaves before the platform has chosen"
    assert await yard.state(web) == ClusterState.PROGRESSING
    explanation = await yard.explain(web)
    assert explanation.blocked_by == "install"

    await yard.heal()
    await yard.run_to(web, ClusterState.READY)
    assert len(await yard.names("node", web)) == 1
