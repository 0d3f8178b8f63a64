"""Checks a hub and prepares it for orders, for operators. Called by the gRPC and REST servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from boatyard.api import policy, writing
from boatyard.api.crud import Call, Crud, check_id, check_wet, missing
from boatyard.api.kinds import KINDS, OURS
from boatyard.api.policy import Verb
from boatyard.ledger.changes import Due, Signal
from boatyard.model import wire
from boatyard.model.errors import (
    BoatyardError,
    NotFound,
    Precondition,
    Refused,
    Unavailable,
    Violation,
)
from boatyard.model.generated import convert
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.hubs.check.evaluate import judge_failure
from boatyard.resources.hubs.check.report import report
from boatyard.resources.hubs.check.run import Looked, check
from boatyard.resources.hubs.preparing import prepare
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.metadata import shown

# Together less than callers wait.
PREPARE_SECONDS = 15.0
CHECK_AGAIN_SECONDS = 10.0

_HUB = KINDS["Hub"]


class Hubs:
    """Implements `boatyard.v1.Hubs`. Tenants are denied before a name is looked up, so they learn of no hub."""

    def __init__(self, crud: Crud, access: HubAccess | None) -> None:
        self._ledger = crud.ledger
        self._access = access

    async def check(self, request: Any, call: Call) -> Message:
        """Checks the hub now and returns the report. A hub that does not answer is a finding, not a failed call."""
        policy.check(call.caller, Verb.CHECK, "Hub", private=True)
        hub = await self._find(request.hub)
        result = await check(hub, self._reach(), self._ledger.clock.now())
        return _response("Check")(report=_report(hub, result))

    async def prepare(self, request: Any, call: Call) -> Message:
        """Installs what is missing, records that on the hub, and returns a report of what is still open."""
        policy.check(call.caller, Verb.PREPARE, "Hub", private=True)
        check_wet(call)
        hub = await self._find(request.hub)
        access = self._reach()
        if not is_kubernetes(hub):
            raise Precondition("an embedded hub needs nothing installed: its orders are kept here")
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                done = await prepare(await access.clients.client(hub), hub, access.crds)
        except TimeoutError:
            raise Unavailable("the hub is slow; what was done stays, ask again") from None
        except (Unavailable, Refused, NotFound) as error:
            raise _not_prepared(hub, error) from error
        await self._record(hub, done, call)
        now = self._ledger.clock.now()
        result = await check(hub, access, now, within=CHECK_AGAIN_SECONDS)
        return _response("Prepare")(done=done, report=_report(hub, result))

    async def _record(self, hub: Hub, done: list[str], call: Call) -> None:
        """Records what was done, and makes the hub's reconciler run now: the hub may have become ready."""
        now = self._ledger.clock.now()
        message = "; ".join(done) or "Nothing was missing"
        await self._ledger.commit(
            [
                Signal(
                    "Hub",
                    hub.id,
                    hub.metadata.tenant,
                    writing.note("Prepared", call.caller, message),
                ),
                Due("Hub", hub.id, now, tenant=hub.metadata.tenant, hub=hub.id),
            ],
            now=now,
        )

    async def _find(self, key: str) -> Hub:
        """Finds the hub by id or name, with its credentials in clear. It must not become part of a response."""
        check_id(key)
        hub = await self._ledger.documents.get(Hub, key)
        if hub is not None:
            return hub
        candidates = await self._ledger.documents.find(Hub, name=key, tenants=None)
        if len(candidates) > 1:
            raise Refused("", Violation("hub", f"{shown(key)} is ambiguous", "give the id"))
        if not candidates:
            raise missing(_HUB, key)
        return candidates[0]

    def _reach(self) -> HubAccess:
        if self._access is None:
            raise Precondition("this server does not reach hubs; ask one that does")
        return self._access


def _not_prepared(hub: Hub, error: BoatyardError) -> Precondition:
    """The error with the text of the hub check. Not Unavailable: a caller would take that for this server's state."""
    if isinstance(error, Refused) and error.reason == "Forbidden":
        return Precondition(
            f"we may not install it: {error}; apply deploy/rbac/service.yaml to the hub"
        )
    failed_finding = next(finding for finding in judge_failure(hub, error) if finding.remedy)
    return Precondition(f"{failed_finding.message}; {failed_finding.remedy}")


def _report(hub: Hub, result: Looked) -> Message:
    return convert.TO_MESSAGE[f"{OURS}.HubReport"](report(hub, result.version, result.findings))


def _response(rpc: str) -> Callable[..., Message]:
    return wire.message(f"{OURS}.Hubs{rpc}Response")
