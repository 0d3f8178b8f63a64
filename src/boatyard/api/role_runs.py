"""Requests of a template's running role about its own order: steps to do, and its state. Called by both servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from boatyard.api import policy, writing
from boatyard.api.crud import Call, Crud, check_wet
from boatyard.api.kinds import OURS
from boatyard.api.policy import Verb
from boatyard.ledger.changes import Due, Note, Replace
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
from boatyard.resources.metadata import shown
from boatyard.resources.orders import asking
from boatyard.resources.orders.elsewhere import Elsewhere, Nowhere


class RoleRuns:
    """Implements the service `boatyard.v1.RoleRuns`. Every call checks that the run of its token still goes on."""

    def __init__(self, crud: Crud, elsewhere: Elsewhere | None = None) -> None:
        self._ledger = crud.ledger
        self._elsewhere = elsewhere or Nowhere()

    async def ask(self, request: Any, call: Call) -> Message:
        """Adds the requested steps to the order and makes it due in one commit: after success they will be done."""
        policy.check(call.caller, Verb.ASK, "RoleRun", private=False)
        check_wet(call)
        for is_last_try in writing.tries():
            order = await self._order(request.order, call, sealed=False)
            _check_step(request.step)
            if await self._elsewhere.keeps(order.spec.hub):
                raise Precondition(
                    "orders of this hub are kept in its Kubernetes, where no role decides yet; "
                    "order the template on an embedded hub"
                )
            changed_order, new_steps = asking.asked_for(order, request.step)
            if not new_steps:
                return _response("Ask")()
            note = Note("Asked", f"The template's role asks for {', '.join(new_steps)}")
            now = self._ledger.clock.now()
            due = Due("Order", order.id, now, tenant=order.metadata.tenant, hub=order.spec.hub)
            try:
                await self._ledger.commit([Replace(changed_order, note), due], now=now)
            except Conflict:
                if is_last_try:
                    raise
                continue
            return _response("Ask")(steps=new_steps)
        raise AssertionError("the last try returns or raises")

    async def get(self, request: Any, call: Call) -> Message:
        policy.check(call.caller, Verb.GET, "RoleRun", private=False)
        order = await self._order(request.order, call, sealed=not request.kubeconfig)
        role_run = asking.told_run(order, kubeconfig=request.kubeconfig)
        return _response("Get")(object=convert.TO_MESSAGE[f"{OURS}.RoleRun"](role_run))

    async def _order(self, id: str, call: Call, *, sealed: bool) -> Order:
        run = call.caller.run
        if run is None or id != run.order:
            # The same message whether the order exists or not.
            raise Denied("the token is good for another order")
        order = await self._ledger.documents.get(Order, run.order, sealed=sealed)
        if order is None or not asking.is_under_way(order, run):
            raise Unauthenticated("the token is no longer good: its run is over")
        return order


def _check_step(step: str) -> None:
    if step not in asking.STEP_OF:
        raise Refused(
            "",
            Violation(
                "step",
                f"{shown(step)} is no step that a role can ask for",
                f"ask for one of {', '.join(asking.STEP_OF)}",
            ),
        )


def _response(rpc: str) -> Callable[..., Message]:
    return wire.message(f"{OURS}.RoleRuns{rpc}Response")
