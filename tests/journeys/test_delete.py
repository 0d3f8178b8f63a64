"""Taking everything back: from every state, with every service dead, and always with a receipt."""

from __future__ import annotations

from datetime import timedelta

import pytest

from boatyard.model.generated.osac import Cluster, ClusterState
from boatyard.resources.orders.item_graph import ROLE_STEPS, STEPS
from tests.journeys.conftest import NewEnvironment
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.twin import EVEN, no_effect, small_layout
from tests.support.soak import soak

BOUND = timedelta(minutes=15)
LATEST = BOUND + timedelta(minutes=2)


async def test_deleting_a_ready_cluster_takes_everything_back_with_a_receipt(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(delays="demo")
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    held = await environment.held(web)
    asked = environment.clock.now()

    await environment.delete(web)
    await environment.run_until_gone(web, within=BOUND)

    await environment.assert_nothing_left()
    receipt = await environment.receipt_of(web)
    keys = {f"{web}/{line.key}" for line in receipt.gone}
    assert keys == {key for things in held.values() for key in things}
    assert len(receipt.gone) == len(keys), "each is named once"
    assert {line.name for line in receipt.gone if line.kind == "host"} == {
        name for names in held["host"].values() for name in names
    }
    assert (receipt.left, receipt.leftover) == ((), "")
    assert receipt.requested_at == asked
    assert receipt.finished_at is not None
    assert receipt.finished_at <= environment.clock.now()


async def test_things_go_in_the_reverse_order_of_the_road(new_environment: NewEnvironment) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    seen = len(await environment.happenings())
    await environment.delete(web)
    await environment.run_until_gone(web)

    gone = [kind for kind, _, _ in (await environment.happenings())[seen:]]
    for first, then in (
        ("node", "cluster"),
        ("node", "port"),
        ("port", "host"),
        ("cluster", "record"),
        ("record", "floating"),
        ("floating", "binding"),
        ("binding", "subnet"),
        ("port", "network"),
        ("subnet", "network"),
    ):
        assert gone.index(first) < gone.index(then), (first, then, gone)


async def test_a_node_made_after_its_release_is_released_before_its_cluster(
    environment: SimulatedEnvironment,
) -> None:
    """A worker that was stopped during `ensure_node` goes on while another takes the cluster back."""
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    key = f"{web}/node/compute-0"
    node = environment.world.state.hubs["hub-1"].things["node"][key]

    def make_late(point: str, effect_key: str) -> None:
        if (point, effect_key) == ("before:platform.release_cluster", f"{web}/cluster"):
            environment.on_effect = no_effect
            assert key not in environment.world.state.hubs["hub-1"].things["node"]
            environment.world.state.make(node, environment.clock.now().timestamp())

    environment.on_effect = make_late
    await environment.delete(web)
    await environment.run_until_gone(web, within=timedelta(minutes=1))

    await environment.assert_nothing_left()
    assert environment.on_effect is no_effect, "it was made"
    assert (await environment.receipt_of(web)).left == ()


async def test_deleting_before_anything_was_looked_at(environment: SimulatedEnvironment) -> None:
    web = await environment.order("web")
    await environment.delete(web)
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()


async def test_deleting_twice_is_deleting_once(new_environment: NewEnvironment) -> None:
    environment = await new_environment(overrides=EVEN)
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.delete(web)
    await environment.turn()
    first = (await environment.order_of(web)).spec.delete_by

    await environment.step()
    await environment.delete(web)
    await environment.turn()

    assert (await environment.order_of(web)).spec.delete_by == first
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()


def _pace(form: str, on_hub: int) -> int:
    """Every moment is tried in the form `embedded`; on a Kubernetes hub each n-th, and all in `make soak`."""
    return soak(short=on_hub, long=1) if form == "kube" else 1


async def test_a_delete_at_every_moment_of_a_creation_leaves_nothing(
    new_environment: NewEnvironment, form: str
) -> None:
    environment = await new_environment(overrides=EVEN)
    pace = _pace(form, 2)
    reached, moment = None, 0
    while reached != ClusterState.READY:
        web = await environment.order(f"web-{moment}", sizes={"compute": 2})
        await environment.turn()
        for _ in range(moment):
            await environment.step()
        reached = await environment.state(web)

        await environment.delete(web)
        await environment.run_until_gone(web, within=LATEST)

        await environment.assert_nothing_left()
        assert (await environment.receipt_of(web)).left == ()
        moment += pace
    assert moment > 5, "there were moments in between"


async def test_a_delete_during_any_effect_leaves_nothing(
    new_environment: NewEnvironment, form: str
) -> None:
    """The wish to delete comes while the order's turn is under way: its write is refused, nothing is lost."""
    environment = await new_environment(layout=small_layout(hubs=1))
    pace = _pace(form, 3)  # odd, so that it comes before effects and after them
    number, met = 0, True
    while met:
        web = await environment.order(f"web-{number}", sizes={"compute": 1})
        met = await _delete_at_effect(environment, web, number)
        if not met:
            await environment.run_to(web, ClusterState.READY)
            await environment.delete(web)
        await environment.run_until_gone(web, within=LATEST)
        await environment.assert_nothing_left()
        number += pace
    assert number > 20, "there are that many effects in a creation, before and after"


async def _delete_at_effect(
    environment: SimulatedEnvironment, cluster_id: str, number: int
) -> bool:
    """Runs, and asks for the deletion right at the effect of that number, counted before and after."""
    count = 0

    async def maybe_delete(point: str, key: str) -> None:
        nonlocal count
        if count == number:
            await environment.delete(cluster_id)
            # The cluster's own turn comes from another worker, in the middle of the order's.
            await environment.make_worker().run_until_idle()
        count += 1

    environment.on_effect = maybe_delete
    await environment.turn()
    environment.on_effect = no_effect
    return count > number


HANGING = [
    *((step, "stuck") for step in (*STEPS, "nodes") if step not in ROLE_STEPS),
    *((step, mood) for step in ("network", "install") for mood in ("unavailable", "refused")),
]


@pytest.mark.form_cases(
    "step, mood",
    HANGING,
    on_hub=[("hosts", "stuck"), ("network", "unavailable"), ("install", "refused")],
)
async def test_an_order_that_hangs_at_a_step_can_be_deleted(
    new_environment: NewEnvironment, step: str, mood: str
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    await environment.call("set_mood", order_id="*", step=step, mood=mood)
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run(within=timedelta(minutes=2))
    assert await environment.state(web) in (ClusterState.PROGRESSING, ClusterState.FAILED)
    explanation = await environment.explain(web)
    assert explanation.blocked_by == {"nodes": "install"}.get(step, step)

    await environment.delete(web)
    await environment.run_until_gone(web, within=timedelta(minutes=1))

    await environment.assert_nothing_left()


# That a lie of any service is noticed is each port's contract; here one is enough.
@pytest.mark.form_cases(
    "service, profile",
    [
        *((service, "dead") for service in ("inventory", "l2", "l3", "dns", "platform", "*")),
        ("*", "lies"),
    ],
    on_hub=[("inventory", "dead"), ("*", "lies")],
)
async def test_a_delete_ends_in_time_and_what_is_left_is_kept_until_it_is_released(
    new_environment: NewEnvironment, service: str, profile: str
) -> None:
    environment = await new_environment(layout=small_layout(hosts=2, hubs=1))
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    everything = {key for things in (await environment.held(web)).values() for key in things}
    await environment.break_service(service, profile)

    await environment.delete(web)
    await environment.run_until_gone(web, within=LATEST)

    # The receipt is exact: what is gone is gone, what is left is there.
    receipt = await environment.receipt_of(web)
    held = {key for things in (await environment.held(web)).values() for key in things}
    assert {f"{web}/{line.key}" for line in receipt.left} == held != set()
    assert {f"{web}/{line.key}" for line in receipt.gone} == everything - held
    assert receipt.leftover == web
    leftover = await environment.leftover_of(web)
    assert leftover is not None

    # Whatever is left keeps its claim and its share of the hub.
    claims = {claim.owner for claim in await environment.claimed()}
    claimable = ("host/", "l2", "l3", "api-address", "ingress-address")
    assert claims == {key for key in held if key.partition("/")[2].startswith(claimable)}
    reserved = await environment.ledger.claims.sum_reserved_by_pool()
    hosts = sum("/host/" in key for key in held)
    assert reserved.get("hub-1/capacity/bm-small", 0) == hosts

    await environment.heal()
    await environment.run_until_nothing_is_left()
    assert await environment.leftover_of(web) is None
    await environment.assert_nothing_left()


@pytest.mark.parametrize("service", ["inventory", "platform"])
async def test_a_service_that_comes_back_in_time_leaves_nothing_over(
    new_environment: NewEnvironment, service: str
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service(service, "dead")
    await environment.delete(web)
    await environment.run(within=timedelta(minutes=10))
    assert await environment.state(web) == ClusterState.DELETING
    explanation = await environment.explain(web)
    assert explanation.blocked_by
    assert explanation.next_look is not None

    await environment.heal()
    await environment.run_until_gone(web, within=timedelta(minutes=5))

    await environment.assert_nothing_left()
    assert (await environment.receipt_of(web)).left == ()


async def test_what_is_left_is_not_handed_out_again(new_environment: NewEnvironment) -> None:
    environment = await new_environment(layout=small_layout(hosts=4, hubs=1))
    old = await environment.order("old", sizes={"compute": 2})
    await environment.run_to(old, ClusterState.READY)
    await environment.break_service("l2", "dead")
    await environment.delete(old)
    await environment.run_until_gone(old, within=LATEST)
    left = await environment.held(old)
    assert left["network"]
    assert len(left["host"]) == 2
    await environment.heal()
    # The leftover is looked at again only after a while; until then its things are somebody's.
    new = await environment.order("new", sizes={"compute": 2})
    waiting = await environment.order("waiting", tenant="globex", sizes={"compute": 1})
    await environment.run_to(new, ClusterState.READY, within=timedelta(seconds=45))

    for kind in ("host", "network"):
        assert not {*await environment.names(kind, new)} & {*await environment.names(kind, old)}
    assert (await environment.cluster(waiting)).status.hub == "", (
        "the hub is full while they are left"
    )

    await environment.run_to(waiting, ClusterState.READY, within=timedelta(hours=3))
    assert await environment.held(old) == {}


# On a Kubernetes hub one leader does both, so nobody comes in between.
@pytest.mark.forms("embedded")
async def test_a_leftover_released_at_once_keeps_nothing_reserved(
    new_environment: NewEnvironment,
) -> None:
    """The service comes back at the very moment the deletion gives up: whoever comes first, the count is right."""
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 2})
    await environment.run_to(web, ClusterState.READY)
    await environment.break_service("inventory", "dead")
    await environment.delete(web)

    async def left() -> bool:
        return await environment.leftover_of(web) is not None

    await environment.turn()
    orders, leftovers = (environment.make_worker(only=(kind,)) for kind in ("Order", "Leftover"))
    while not await left():
        await environment.clock.sleep(30)
        await orders.run_until_idle()
    await environment.heal()
    await leftovers.run_until_idle()
    assert await environment.held() == {}
    await environment.run(within=timedelta(hours=1))

    await environment.assert_nothing_left()


# An operator has drivers of its own; a hub that the service cannot reach is in test_hub_away.py.
@pytest.mark.forms("embedded")
@pytest.mark.parametrize("how", ["unknown driver", "hub gone"])
async def test_a_delete_ends_even_when_the_hub_cannot_be_spoken_to(
    new_environment: NewEnvironment, how: str
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    if how == "unknown driver":
        await environment.change_hub("hub-1", drivers={"dns": "no-such-driver"})
    else:
        await environment.forget_hub("hub-1")

    await environment.delete(web)
    await environment.run_until_gone(web, within=LATEST)

    assert (await environment.receipt_of(web)).left
    leftover = await environment.leftover_of(web)
    assert leftover is not None
    if how == "unknown driver":
        await environment.change_hub("hub-1", drivers={"dns": "sim"})
        await environment.run_until_nothing_is_left()
        await environment.assert_nothing_left()


async def test_a_failed_order_is_deleted_like_any_other(environment: SimulatedEnvironment) -> None:
    web = await environment.order("refused-at-install", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.FAILED)
    await environment.delete(web)
    await environment.run_until_gone(web)
    await environment.assert_nothing_left()
    assert await environment.ledger.documents.get_archived(Cluster, web) is not None


async def test_what_does_not_go_away_stands_in_the_receipt_by_name(
    new_environment: NewEnvironment,
) -> None:
    environment = await new_environment(layout=small_layout(hubs=1))
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    vlan = await environment.names("network", web)
    await environment.call("set_mood", order_id=web, step="network", mood="kept")

    await environment.delete(web)
    await environment.run_until_gone(web, within=LATEST)

    left = {line.kind: line for line in (await environment.receipt_of(web)).left}
    assert [left["l2"].name] == vlan
    assert left["l2"].reason
    assert "cluster" not in left
    await environment.call("set_mood", order_id=web, step="network", mood="")
    await environment.run_until_nothing_is_left()
    await environment.assert_nothing_left()
