"""The token of a run opens what it may ask of its own order, while it goes on, and nothing else; over both doors."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import httpx
import pytest
from msgspec.structs import replace

from boatyard.api.callers import Issuer
from boatyard.api.calls import ROLE_RUNS, Method
from boatyard.ledger.changes import Archive, Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.caller import OrderRun
from boatyard.model.generated.boatyard import (
    Credentials,
    Item,
    ItemState,
    Order,
    OrderSpec,
    OrderStatus,
    Step,
    StepState,
)
from boatyard.model.generated.osac import Metadata
from boatyard.model.generated.rest import ROUTES
from boatyard.orderbook.port import asked_steps
from boatyard.resources.orders import asking
from tests.api.doors import PUBLIC, Door, Failed, Yard, running

together = pytest.mark.asyncio(loop_scope="module")

ROLE = Item(key="role", kind="role", step="role", state=ItemState.PLANNED, facts={"attempt": "1"})
HOST = Item(key="host/compute-0", kind="host", step="hosts", slot="compute-0", facts={"host": "r1"})
NODE = Item(key="node/compute-0", kind="node", step="install", slot="compute-0")
SECRET = "apiVersion: v1 # of the cluster"
_numbers = iter(range(1000))


async def an_order(
    yard: Yard, *steps: Step, items: tuple[Item, ...] = (ROLE, HOST, NODE), kubeconfig: str = ""
) -> Order:
    now = yard.ledger.clock.now()
    id = f"run-{next(_numbers)}"
    order = Order(
        id=id,
        metadata=Metadata(name=id, tenant="acme", creation_timestamp=now, generation=1),
        spec=OrderSpec(hub="boston", cluster_name="web"),
        status=OrderStatus(
            items=items, steps=steps, credentials=Credentials(kubeconfig=kubeconfig)
        ),
    )
    await yard.ledger.commit([Insert(order)], now=now)
    return await stored(yard, id)


async def stored(yard: Yard, id: str) -> Order:
    order = await yard.ledger.documents.get(Order, id)
    assert order is not None
    return order


def token_of(yard: Yard, order: Order, attempt: int = 1, **more: Any) -> str:
    run = OrderRun(order=order.id, item="role", attempt=attempt)
    now = yard.ledger.clock.now()
    return yard.issuer.create_run_token(run, **{"ttl": timedelta(hours=1), "now": now} | more)


async def refused(door: Door, rpc: str, token: str, **body: Any) -> Failed:
    if rpc == "Get":
        body.pop("step", None)
    with pytest.raises(Failed) as failed:
        await door.call(ROLE_RUNS, rpc, body, token=token)
    return failed.value


# --- what else it opens: nothing ---------------------------------------------------------------


async def opened(yard: Yard, token: str) -> set[str]:
    """Every call of the whole server that was not refused for whom it was from."""
    found = set()
    for service in wire.services().values():
        for method in service.methods:
            name = f"{service.full_name}/{method.name}"
            if await _grpc_code(yard.channel, name, token, method.server_streaming) not in REFUSED:
                found.add(name)
    for route in ROUTES:
        if await _rest_code(yard.client, route, token) not in (401, 403):
            found.add(f"{route.service}/{route.rpc}")
    return found


REFUSED = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)
NO_TOKEN_NEEDED = f"{PUBLIC}.Capabilities/Get"


async def _grpc_code(
    channel: grpc.aio.Channel, name: str, token: str, streaming: bool
) -> grpc.StatusCode:
    metadata = (("authorization", f"Bearer {token}"),)
    try:
        if streaming:
            async for _ in channel.unary_stream(f"/{name}")(b"", metadata=metadata, timeout=5):
                break
        else:
            await channel.unary_unary(f"/{name}")(b"", metadata=metadata, timeout=5)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def _rest_code(client: httpx.AsyncClient, route: Any, token: str) -> int:
    path = re.sub(r"{[^}]+}", "x", route.path)
    headers = {"authorization": f"Bearer {token}"}
    body = {} if route.body else None
    async with client.stream(route.method, path, json=body, headers=headers) as response:
        return response.status_code


@together
async def test_a_runs_token_is_refused_by_every_other_call_of_the_server(yard: Yard) -> None:
    order = await an_order(yard)
    assert len(ROUTES) > 200
    assert await opened(yard, token_of(yard, order)) == {NO_TOKEN_NEEDED}, "nor without its order"
    for door in (yard.grpc, yard.rest):
        assert await door.call(ROLE_RUNS, "Get", {"order": order.id}, token=token_of(yard, order))


@together
async def test_the_walk_finds_a_door_that_lets_runs_in(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await an_order(yard)
    monkeypatch.setattr(Method, "admit", lambda _self, caller: caller)

    found = await opened(yard, token_of(yard, order))

    assert len(found) > 100, "what the contract has and nobody serves"
    # The table of who may do what, and whom one sees, stand behind the door.
    served = {name for name in found if name.endswith(("Clusters/List", "Events/Watch"))}
    assert served == set()


# --- for how long -----------------------------------------------------------------------------


def _leaving(order: Order) -> Order:
    now = order.metadata.creation_timestamp
    return replace(order, metadata=replace(order.metadata, deletion_timestamp=now))


def _with_role(order: Order, **changes: Any) -> Order:
    items = tuple(replace(i, **changes) if i.key == "role" else i for i in order.status.items)
    return replace(order, status=replace(order.status, items=items))


def _failed(order: Order) -> Order:
    steps = (Step(name="role", state=StepState.FAILED, message="no"),)
    return replace(order, status=replace(order.status, steps=steps))


OVER = [
    pytest.param(_leaving, id="the order is being deleted"),
    pytest.param(lambda o: _with_role(o, state=ItemState.PRESENT), id="the run is confirmed"),
    pytest.param(lambda o: _with_role(o, state=ItemState.LEAVING), id="the run is being ended"),
    pytest.param(lambda o: _with_role(o, facts={"attempt": "2"}), id="another attempt runs"),
    pytest.param(lambda o: replace(o, status=OrderStatus()), id="the run was released"),
    pytest.param(_failed, id="the run has failed"),
]


@together
@pytest.mark.parametrize("change", OVER)
async def test_it_is_worth_nothing_once_its_run_is_over(
    yard: Yard, door: Door, change: Any
) -> None:
    order = await an_order(yard, kubeconfig=SECRET)
    token = token_of(yard, order)
    await yard.ledger.commit([Replace(change(order))], now=yard.ledger.clock.now())

    for rpc, more in (("Ask", {"step": "hosts"}), ("Get", {"kubeconfig": True})):
        failed = await refused(door, rpc, token, order=order.id, **more)
        assert failed.code == "UNAUTHENTICATED"
        assert "its run is over" in failed.message
    assert asked_steps(await stored(yard, order.id)) == frozenset()


@together
@pytest.mark.parametrize("change", OVER)
async def test_without_the_look_at_its_run_it_would_still_be_good(
    yard: Yard, door: Door, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await an_order(yard)
    await yard.ledger.commit([Replace(change(order))], now=yard.ledger.clock.now())
    monkeypatch.setattr(asking, "is_under_way", lambda _order, _run: True)

    assert await door.call(
        ROLE_RUNS, "Ask", {"order": order.id, "step": "hosts"}, token=token_of(yard, order)
    )


@together
async def test_it_ends_with_the_order_and_with_its_time(yard: Yard, door: Door) -> None:
    order = await an_order(yard)
    now = yard.ledger.clock.now()
    late = token_of(yard, order, ttl=timedelta(seconds=60), now=now - timedelta(seconds=66))
    failed = await refused(door, "Get", late, order=order.id)
    assert (failed.code, "expired" in failed.message) == ("UNAUTHENTICATED", True)
    token = token_of(yard, order)
    await yard.ledger.commit([Archive(order)], now=now)
    failed = await refused(door, "Get", token, order=order.id)
    assert failed.code == "UNAUTHENTICATED"


@together
async def test_another_order_is_answered_like_none(yard: Yard, door: Door) -> None:
    mine, other = await an_order(yard), await an_order(yard)
    answers = set()
    for id in (other.id, "nobody", ""):
        for rpc in ("Ask", "Get"):
            if door.name == "rest" and not id:
                continue
            failed = await refused(door, rpc, token_of(yard, mine), order=id, step="hosts")
            answers.add((failed.code, failed.message))
    assert answers == {("PERMISSION_DENIED", "the token is good for another order")}
    assert asked_steps(await stored(yard, other.id)) == frozenset()


# --- asking -----------------------------------------------------------------------------------


@together
async def test_a_step_is_asked_for_with_all_it_needs_once_and_the_order_is_due(
    yard: Yard, door: Door
) -> None:
    order = await an_order(yard)
    token = token_of(yard, order)
    ask = {"order": order.id, "step": "network"}

    assert await door.call(ROLE_RUNS, "Ask", ask, token=token) == {"steps": ["hosts", "network"]}
    leases = await yard.ledger.work.take(
        kinds=["Order"], limit=1000, lease_seconds=1, worker="w", now=yard.ledger.clock.now()
    )
    assert order.id in {lease.id for lease in leases}
    written = await stored(yard, order.id)
    assert asked_steps(written) == {"hosts", "network"}

    assert await door.call(ROLE_RUNS, "Ask", ask, token=token) == {}
    assert (await stored(yard, order.id)).metadata.version == written.metadata.version
    await door.call(ROLE_RUNS, "Ask", {**ask, "step": "platform"}, token=token)
    assert asked_steps(await stored(yard, order.id)) == {
        *("hosts", "network", "addresses", "names", "install")
    }


@together
@pytest.mark.parametrize("step", ["", "storage", "install", "role", "validate", "hosts,names"])
async def test_an_unknown_step_is_refused_with_those_there_are(
    yard: Yard, door: Door, step: str
) -> None:
    order = await an_order(yard)
    failed = await refused(door, "Ask", token_of(yard, order), order=order.id, step=step)
    assert failed.code == "INVALID_ARGUMENT"
    assert "hosts, network, addresses, names, platform" in failed.violations["step"]


@together
async def test_two_who_write_at_once_lose_nothing(
    yard: Yard, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler has written between our look and our commit: we look again."""
    order = await an_order(yard)
    commit, raced = yard.ledger.commit, []

    async def slow(changes: Any, **more: Any) -> Any:
        if not raced:
            raced.append(True)
            status = replace(order.status, facts={"seen": "yes"})
            await commit([Replace(replace(order, status=status))], now=more["now"])
        return await commit(changes, **more)

    monkeypatch.setattr(yard.ledger, "commit", slow)
    ask = {"order": order.id, "step": "hosts"}
    assert await door.call(ROLE_RUNS, "Ask", ask, token=token_of(yard, order))
    written = await stored(yard, order.id)
    assert (asked_steps(written), written.status.facts) == ({"hosts"}, {"seen": "yes"})


