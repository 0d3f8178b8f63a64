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
from boatyard.resources.hubs.check.collect import collect_snapshot
from boatyard.resources.hubs.check.evaluate import evaluate_failure, evaluate_snapshot
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    ROLES_AT_RISK,
    WARNED,
    HubCheckFinding,
    HubSnapshot,
    make_roles_finding,
)
from boatyard.resources.hubs.settings import is_kubernetes

CHECK_TIMEOUT_SECONDS = 25.0  # for all requests of a check; callers of the API wait for 30


@dataclass(frozen=True)
class HubCheckResult:
    """The findings about a hub; `seen` and `client` when it answered, `error` when it did not."""

    findings: list[HubCheckFinding]
    snapshot: HubSnapshot | None = None
    client: KubeClient | None = None
    error: BoatyardError | None = None

    @property
    def version(self) -> str:
        return self.snapshot.version if self.snapshot is not None else ""


async def check_kubernetes_hub(
    hub: Hub,
    access: HubAccess,
    now: datetime,
    *,
    thorough: bool,
    within: float = CHECK_TIMEOUT_SECONDS,
) -> HubCheckResult:
    """Checks a Kubernetes hub within `within` seconds. Errors of the hub are returned as findings, never raised."""
    try:
        client = await access.clients.client(hub)
        async with asyncio.timeout(within):
            snapshot = await collect_snapshot(
                client, hub, access.roles, crds=access.crds if thorough else (), thorough=thorough
            )
    except (Unavailable, Refused, NotFound) as error:
        return HubCheckResult(evaluate_failure(hub, error), error=error)
    except TimeoutError:
        timeout_error = Unavailable(f"it did not answer within {within:g} s", reason="Timeout")
        return HubCheckResult(evaluate_failure(hub, timeout_error), error=timeout_error)
    return HubCheckResult(evaluate_snapshot(hub, snapshot, access.roles, now), snapshot, client)


async def check_hub(
    hub: Hub, access: HubAccess, now: datetime, *, within: float = CHECK_TIMEOUT_SECONDS
) -> HubCheckResult:
    """Checks a hub thoroughly. For an embedded hub, returns what its workers recorded last."""
    if is_kubernetes(hub):
        return await check_kubernetes_hub(hub, access, now, thorough=True, within=within)
    return HubCheckResult(list(_list_embedded_findings(hub)))


def _list_embedded_findings(hub: Hub) -> Iterator[HubCheckFinding]:
    condition = next(
        (
            condition
            for condition in hub.status.conditions
            if condition.type == HubConditionType.DRIVERS_READY
        ),
        None,
    )
    if hub.status.state == HubState.UNSPECIFIED:
        yield HubCheckFinding("drivers", WARNED, "nobody has looked yet", "see that a worker runs")
        return
    if condition is not None and condition.status == ConditionStatus.FALSE:
        yield HubCheckFinding("drivers", FAILED, condition.message, condition.remedy)
        return
    yield HubCheckFinding("drivers", PASSED, "all of them answer")
    if condition is not None and condition.reason == ROLES_AT_RISK:
        yield make_roles_finding(condition.message)
