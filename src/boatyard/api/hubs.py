"""Checks a hub and prepares it for orders, for operators. Called by the gRPC and REST servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from google.protobuf.message import Message

from boatyard.api import document_changes, policy
from boatyard.api.answers import Answers
from boatyard.api.crud import Call, Crud, check_id, make_not_found, refuse_unsupported_dry_run
from boatyard.api.kinds import BOATYARD_V1, KINDS
from boatyard.api.permissions import Verb
from boatyard.api.requests import HubRequest
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
from boatyard.resources.hubs.check.evaluate import evaluate_failure
from boatyard.resources.hubs.check.report import make_report
from boatyard.resources.hubs.check.run import HubCheckResult, check_hub
from boatyard.resources.hubs.preparation import prepare_hub
from boatyard.resources.hubs.settings import is_kubernetes
from boatyard.resources.metadata import quote_text

# Together less than callers wait.
PREPARE_SECONDS = 15.0
CHECK_AGAIN_SECONDS = 10.0

_HUB_KIND = KINDS["Hub"]


class HubsService:
    """Implements `boatyard.v1.Hubs`. Tenants are denied before a name is looked up, so they learn of no hub."""

    def __init__(self, crud: Crud, access: HubAccess | None) -> None:
        self._ledger = crud.ledger
        self._access = access

    def answers(self) -> Mapping[str, Answers]:
        return {
            f"{BOATYARD_V1}.Hubs": Answers(unary={"Check": self.check, "Prepare": self.prepare})
        }

    async def check(self, request: HubRequest, call: Call) -> Message:
        """Checks the hub now and returns the report. A hub that does not answer is a finding, not a failed call."""
        policy.check(call.caller, Verb.CHECK, "Hub", private=True)
        hub = await self._find_hub(request.hub)
        result = await check_hub(hub, self._require_access(), self._ledger.clock.now())
        return _response_type("Check")(report=_make_report_message(hub, result))

    async def prepare(self, request: HubRequest, call: Call) -> Message:
        """Installs what is missing, records that on the hub, and returns a report of what is still open."""
        policy.check(call.caller, Verb.PREPARE, "Hub", private=True)
        refuse_unsupported_dry_run(call)
        hub = await self._find_hub(request.hub)
        access = self._require_access()
        if not is_kubernetes(hub):
            raise Precondition("an embedded hub needs nothing installed: its orders are kept here")
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                done = await prepare_hub(await access.clients.client(hub), hub, access.crds)
        except TimeoutError:
            raise Unavailable("the hub is slow; what was done stays, ask again") from None
        except (Unavailable, Refused, NotFound) as error:
            raise _make_prepare_error(hub, error) from error
        await self._record_preparation(hub, done, call)
        now = self._ledger.clock.now()
        result = await check_hub(hub, access, now, within=CHECK_AGAIN_SECONDS)
        return _response_type("Prepare")(done=done, report=_make_report_message(hub, result))

    async def _record_preparation(self, hub: Hub, done: list[str], call: Call) -> None:
        """Records what was done, and makes the hub's reconciler run now: the hub may have become ready."""
        now = self._ledger.clock.now()
        message = "; ".join(done) or "Nothing was missing"
        await self._ledger.commit(
            [
                Signal(
                    "Hub",
                    hub.id,
                    hub.metadata.tenant,
                    document_changes.make_note("Prepared", call.caller, message),
                ),
                Due("Hub", hub.id, now, tenant=hub.metadata.tenant, hub=hub.id),
            ],
            now=now,
        )

    async def _find_hub(self, key: str) -> Hub:
        """Finds the hub by id or name, with its credentials in clear. It must not become part of a response."""
        check_id(key)
        hub = await self._ledger.documents.get(Hub, key)
        if hub is not None:
            return hub
        candidates = await self._ledger.documents.find(Hub, name=key, tenants=None)
        if len(candidates) > 1:
            raise Refused("", Violation("hub", f"{quote_text(key)} is ambiguous", "give the id"))
        if not candidates:
            raise make_not_found(_HUB_KIND, key)
        return candidates[0]

    def _require_access(self) -> HubAccess:
        if self._access is None:
            raise Precondition("this server does not reach hubs; ask one that does")
        return self._access


def _make_prepare_error(hub: Hub, error: BoatyardError) -> Precondition:
    """The error with the text of the hub check. Not Unavailable: a caller would take that for this server's state."""
    if isinstance(error, Refused) and error.reason == "Forbidden":
        return Precondition(
            f"we may not install it: {error}; apply deploy/rbac/service.yaml to the hub"
        )
    failed_finding = next(finding for finding in evaluate_failure(hub, error) if finding.remedy)
    return Precondition(f"{failed_finding.message}; {failed_finding.remedy}")


def _make_report_message(hub: Hub, result: HubCheckResult) -> Message:
    return convert.TO_MESSAGE[f"{BOATYARD_V1}.HubReport"](
        make_report(hub, result.version, result.findings)
    )


def _response_type(rpc: str) -> Callable[..., Message]:
    return wire.message(f"{BOATYARD_V1}.Hubs{rpc}Response")
