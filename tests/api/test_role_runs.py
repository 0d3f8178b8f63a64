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

from boatyard.api.authentication import TokenIssuer
from boatyard.api.methods import Method
from boatyard.api.role_runs import ROLE_RUNS
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
from boatyard.orderbook.port import list_requested_steps
from boatyard.resources.orders import role_requests
from tests.api.doors import PUBLIC, ApiEnvironment, Door, Failed, running

together = pytest.mark.asyncio(loop_scope="module")

ROLE = Item(key="role", kind="role", step="role", state=ItemState.PLANNED, facts={"attempt": "1"})
HOST = Item(key="host/compute-0", kind="host", step="hosts", slot="compute-0", facts={"host": "r1"})
NODE = Item(key="node/compute-0", kind="node", step="install", slot="compute-0")
SECRET = "apiVersion: v1 # of the cluster"
_numbers = iter(range(1000))


async def an_order(
    environment: ApiEnvironment,
    *steps: Step,
    items: tuple[Item, ...] = (ROLE, HOST, NODE),
    kubeconfig: str = "",
) -> Order:
    now = environment.ledger.clock.now()
    id = f"run-{next(_numbers)}"
    order = Order(
        id=id,
        metadata=Metadata(name=id, tenant="acme", creation_timestamp=now, generation=1),
        spec=OrderSpec(hub="boston", cluster_name="web"),
        status=OrderStatus(
            items=items, steps=steps, credentials=Credentials(kubeconfig=kubeconfig)
        ),
    )
    await environment.ledger.commit([Insert(order)], now=now)
    return await stored(environment, id)


async def stored(environment: ApiEnvironment, id: str) -> Order:
    order = await environment.ledger.documents.get(Order, id)
    assert order is not None
    return order


def token_of(environment: ApiEnvironment, order: Order, attempt: int = 1, **more: Any) -> str:
    run = OrderRun(order=order.id, item="role", attempt=attempt)
    now = environment.ledger.clock.now()
    return environment.issuer.create_run_token(
        run, **{"ttl": timedelta(hours=1), "now": now} | more
    )


async def refused(door: Door, rpc: str, token: str, **body: Any) -> Failed:
    if rpc == "Get":
        body.pop("step", None)
    with pytest.raises(Failed) as failed:
        await door.call(ROLE_RUNS, rpc, body, token=token)
    return failed.value


# --- what else it opens: nothing ---------------------------------------------------------------


async def opened(environment: ApiEnvironment, token: str) -> set[str]:
    """Every call of the whole server that was not refused for whom it was from."""
    found = set()
    for service in wire.services().values():
        for method in service.methods:
            name = f"{service.full_name}/{method.name}"
            if (
                await _grpc_code(environment.channel, name, token, method.server_streaming)
                not in REFUSED
            ):
                found.add(name)
    for route in ROUTES:
        if await _rest_code(environment.client, route, token) not in (401, 403):
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
async def test_a_runs_token_is_refused_by_every_other_call_of_the_server(
    environment: ApiEnvironment,
) -> None:
    order = await an_order(environment)
    assert len(ROUTES) > 200
    assert await opened(environment, token_of(environment, order)) == {NO_TOKEN_NEEDED}, (
        "nor without its order"
    )
    for door in (environment.grpc, environment.rest):
        assert await door.call(
            ROLE_RUNS, "Get", {"order": order.id}, token=token_of(environment, order)
        )


@together
async def test_the_walk_finds_a_door_that_lets_runs_in(
    environment: ApiEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await an_order(environment)
    monkeypatch.setattr(Method, "check_run_token", lambda _self, caller: caller)

    found = await opened(environment, token_of(environment, order))

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
    environment: ApiEnvironment, door: Door, change: Any
) -> None:
    order = await an_order(environment, kubeconfig=SECRET)
    token = token_of(environment, order)
    await environment.ledger.commit([Replace(change(order))], now=environment.ledger.clock.now())

    for rpc, more in (("Ask", {"step": "hosts"}), ("Get", {"kubeconfig": True})):
        failed = await refused(door, rpc, token, order=order.id, **more)
        assert failed.code == "UNAUTHENTICATED"
        assert "its run is over" in failed.message
    assert list_requested_steps(await stored(environment, order.id)) == frozenset()


