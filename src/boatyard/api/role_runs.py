"""Requests of a template's running role about its own order: steps to do, and its state. Called by both servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.protobuf.message import Message

from boatyard.api import document_changes, policy
from boatyard.api.answers import Answers
from boatyard.api.crud import Call, Crud, refuse_unsupported_dry_run
from boatyard.api.kinds import BOATYARD_V1
from boatyard.api.permissions import Verb
from boatyard.api.requests import RunStateRequest, StepRequest
from boatyard.ledger.changes import Due, EventNote, Replace
from boatyard.model import wire
from boatyard.model.errors import (
    Conflict,
    Denied,
    Precondition,
    Refused,
    Unauthenticated,
    Violation,
)
from boatyard.model.generated import convert
from boatyard.model.generated.boatyard import Order
from boatyard.resources.metadata import quote_text
from boatyard.resources.orders import role_requests
from boatyard.resources.orders.remote_orders import NoRemoteOrders, RemoteOrders

# The only service that a run of a role may call.
ROLE_RUNS = f"{BOATYARD_V1}.RoleRuns"


class RoleRunsService:
    """Implements the service `boatyard.v1.RoleRuns`. Every call checks that the run of its token still goes on."""

    def __init__(self, crud: Crud, remote_orders: RemoteOrders | None = None) -> None:
        self._ledger = crud.ledger
        self._remote_orders = remote_orders or NoRemoteOrders()

    def answers(self) -> Mapping[str, Answers]:
        return {ROLE_RUNS: Answers(unary={"Ask": self.request_steps, "Get": self.get})}

    async def request_steps(self, request: StepRequest, call: Call) -> Message:
        """Adds the requested steps to the order and makes it due in one commit: after success they will be done."""
        policy.check(call.caller, Verb.ASK, "RoleRun", private=False)
        refuse_unsupported_dry_run(call)
        for is_last_try in document_changes.iterate_tries():
            order = await self._find_order(request.order, call, sealed=False)
            _check_step(request.step)
            if await self._remote_orders.stores_orders(order.spec.hub):
                raise Precondition(
                    "orders of this hub are kept in its Kubernetes, where no role decides yet; "
                    "order the template on an embedded hub"
                )
            changed_order, new_steps = role_requests.request_step(order, request.step)
            if not new_steps:
                return _response_type("Ask")()
            note = EventNote("Asked", f"The template's role asks for {', '.join(new_steps)}")
            now = self._ledger.clock.now()
            due = Due("Order", order.id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
            try:
                await self._ledger.commit([Replace(changed_order, note), due], now=now)
            except Conflict:
                if is_last_try:
                    raise
                continue
            return _response_type("Ask")(steps=new_steps)
        raise AssertionError("the last try returns or raises")

    async def get(self, request: RunStateRequest, call: Call) -> Message:
        policy.check(call.caller, Verb.GET, "RoleRun", private=False)
        order = await self._find_order(request.order, call, sealed=not request.kubeconfig)
        role_run = role_requests.to_role_run(order, kubeconfig=request.kubeconfig)
        return _response_type("Get")(object=convert.TO_MESSAGE[f"{BOATYARD_V1}.RoleRun"](role_run))

    async def _find_order(self, id: str, call: Call, *, sealed: bool) -> Order:
        run = call.caller.run
        if run is None or id != run.order:
            # The same message whether the order exists or not.
            raise Denied("the token is good for another order")
        order = await self._ledger.documents.get(Order, run.order, sealed=sealed)
        if order is None or not role_requests.is_run_active(order, run):
            raise Unauthenticated("the token is no longer good: its run is over")
        return order


def _check_step(step: str) -> None:
    if step not in role_requests.STEPS_BY_REQUEST_NAME:
        raise Refused(
            "",
            Violation(
                "step",
                f"{quote_text(step)} is no step that a role can ask for",
                f"ask for one of {', '.join(role_requests.STEPS_BY_REQUEST_NAME)}",
            ),
        )


def _response_type(rpc: str) -> Callable[..., Message]:
    return wire.message(f"{ROLE_RUNS}{rpc}Response")
