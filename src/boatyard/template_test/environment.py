"""A Boatyard to try a role in: PostgreSQL, a twin without delays, the API and a worker. Made by the runner."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from boatyard.client.client import Client
from boatyard.client.config import Target
from boatyard.ledger.changes import Due, Replace
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import migrate
from boatyard.model.caller import SHARED
from boatyard.model.caller import CallerRole as Rights
from boatyard.model.errors import BoatyardError, Conflict, Refused, Unavailable
from boatyard.model.generated.boatyard import ItemState, Order, TemplateSourceState
from boatyard.model.generated.osac import (
    Cluster,
    ClusterSpec,
    ClusterState,
    ClusterTemplateReference,
    Hub,
    HubState,
    Metadata,
)
from boatyard.proof.evidence import list_held_items
from boatyard.resources.orders.item_graph import ATTEMPT_FACT
from boatyard.resources.orders.progress import STUCK_STATES
from boatyard.roles.content import Files
from boatyard.roles.form import Form, Option
from boatyard.roles.parameter_values import to_typed_value
from boatyard.roles.role import TemplateRole
from boatyard.template_test.instrumented_runs import RecordingRoleRunner
from boatyard.template_test.prerequisites import extend_catalogue, label_hub, make_layout
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import write_layout
from boatyard.wiring import seed_catalogue, service_process
from boatyard.wiring.api_server import serve_api
from boatyard.wiring.hub_order_books import HubOrderBooks, open_hub_books
from boatyard.wiring.run_tokens import find_api_endpoint
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import start_twin
from boatyard.wiring.worker import make_local_role_runner, run_worker

TENANT = "acme"
HUB_ID = "hub-1"
_LOOK_SECONDS = 0.03
_HUB_SECONDS = 0.1
_OPEN_SECONDS = 60.0


@dataclass(frozen=True)
class StuckCluster:
    """The result for a cluster that does not reach the expected state, and why."""

    reason: str


@dataclass
class RoleEnvironment:
    """The running Boatyard, made by `open_environment`. Everything that a tenant does goes through the API."""

    ledger: Ledger
    client: Client
    twin: TwinClient
    roles: RecordingRoleRunner
    directory: Path
    timeout_seconds: float

    async def publish(self, name: str, files: Files) -> str:
        """Publishes the content and returns its digest. Refused with every mistake when it cannot be offered."""
        source = await self.client.publish_role(name, files)
        if source.status.state != TemplateSourceState.OFFERED:
            mistakes = "; ".join(
                f"{mistake.file}: {mistake.message}" for mistake in source.status.mistakes
            )
            raise Refused(f"the role is not offered: {mistakes}")
        await label_hub(self.ledger, source.status.template, HUB_ID)
        return source.status.digest

    async def order(
        self, name: str, template: str, form: Form, values: Mapping[str, Any], *, zone: str = ""
    ) -> str:
        """Orders a cluster and returns its id."""
        cluster = Cluster(
            metadata=Metadata(name=name, tenant=TENANT),
            spec=ClusterSpec(
                template=ClusterTemplateReference(id=template),
                template_parameters={
                    key: to_parameter(form.options.get(key), value) for key, value in values.items()
                },
                zone=zone,
            ),
        )
        return (await self.client.create_cluster(cluster)).id

    async def wait_until_ready(self, id: str) -> Cluster | StuckCluster:
        """Waits until the cluster is READY for its current generation, or is stuck."""

        def is_ready(cluster: Cluster | None) -> bool:
            return (
                cluster is not None
                and cluster.status.state == ClusterState.READY
                and cluster.status.observed_generation == cluster.metadata.generation
            )

        end = await self._wait_until(id, is_ready)
        return end if end is not None else StuckCluster("it is gone")

    async def wait_until_gone(self, id: str) -> StuckCluster | None:
        """Waits until the cluster is deleted. None when it is."""
        end = await self._wait_until(id, lambda cluster: cluster is None)
        return end if isinstance(end, StuckCluster) else None

    async def _wait_until(
        self, id: str, done: Callable[[Cluster | None], bool]
    ) -> Cluster | StuckCluster | None:
        """Waits until `done` is true of the cluster, its order is stuck, or `patience` seconds have passed."""
        cluster: Cluster | None = None
        order: Order | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timeout_seconds):
                while True:
                    cluster = await self.ledger.documents.get(Cluster, id)
                    if done(cluster):
                        return cluster
                    order = await self.ledger.documents.get(Order, id)
                    if why := _find_stuck_reason(order, cluster):
                        return StuckCluster(why)
                    await asyncio.sleep(_LOOK_SECONDS)
        state = cluster.status.state.name if cluster else "gone"
        messages = [
            f"{step.name}: {step.message}"
            for step in (order.status.steps if order else ())
            if step.message
        ]
        return StuckCluster(
            f"it is {state} after {self.timeout_seconds:g} s; {'; '.join(messages)}"
        )

    async def run_part_again(self, id: str, key: str, attempt: int) -> StuckCluster | None:
        """Makes the order run a part again that has succeeded; returns when that run has ended.

        Needed for a part that asks its order for steps: the order accepts requests only from a run it started.
        """
        while True:
            order = await self.ledger.documents.get(Order, id)
            if order is None:
                return StuckCluster("it is gone")
            items = tuple(
                msgspec.structs.replace(
                    item,
                    state=ItemState.PLANNED,
                    facts={**item.facts, ATTEMPT_FACT: str(attempt)},
                )
                if f"{id}/{item.key}" == key
                else item
                for item in order.status.items
            )
            status = msgspec.structs.replace(order.status, items=items)
            changed = msgspec.structs.replace(order, status=status)
            now = self.ledger.clock.now()
            due = Due("Order", id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
            try:
                await self.ledger.commit([Replace(changed), due], now=now)
            except Conflict:
                continue
            break
        outcome = await self._wait_until(id, lambda _: (key, attempt) in self.roles.runs)
        if isinstance(outcome, StuckCluster):
            return outcome
        end = await self.wait_until_ready(id)
        return end if isinstance(end, StuckCluster) else None

    async def count_held_items(self, id: str) -> dict[str, int]:
        """The number of items that the twin holds for an order, by kind and key without the order's id."""
        counts: dict[str, int] = {}
        for item in await list_held_items(self.twin, f"{id}/"):
            label = f"{item.kind} {item.key.partition('/')[2]}"
            counts[label] = counts.get(label, 0) + 1
        return counts