# --- telling ----------------------------------------------------------------------------------


@together
async def test_get_tells_steps_in_tenants_words_and_what_is_there(yard: Yard, door: Door) -> None:
    order = await an_order(
        yard,
        Step(name="hosts", state=StepState.FAILED, reason="NoHosts", message="host r1 is dead"),
        Step(name="install", state=StepState.RUNNING),
        kubeconfig=SECRET,
    )
    token = token_of(yard, order)
    await door.call(ROLE_RUNS, "Ask", {"order": order.id, "step": "hosts"}, token=token)

    shown = await door.call(ROLE_RUNS, "Get", {"order": order.id, "kubeconfig": True}, token=token)

    by_name = {step["name"]: step for step in shown["steps"]}
    assert list(by_name) == ["hosts", "network", "addresses", "names", "platform"]
    assert by_name["hosts"] == {
        "name": "hosts",
        "asked": True,
        "state": "STEP_STATE_FAILED",
        "reason": "NoHosts",
        "message": "a host is dead",
        "blocked": "hosts: a host is dead",
    }
    assert by_name["platform"] == {
        "name": "platform",
        "state": "STEP_STATE_RUNNING",
        "blocked": "hosts: a host is dead",
    }
    assert shown["nodes"] == [{"slot": "compute-0", "host": "r1"}]
    assert "kubeconfig" not in shown, "the platform is not there yet"


