"""From an order to a running cluster."""

from __future__ import annotations

import asyncpg

from boatyard.model.generated.boatyard import StepState
from boatyard.model.generated.osac import ClusterConditionType, ClusterState, ConditionStatus
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import BEGIN


async def test_an_order_becomes_a_ready_cluster_in_real_time_spans(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="real")
    web = await environment.order("web", sizes={"compute": 3})

    await environment.run_to(web, ClusterState.READY)

    cluster = await environment.cluster(web)
    assert cluster.status.ready_nodes == {"compute": 3}
    assert cluster.status.node_sets["compute"].size == 3
    assert cluster.status.api_url.startswith("https://api.web-")
    assert cluster.status.console_url.startswith("https://console.apps.web-")
    assert cluster.status.observed_generation == 1
    assert len(await environment.names("node", web)) == 3
    minutes = (environment.clock.now() - BEGIN).total_seconds() / 60
    assert 15 < minutes < 45, "the time is spent by the twin, not by us"


async def test_every_condition_is_true_or_false_with_a_time_when_ready(
    environment: SimulatedEnvironment,
) -> None:
    web = await environment.order("web")
    await environment.run_to(web, ClusterState.READY)

    conditions = {c.type: c for c in (await environment.cluster(web)).status.conditions}

    kinds = ClusterConditionType
    true = {name for name, found in conditions.items() if found.status == ConditionStatus.TRUE}
    assert true == {
        kinds.READY,
        kinds.CLUSTER_AVAILABLE,
        kinds.NODES_READY,
        kinds.INFRASTRUCTURE_READY,
        kinds.TEMPLATE_APPLIED,
    }
    assert {kinds.PROGRESSING, kinds.FAILED, kinds.DEGRADED} == conditions.keys() - true
    assert all(found.last_transition_time and found.reason for found in conditions.values())


async def test_several_node_sets_get_hosts_of_their_own(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 2, "support": 1})
    await environment.run_to(web, ClusterState.READY)

    assert (await environment.cluster(web)).status.ready_nodes == {"compute": 2, "support": 1}
    assert len(set(await environment.names("host", web))) == 3


async def test_a_cluster_without_nodes_becomes_ready(environment: SimulatedEnvironment) -> None:
    bare = await environment.order("bare", sizes={"compute": 0})
    await environment.run_to(bare, ClusterState.READY)

    assert await environment.names("host", bare) == []


async def test_steps_that_do_not_need_each_other_run_together(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(overrides={"host": 60.0})
    web = await environment.order("web", sizes={"compute": 1})
    await environment.turn()

    steps = {step.name: step.state for step in (await environment.order_of(web)).status.steps}
    assert steps["hosts"] == StepState.WAITING
    assert await environment.names("network", web), "the VLAN does not wait for the host"
    assert await environment.names("port", web) == [], "the port does"


async def test_strangers_with_the_same_name_get_different_dns_names(
    environment: SimulatedEnvironment,
) -> None:
    ours = await environment.order("web", sizes={"compute": 1})
    theirs = await environment.order("web", tenant="globex", sizes={"compute": 1})
    await environment.run_to(ours, ClusterState.READY)
    await environment.run_to(theirs, ClusterState.READY)

    names = await environment.names("record")
    assert len(names) == len(set(names)) == 4


async def test_ten_orders_at_once_share_nothing(new_environment: NewEnvironment) -> None:
    environment = await new_environment()
    orders = [
        await environment.order(f"web-{n}", tenant=("acme", "globex")[n % 2], sizes={"compute": 1})
        for n in range(10)
    ]
    for order in orders:
        await environment.run_to(order, ClusterState.READY)

    truth = await environment.call("truth")
    for kind in ("host", "port", "network", "subnet", "floating", "record"):
        names = [(hub, n) for hub in truth for ns in truth[hub].get(kind, {}).values() for n in ns]
        assert len(names) == len(set(names)) >= 10, kind
    net = {e["key"]: e["applied"] - e["removed"] for e in await environment.call("effects")}
    assert set(net.values()) == {1}, "nothing was made twice"


async def test_secrets_are_nowhere_in_the_clear(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    order = await environment.order_of(web)
    kubeconfig = order.status.credentials.kubeconfig
    token = kubeconfig.rpartition("token: ")[2].strip()
    assert len(token) == 40
    planted = ("pull-secret-of-web", token, order.status.credentials.password)
    await environment.delete(web)
    await environment.run_until_gone(web)

    connection = await asyncpg.connect(environment.database_url)
    try:
        tables = [
            row[0]
            for row in await connection.fetch(
                "select tablename from pg_tables where schemaname = 'public'"
            )
        ]
        assert {"documents", "events", "archive", "work"} <= set(tables)
        for table in tables:
            for (text,) in await connection.fetch(f'select t::text from "{table}" t'):
                assert not [secret for secret in planted if secret in text], table
    finally:
        await connection.close()