def to_parameter(option: Option | None, value: Any) -> dict[str, Any]:
    """The value as a client sends it. A value of a wrong type is sent untyped, so that the API refuses it."""
    untyped = {"@type": "type.googleapis.com/google.protobuf.Value", "value": value}
    if option is None:
        return untyped
    match option.type, value:
        case "int", bool():
            return untyped
        case ("int", int()) if abs(value) >= 2**63:
            return untyped
        case ("int", int()) | ("float", int() | float()) | ("bool", bool()):
            return to_typed_value(option, value)
        case (("str" | "path" | "bytes" | "bits"), str()):
            return to_typed_value(option, value)
    return untyped


def _find_stuck_reason(order: Order | None, cluster: Cluster | None) -> str:
    for step in order.status.steps if order is not None else ():
        if step.state in STUCK_STATES:
            return f"step {step.name}: {step.message}"
    failed_states = (ClusterState.FAILED, ClusterState.DELETE_FAILED)
    if order is None and cluster is not None and cluster.status.state in failed_states:
        messages = [
            condition.message for condition in cluster.status.conditions if condition.message
        ]
        return "; ".join(messages) or "it has failed"
    return ""


@asynccontextmanager
async def open_environment(
    directory: Path, role: TemplateRole, *, part_seconds: float, patience: float
) -> AsyncIterator[RoleEnvironment]:
    """Starts everything in an existing directory, with all that the role needs, and stops it in reverse order."""
    layout = make_layout(role.metadata, HUB_ID)
    (directory / "layout.json").write_bytes(write_layout(layout))
    settings = Settings(
        data=str(directory),
        grpc="127.0.0.1:0",
        rest="127.0.0.1:0",
        twin_delays="instant",
        twin_layout=str(directory / "layout.json"),
        delete_minutes=60.0,  # a part that fails to delete must be reported, not given up as a leftover
        poll_seconds=0.2,
    )
    async with AsyncExitStack() as stack:
        postgres = EmbeddedPostgres(directory, durable=False)
        await stack.enter_async_context(postgres)
        await migrate(postgres.url())
        socket = await stack.enter_async_context(start_twin(settings))
        twin = TwinClient(Path(socket))
        stack.push_async_callback(twin.close)
        ledger = await stack.enter_async_context(
            service_process.open_ledger(settings, postgres.url(), application="template test")
        )
        await seed_catalogue.fill_catalogue(ledger, layout, now=ledger.clock.now())
        await extend_catalogue(ledger, role.metadata)
        books = await stack.enter_async_context(open_hub_books(ledger))
        api = await stack.enter_async_context(serve_api(ledger, settings, books))
        token = api.issuer.create_token(
            tenant=SHARED,
            user="template-test",
            role=Rights.OPERATOR,
            ttl=timedelta(days=1),
            now=api.now(),
        )
        client = await stack.enter_async_context(Client(Target(address=api.grpc, token=token)))
        roles = RecordingRoleRunner(
            make_local_role_runner(ledger, settings, find_api_endpoint(api, settings)),
            part_seconds=part_seconds,
        )
        stack.push_async_callback(roles.end_all)
        yard = RoleEnvironment(ledger, client, twin, roles, directory, patience)
        await stack.enter_async_context(_run_worker(ledger, settings, books, socket, roles))
        await _wait_until_hub_ready(ledger)
        yield yard