@together
async def test_the_kubeconfig_comes_with_the_platform_and_when_it_is_asked_for(
    yard: Yard, door: Door
) -> None:
    order = await an_order(yard, Step(name="install", state=StepState.DONE), kubeconfig=SECRET)
    token = token_of(yard, order)
    shown = await door.call(ROLE_RUNS, "Get", {"order": order.id}, token=token)
    assert shown["has_kubeconfig"] is True
    assert SECRET not in json.dumps(shown)
    shown = await door.call(ROLE_RUNS, "Get", {"order": order.id, "kubeconfig": True}, token=token)
    assert shown["kubeconfig"] == SECRET


# --- where no role decides --------------------------------------------------------------------


class Kubernetes:
    async def keeps(self, _hub: str) -> bool:
        return True

    async def credentials(self, _order: Order) -> None:
        return None


@pytest.fixture
async def mirrored(ledger: Ledger, issuer: Issuer) -> AsyncIterator[Yard]:
    async with running(ledger, issuer, elsewhere=Kubernetes()) as yard:
        yield yard


@pytest.mark.parametrize("name", ["grpc", "rest"])
async def test_an_order_that_a_kubernetes_hub_keeps_is_not_asked_for_steps(
    mirrored: Yard, name: str
) -> None:
    order = await an_order(mirrored)
    failed = await refused(
        mirrored.door(name), "Ask", token_of(mirrored, order), order=order.id, step="hosts"
    )
    assert failed.code == "FAILED_PRECONDITION"
    assert "embedded hub" in failed.message
    assert asked_steps(await stored(mirrored, order.id)) == frozenset()
