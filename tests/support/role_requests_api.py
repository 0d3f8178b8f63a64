"""A real API with an order whose role asks for steps, where the test is the one who carries them out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from boatyard.api.authentication import TokenIssuer
from boatyard.automation.drivers.local.run_token import RunToken
from boatyard.ledger.changes import Insert, Replace
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import OrderRun
from boatyard.model.errors import Conflict
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
from boatyard.orderbook.port import list_requested_steps
from boatyard.resources.orders.item_graph import STEPS
from tests.api.doors import running
from tests.support.role_runs import until

ID = "o-1"
KEY = f"{ID}/role"
KUBECONFIG = "apiVersion: v1 # kubeconfig-secret"

DONE, FAILED, WAITING = StepState.DONE, StepState.FAILED, StepState.WAITING


class RoleRequestsApi:
    """The order, and what was asked of it."""

    def __init__(self, ledger: Ledger, issuer: TokenIssuer) -> None:
        self._ledger = ledger
        self._issuer = issuer
        self.url = ""
        self.tokens: list[str] = []

    def passes(self, key: str, attempt: int, seconds: float) -> RunToken:
        order, _, item = key.partition("/")
        run, now = OrderRun(order=order, item=item, attempt=attempt), self._ledger.clock.now()
        token = self._issuer.create_run_token(run, ttl=timedelta(seconds=seconds), now=now)
        self.tokens.append(token)
        return RunToken(url=self.url, token=token, expires=time.time() + seconds)

    async def order(self) -> Order:
        order = await self._ledger.documents.get(Order, ID)
        assert order is not None
        return order

    async def asks(self) -> frozenset[str]:
        return list_requested_steps(await self.order())

    async def until_asked(self, *steps: str) -> None:
        await until(self.asks, lambda found: found >= set(steps))

    async def steps(self, state: StepState, *names: str, message: str = "") -> None:
        """What the order's reconciler would write."""

        def change(order: Order) -> Order:
            steps = tuple(
                replace(step, state=state, message=message) if step.name in names else step
                for step in order.status.steps
            )
            return replace(order, status=replace(order.status, steps=steps))

        await self.change(change)

    async def change(self, change: Any) -> None:
        while True:
            try:
                await self._ledger.commit(
                    [Replace(change(await self.order()))], now=self._ledger.clock.now()
                )
            except Conflict:
                continue
            return


@asynccontextmanager
async def asked_api(ledger: Ledger, issuer: TokenIssuer) -> AsyncIterator[RoleRequestsApi]:
    now = ledger.clock.now()
    made: Any = {"state": ItemState.PRESENT}
    slot: Any = {"node_set": "compute", "slot": "compute-0"}
    order = Order(
        id=ID,
        metadata=Metadata(name=ID, tenant="acme", creation_timestamp=now, generation=1),
        spec=OrderSpec(hub="boston", cluster_name="web"),
        status=OrderStatus(
            items=(
                Item(key="role", kind="role", step="role", state=ItemState.PLANNED, facts={"attempt": "1"}),
                Item(key="host/compute-0", kind="host", step="hosts", facts={"host": "r1"}, **slot, **made),
                Item(key="node/compute-0", kind="node", step="install", **slot, **made),
                Item(key="api-name", kind="api-name", step="names", facts={"name": "api.web"}, **made),
            ),
            steps=tuple(Step(name=name, state=StepState.QUEUED) for name in STEPS),
            facts={"api_url": "https://api.web:6443"},
            credentials=Credentials(kubeconfig=KUBECONFIG, simulated=True),
        ),
    )  # fmt: skip
    await ledger.commit([Insert(order)], now=now)
    asked = RoleRequestsApi(ledger, issuer)
    async with running(ledger, issuer) as environment:
        asked.url = f"http://127.0.0.1:{environment.server.rest_port}"
        yield asked
