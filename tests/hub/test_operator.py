"""The operator as a whole: an order to its end, probes and metrics, settings that change, one leader of two."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from boatyard.kube.kinds import CONFIG_MAPS, EVENTS, LEASES, SECRETS
from boatyard.model import hub_names
from boatyard.model.generated.boatyard import OrderNodeSet, OrderPhase
from boatyard.orderbook.kube.kinds import CLAIMS, CLUSTER_ORDERS, LEFTOVERS
from tests.contracts.order_books import SPEC
from tests.support.kube_hub.api_server import until
from tests.support.kube_hub.audit import Audit, rights_of
from tests.support.kube_hub.environment import DEPLOY, KubeHubEnvironment, probe


async def put(hub: KubeHubEnvironment, order_id: str = "c-1", **changes: object) -> None:
    spec = msgspec.structs.replace(SPEC, **changes)
    await hub.book.put(order_id, tenant="acme", spec=spec, now=datetime.now(UTC))


async def until_forgotten(hub: KubeHubEnvironment, order_id: str = "c-1") -> None:
    await hub.until_phase(order_id, OrderPhase.DELETED)
    await hub.book.forget(order_id, now=datetime.now(UTC))

    async def gone() -> bool:
        return (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items == []

    await until(gone, "the object is gone")


async def assert_nothing_left(hub: KubeHubEnvironment) -> None:
    assert await hub.truth() == {}
    for kind, namespace in (
        (CLUSTER_ORDERS, hub.place.shared_namespace),
        (LEFTOVERS, hub.place.shared_namespace),
        (SECRETS, hub.place.shared_namespace),
        (CLAIMS, hub.system),
    ):
        assert (await hub.client.list(kind, namespace)).items == [], kind.plural


async def test_an_order_becomes_a_cluster_grows_shrinks_and_is_taken_back(
    hub: KubeHubEnvironment,
) -> None:
    await put(hub)
    async with hub.operator():
        order = await hub.until_phase("c-1", OrderPhase.READY)
        assert order.status.ready_nodes == {"compute": 3}
        assert order.status.credentials.kubeconfig
        for size, generation in ((5, 2), (1, 3)):
            wish = {"compute": OrderNodeSet(host_type="bm-small", size=size)}
            await put(hub, node_sets=wish, generation=generation)

            async def settled(generation: int = generation) -> bool:
                status = (await hub.order("c-1")).status
                follows = status.observed_generation == generation
                return follows and status.phase == OrderPhase.READY

            await until(settled, f"{size} nodes")
            assert (await hub.order("c-1")).status.ready_nodes == {"compute": size}
        await hub.delete("c-1")
        await until_forgotten(hub)
    await assert_nothing_left(hub)


async def test_what_people_see_with_kubectl(hub: KubeHubEnvironment) -> None:
    await put(hub)
    async with hub.operator():
        await hub.until_phase("c-1", OrderPhase.READY)
        (item,) = (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items
        status = item["status"]
        assert status["phase"] == "Ready"
        held = {one["type"]: one["status"] for one in status["conditions"]}
        for name in ("Accepted", "ControlPlaneCreated", "ControlPlaneAvailable", "NodesReady"):
            assert held[name] == "True"
        assert held["Progressing"] == held["Deleting"] == "False"
        assert status["nodeRequests"][0]["numberOfNodes"] == 3
        assert (status["desiredWorkers"], status["readyWorkers"]) == (3, 3)
        assert status["apiEndpoint"]

        async def told() -> bool:
            events = (await hub.client.list(EVENTS, hub.place.shared_namespace)).items
            return any(one["reason"] == "Planned" for one in events)

        await until(told, "an event")


async def test_an_order_of_another_tool_is_carried_out(hub: KubeHubEnvironment) -> None:
    made = await hub.client.create(
        CLUSTER_ORDERS,
        {
            "metadata": {"generateName": "order-"},
            "spec": {
                "templateID": "ocp_4_17_small",
                "nodeRequests": [{"resourceClass": "bm-small", "numberOfNodes": 1}],
                "releaseImage": "quay.example/release:4.17.9",
            },
        },
        hub.place.shared_namespace,
    )
    name = made["metadata"]["name"]

    async def phase() -> str:
        item = await hub.client.get(CLUSTER_ORDERS, name, hub.place.shared_namespace)
        return str((item.get("status") or {}).get("phase"))

    async with hub.operator():

        async def ready() -> bool:
            return await phase() == "Ready"

        await until(ready, "it is ready")
        await hub.client.delete(CLUSTER_ORDERS, name, hub.place.shared_namespace)

        async def gone() -> bool:
            return (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items == []

        await until(gone, "it is gone")
    await assert_nothing_left(hub)


def of_another_tool(**spec: object) -> dict[str, object]:
    made = {"templateID": "small", "releaseImage": "quay.example/release:4.17.9", **spec}
    return {"metadata": {"generateName": "order-"}, "spec": made}


async def test_an_order_that_nobody_can_read_says_so_and_can_be_deleted(
    hub: KubeHubEnvironment,
) -> None:
    where = hub.place.shared_namespace
    body = of_another_tool(templateParameters="oops")
    async with hub.operator() as office:
        made = await hub.client.create(CLUSTER_ORDERS, body, where)
        name = made["metadata"]["name"]

        async def failed() -> bool:
            item = await hub.client.get(CLUSTER_ORDERS, name, where)
            conditions = (item.get("status") or {}).get("conditions") or ()
            said = {one["type"]: one for one in conditions if one["status"] == "True"}
            return "templateParameters" in said.get("Failed", {}).get("message", "")

        await until(failed, "it has failed, with the reason")
        item = await hub.client.get(CLUSTER_ORDERS, name, where)
        assert item["status"]["phase"] == "Failed"

        async def told() -> bool:
            events = (await hub.client.list(EVENTS, where)).items
            return any(one["reason"] == "Failed" and one["type"] == "Warning" for one in events)

        await until(told, "an event")
        await hub.client.delete(CLUSTER_ORDERS, name, where)
        # A second one goes before anybody has put a finalizer on it, or with none any more.
        bare = await hub.client.create(CLUSTER_ORDERS, body, where)
        await hub.client.delete(CLUSTER_ORDERS, bare["metadata"]["name"], where)

        async def gone() -> bool:
            return (await hub.client.list(CLUSTER_ORDERS, where)).items == []

        await until(gone, "both are gone")
        await put(hub)
        await hub.until_phase("c-1", OrderPhase.READY)
        assert office.operator.leadership.terms == 1, "the leader has not died of it"


@pytest.mark.parametrize("mended", [True, False])
async def test_a_cluster_whose_order_was_made_unreadable_is_not_lost(
    hub: KubeHubEnvironment, mended: bool
) -> None:
    """It keeps all it has, and goes on when the order is mended, or is taken back when it is deleted."""
    await put(hub)
    async with hub.operator():
        await hub.until_phase("c-1", OrderPhase.READY)
        before = await hub.truth()
        await hub.client.merge_patch(
            *(CLUSTER_ORDERS, hub_names.order_name("c-1")),
            *({"spec": {"templateParameters": "oops"}}, hub.place.shared_namespace),
        )
        order = await hub.until_phase("c-1", OrderPhase.FAILED)
        assert order.status.items
        assert await hub.truth() == before
        if mended:
            await put(hub)  # what the service does on its next look
            await hub.until_phase("c-1", OrderPhase.READY)
            assert await hub.truth() == before
        await hub.delete("c-1")
        await until_forgotten(hub)
    await assert_nothing_left(hub)


async def test_a_manual_order_is_looked_at_and_not_touched(hub: KubeHubEnvironment) -> None:
    await put(hub)
    async with hub.operator():
        await hub.until_phase("c-1", OrderPhase.READY)
        (item,) = (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items
        manual = {"annotations": {hub_names.MANAGEMENT_STATE: hub_names.MANUAL}}
        await hub.client.merge_patch(
            CLUSTER_ORDERS,
            item["metadata"]["name"],
            {"metadata": manual},
            hub.place.shared_namespace,
        )
        before = await hub.truth()
        wish = {"compute": OrderNodeSet(host_type="bm-small", size=5)}
        await put(hub, node_sets=wish, generation=2)
        await asyncio.sleep(1.0)  # nothing must happen in it
        assert await hub.truth() == before
        assert (await hub.order("c-1")).status.observed_generation == 1
        automatic = {"annotations": {hub_names.MANAGEMENT_STATE: None}}
        await hub.client.merge_patch(
            *(CLUSTER_ORDERS, item["metadata"]["name"], {"metadata": automatic}),
            hub.place.shared_namespace,
        )

        async def grown() -> bool:
            return (await hub.order("c-1")).status.ready_nodes == {"compute": 5}

        await until(grown, "it goes on by itself again")


async def test_a_retry_from_outside_makes_it_try_at_once(hub: KubeHubEnvironment) -> None:
    await hub.twin_does("set_fault", hub="*", service="dns", profile="dead")
    await put(hub)
    async with hub.operator():

        async def failing() -> bool:
            return any(step.tries >= 1 for step in (await hub.order("c-1")).status.steps)

        await until(failing, "a step has failed and waits for its next try")
        await hub.twin_does("clear_faults")
        for count in (1, 1, 2):
            await hub.book.request_retry("c-1", count)
        await hub.until_phase("c-1", OrderPhase.READY)

        async def heard() -> bool:
            return (await hub.order("c-1")).status.retried == 2

        await until(heard, "both retries are counted, the repeated one once")


async def test_two_operators_share_a_hub_and_one_works(hub: KubeHubEnvironment) -> None:
    async with hub.operator() as first, hub.operator() as second:
        for number in range(4):
            await put(hub, f"c-{number}", node_sets={})
        for number in range(4):
            await hub.until_phase(f"c-{number}", OrderPhase.READY)
        assert [first.operator.leadership.is_leader, second.operator.leadership.is_leader].count(
            True
        ) == 1
    reply = hub.world.call("twin.effects", {}, datetime.now(UTC).timestamp())
    assert {(row["applied"], row["removed"]) for row in reply.value} == {(1, 0)}


async def test_another_follows_at_once_when_the_leader_ends_in_good_order(
    hub: KubeHubEnvironment,
) -> None:
    async with hub.operator() as first:
        await until(lambda: first.operator.leadership.is_leader, "the first leads")
        async with hub.operator() as second:
            pass  # it never leads
        assert second.operator.leadership.terms == 0
    lease = await hub.client.get(LEASES, "boatyard-operator", hub.system)
    assert lease["spec"]["holderIdentity"] == ""


async def test_probes_and_metrics_say_how_it_is(hub: KubeHubEnvironment) -> None:
    await hub.client.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, hub.system)
    async with hub.operator() as office:
        ports: list[int] = []
        office.operator.on_probes = ports.append
        await until(lambda: ports, "the probes answer")
        assert (await probe(ports[0], "/healthz"))[0] == 200

        async def unregistered() -> bool:
            return await probe(ports[0], "/readyz") == (503, "this hub is not registered\n")

        await until(unregistered, "it waits for the hub's settings")
        await hub.register()
        await put(hub)
        await hub.until_phase("c-1", OrderPhase.READY)
        assert await probe(ports[0], "/readyz") == (200, "ok\n")
        code, text = await probe(ports[0], "/metrics")
        assert code == 200
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
        assert lines["boatyard_operator_leader"] == "1"
        assert lines["boatyard_operator_terms_total"] == "1"
        assert lines['boatyard_operator_orders{phase="Ready"}'] == "1"
        assert float(lines['boatyard_operator_turns_total{kind="Order",outcome="changed"}']) > 1
        assert float(lines["process_resident_memory_bytes"]) > 1e6


async def test_changed_settings_take_effect_without_a_restart(hub: KubeHubEnvironment) -> None:
    await hub.register(drivers={"dns": "carrier-pigeon"})
    await put(hub)
    async with hub.operator() as office:

        async def stuck() -> bool:
            return any(step.tries > 0 for step in (await hub.order("c-1")).status.steps)

        await until(stuck, "there is no such driver")
        await hub.register()
        await hub.until_phase("c-1", OrderPhase.READY)
        assert office.operator.leadership.terms == 1, "the lead was kept"


async def test_the_shipped_rights_are_enough_and_none_is_too_many(hub: KubeHubEnvironment) -> None:
    audit = Audit(hub.plane, f"{hub.system}:boatyard-operator")
    kubeconfig = await hub.account("boatyard-operator")
    async with hub.operator(kubeconfig):
        await put(hub)
        await hub.until_phase("c-1", OrderPhase.READY)
        await _changed_under_its_hands(hub)
        await hub.delete("c-1")
        await until_forgotten(hub)
        await _left_behind(hub)
        await _made_by_others(hub)
    async with hub.operator(kubeconfig) as office:  # finds the Lease of the one before
        await until(lambda: office.operator.leadership.is_leader, "it leads")
    await assert_nothing_left(hub)
    assert audit.refused() == []
    granted = rights_of(
        one
        for one in hub.manifests(f"{DEPLOY}/rbac/operator.yaml")
        if one["metadata"]["name"] == "boatyard-operator"
    )
    assert granted - audit.used() == set(), "granted, and never used"
    assert audit.used() - granted == set()


async def _changed_under_its_hands(hub: KubeHubEnvironment) -> None:
    """Somebody changes the order again and again while it is worked on: sometimes in the middle of a turn."""
    audit = Audit(hub.plane, f"{hub.system}:boatyard-operator")

    async def looked_up() -> bool:
        return ("osac.openshift.io", "clusterorders", "get") in audit.used()

    for number in range(1, 200):
        await hub.book.request_retry("c-1", number)
        if await looked_up():
            return
    raise AssertionError("two hundred changes, and never one in the middle of a turn")


async def _left_behind(hub: KubeHubEnvironment) -> None:
    """A deletion that cannot release a host in time, and the host released later."""
    await put(hub, "c-2")
    await hub.until_phase("c-2", OrderPhase.READY)
    await hub.twin_does("set_fault", hub="*", service="inventory", profile="dead")
    await hub.delete("c-2", within=timedelta(seconds=1))
    await until_forgotten(hub, "c-2")
    assert await hub.book.get_leftover("c-2") is not None
    await hub.twin_does("clear_faults")
    # It is tried again in half a minute; a new leader tries at once.
    (left,) = (await hub.client.list(LEFTOVERS, hub.place.shared_namespace)).items
    await hub.register(any="setting")

    async def released() -> bool:
        return await hub.book.get_leftover("c-2") is None

    await until(released, f"{left['metadata']['name']} is released")


async def _made_by_others(hub: KubeHubEnvironment) -> None:
    """An order without our finalizer."""
    made = await hub.client.create(CLUSTER_ORDERS, of_another_tool(), hub.place.shared_namespace)
    name = made["metadata"]["name"]

    async def ready() -> bool:
        item = await hub.client.get(CLUSTER_ORDERS, name, hub.place.shared_namespace)
        return (item.get("status") or {}).get("phase") == "Ready"

    await until(ready, "it is ready")
    await hub.client.delete(CLUSTER_ORDERS, name, hub.place.shared_namespace)

    async def gone() -> bool:
        return (await hub.client.list(CLUSTER_ORDERS, hub.place.shared_namespace)).items == []

    await until(gone, "it is gone")


async def test_a_right_that_is_missing_is_noticed(hub: KubeHubEnvironment) -> None:
    """The planted fault: the audit sees what was refused."""
    audit = Audit(hub.plane, f"{hub.system}:nobody")
    await hub.client.call(
        "POST",
        f"/api/v1/namespaces/{hub.system}/serviceaccounts",
        body={"metadata": {"name": "nobody"}},
    )
    path = f"/api/v1/namespaces/{hub.system}/serviceaccounts/nobody/token"
    made = await hub.client.call("POST", path, body={"spec": {"expirationSeconds": 600}})
    kubeconfig = hub.plane.kubeconfig_for({"token": made["status"]["token"]})
    async with hub.operator(kubeconfig):
        await until(lambda: audit.refused(), "something is refused")
    assert rights_of([{"rules": [{"apiGroups": ["a"], "resources": ["b"], "verbs": ["c"]}]}]) == {
        ("a", "b", "c")
    }


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders on two busy cores take their time."""
    monkeypatch.setattr("tests.support.kube_hub.api_server._PATIENCE", 2000)