@together
@pytest.mark.parametrize("change", OVER)
async def test_without_the_look_at_its_run_it_would_still_be_good(
    environment: ApiEnvironment, door: Door, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await an_order(environment)
    await environment.ledger.commit([Replace(change(order))], now=environment.ledger.clock.now())
    monkeypatch.setattr(role_requests, "is_run_active", lambda _order, _run: True)

    assert await door.call(
        ROLE_RUNS, "Ask", {"order": order.id, "step": "hosts"}, token=token_of(environment, order)
    )


@together
async def test_it_ends_with_the_order_and_with_its_time(
    environment: ApiEnvironment, door: Door
) -> None:
    order = await an_order(environment)
    now = environment.ledger.clock.now()
    late = token_of(environment, order, ttl=timedelta(seconds=60), now=now - timedelta(seconds=66))
    failed = await refused(door, "Get", late, order=order.id)
    assert (failed.code, "expired" in failed.message) == ("UNAUTHENTICATED", True)
    token = token_of(environment, order)
    await environment.ledger.commit([Archive(order)], now=now)
    failed = await refused(door, "Get", token, order=order.id)
    assert failed.code == "UNAUTHENTICATED"


@together
async def test_another_order_is_answered_like_none(environment: ApiEnvironment, door: Door) -> None:
    mine, other = await an_order(environment), await an_order(environment)
    answers = set()
    for id in (other.id, "nobody", ""):
        for rpc in ("Ask", "Get"):
            if door.name == "rest" and not id:
                continue
            failed = await refused(door, rpc, token_of(environment, mine), order=id, step="hosts")
            answers.add((failed.code, failed.message))
    assert answers == {("PERMISSION_DENIED", "the token is good for another order")}
    assert list_requested_steps(await stored(environment, other.id)) == frozenset()


# --- asking -----------------------------------------------------------------------------------


@together
async def test_a_step_is_asked_for_with_all_it_needs_once_and_the_order_is_due(
    environment: ApiEnvironment, door: Door
) -> None:
    order = await an_order(environment)
    token = token_of(environment, order)
    ask = {"order": order.id, "step": "network"}

    assert await door.call(ROLE_RUNS, "Ask", ask, token=token) == {"steps": ["hosts", "network"]}
    leases = await environment.ledger.work.take(
        kinds=["Order"], limit=1000, lease_seconds=1, worker="w", now=environment.ledger.clock.now()
    )
    assert order.id in {lease.id for lease in leases}
    written = await stored(environment, order.id)
    assert list_requested_steps(written) == {"hosts", "network"}

    assert await door.call(ROLE_RUNS, "Ask", ask, token=token) == {}
    assert (await stored(environment, order.id)).metadata.version == written.metadata.version
    await door.call(ROLE_RUNS, "Ask", {**ask, "step": "platform"}, token=token)
    assert list_requested_steps(await stored(environment, order.id)) == {
        *("hosts", "network", "addresses", "names", "install")
    }


@together
@pytest.mark.parametrize("step", ["", "storage", "install", "role", "validate", "hosts,names"])
async def test_an_unknown_step_is_refused_with_those_there_are(
    environment: ApiEnvironment, door: Door, step: str
) -> None:
    order = await an_order(environment)
    failed = await refused(door, "Ask", token_of(environment, order), order=order.id, step=step)
    assert failed.code == "INVALID_ARGUMENT"
    assert "hosts, network, addresses, names, platform" in failed.violations["step"]


@together
async def test_two_who_write_at_once_lose_nothing(
    environment: ApiEnvironment, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler has written between our look and our commit: we look again."""
    order = await an_order(environment)
    commit, raced = environment.ledger.commit, []

    async def slow(changes: Any, **more: Any) -> Any:
        if not raced:
            raced.append(True)
            status = replace(order.status, facts={"seen": "yes"})
            await commit([Replace(replace(order, status=status))], now=more["now"])
        return await commit(changes, **more)

    monkeypatch.setattr(environment.ledger, "commit", slow)
    ask = {"order": order.id, "step": "hosts"}
    assert await door.call(ROLE_RUNS, "Ask", ask, token=token_of(environment, order))
    written = await stored(environment, order.id)
    assert (list_requested_steps(written), written.status.facts) == ({"hosts"}, {"seen": "yes"})


# --- telling ----------------------------------------------------------------------------------


@together
async def test_get_tells_steps_in_tenants_words_and_what_is_there(
    environment: ApiEnvironment, door: Door
) -> None:
    order = await an_order(
        environment,
        Step(name="hosts", state=StepState.FAILED, reason="NoHosts", message="host r1 is dead"),
        Step(name="install", state=StepState.RUNNING),
        kubeconfig=SECRET,
    )
    token = token_of(environment, order)
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
    environment: ApiEnvironment, door: Door
) -> None:
    order = await an_order(
        environment, Step(name="install", state=StepState.DONE), kubeconfig=SECRET
    )
    token = token_of(environment, order)
    shown = await door.call(ROLE_RUNS, "Get", {"order": order.id}, token=token)
    assert shown["has_kubeconfig"] is True
    assert SECRET not in json.dumps(shown)
    shown = await door.call(ROLE_RUNS, "Get", {"order": order.id, "kubeconfig": True}, token=token)
    assert shown["kubeconfig"] == SECRET


# --- where no role decides --------------------------------------------------------------------


class Kubernetes:
    async def stores_orders(self, _hub: str) -> bool:
        return True

    async def read_credentials(self, _order: Order) -> None:
        return None


@pytest.fixture
async def mirrored(ledger: Ledger, issuer: TokenIssuer) -> AsyncIterator[ApiEnvironment]:
    async with running(ledger, issuer, remote_orders=Kubernetes()) as environment:
        yield environment


@pytest.mark.parametrize("name", ["grpc", "rest"])
async def test_an_order_that_a_kubernetes_hub_keeps_is_not_asked_for_steps(
    mirrored: ApiEnvironment, name: str
) -> None:
    order = await an_order(mirrored)
    failed = await refused(
        mirrored.door(name), "Ask", token_of(mirrored, order), order=order.id, step="hosts"
    )
    assert failed.code == "FAILED_PRECONDITION"
    assert "embedded hub" in failed.message
    assert list_requested_steps(await stored(mirrored, order.id)) == frozenset()
