"""Runs a check of a hub: collect, then evaluate. Called by the hub reconciler and by `boatyard.v1.Hubs/Check`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from boatyard.kube.client import KubeClient
from boatyard.model.errors import BoatyardError, NotFound, Refused, Unavailable
from boatyard.model.generated.osac import ConditionStatus, Hub, HubConditionType, HubState
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.hubs.check.collect import survey
from boatyard.resources.hubs.check.evaluate import judge, judge_failure
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    ROLES_AT_RISK,
    WARNED,
    Finding,
    Seen,
    roles_finding,
)
from boatyard.resources.hubs.settings import is_kubernetes

LOOK_SECONDS = 25.0  # for all requests of a check; callers of the API wait for 30


@dataclass(frozen=True)
class Looked:
    """The findings about a hub; `seen` and `client` when it answered, `error` when it did not."""

    findings: list[Finding]
    seen: Seen | None = None
    client: KubeClient | None = None
    error: BoatyardError | None = None

    @property
    def version(self) -> str:
        return self.seen.version if self.seen is not None else ""


async def look(
    hub: Hub, access: HubAccess, now: datetime, *, thorough: bool, within: float = LOOK_SECONDS
) -> Looked:
    """Checks a Kubernetes hub within `within` seconds. Errors of the hub are returned as findings, never raised."""
    try:
        client = await access.clients.client(hub)
        async with asyncio.timeout(within):
            snapshot = await survey(
                client, hub, access.roles, crds=access.crds if thorough else (), thorough=thorough
            )
    except (Unavailable, Refused, NotFound) as error:
        return Looked(judge_failure(hub, error), error=error)
    except TimeoutError:
        timeout_error = Unavailable(f"it did not answer within {within:g} s", reason="Timeout")
        return Looked(judge_failure(hub, timeout_error), error=timeout_error)
    return Looked(judge(hub, snapshot, access.roles, now), snapshot, client)


async def check(
    hub: Hub, access: HubAccess, now: datetime, *, within: float = LOOK_SECONDS
) -> Looked:
    """Checks a hub thoroughly. For an embedded hub, returns what its workers recorded last."""
    if is_kubernetes(hub):
        return await look(hub, access, now, thorough=True, within=within)
    return Looked(list(_embedded(hub)))


def _embedded(hub: Hub) -> Iterator[Finding]:
    condition = next(
        (
            condition
            for condition in hub.status.conditions
            if condition.type == HubConditionType.DRIVERS_READY
        ),
        None,
    )
    if hub.status.state == HubState.UNSPECIFIED:
        yield Finding("drivers", WARNED, "nobody has looked yet", "see that a worker runs")
        return
    if condition is not None and condition.status == ConditionStatus.FALSE:
        yield Finding("drivers", FAILED, condition.message, condition.remedy)
        return
    yield Finding("drivers", PASSED, "all of them answer")
    if condition is not None and condition.reason == ROLES_AT_RISK:
        yield roles_finding(condition.message)