@asynccontextmanager
async def _run_worker(
    ledger: Ledger,
    settings: Settings,
    books: HubOrderBooks,
    twin_socket: str,
    roles: RecordingRoleRunner,
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(
            run_worker(
                ledger,
                settings,
                stop,
                books=books,
                twin_socket=twin_socket,
                keeper_socket="",
                roles=roles,
            )
        )
        try:
            yield
        finally:
            stop.set()
            with contextlib.suppress(BoatyardError):
                await task


async def _wait_until_hub_ready(ledger: Ledger) -> None:
    """Waits until the hub is READY: before that no cluster can be placed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_OPEN_SECONDS):
            while True:
                hub = await ledger.documents.get(Hub, HUB_ID)
                if hub is not None and hub.status.state == HubState.READY:
                    return
                now = ledger.clock.now()
                await ledger.commit([Due("Hub", HUB_ID, now)], now=now)
                await asyncio.sleep(_HUB_SECONDS)
    raise Unavailable(f"the hub was not ready within {_OPEN_SECONDS:g} s")


def mask_order_values(order: Mapping[str, Any], text: str) -> str:
    """The text with every value of the order (ids, names, addresses) replaced by the path of that value."""
    leaves = sorted(_find_texts("", order), key=lambda leaf: -len(leaf[1]))
    for path, value in leaves:
        if len(value) > 2:
            text = text.replace(value, f"<{path}>")
    return text


def _find_texts(path: str, value: Any) -> list[tuple[str, str]]:
    match value:
        case str():
            return [(path, value)]
        case dict():
            return [
                leaf for key, child in value.items() for leaf in _find_texts(f"{path}.{key}", child)
            ]
        case list() | tuple():
            return [
                leaf
                for index, child in enumerate(value)
                for leaf in _find_texts(f"{path}.{index}", child)
            ]
    return []
