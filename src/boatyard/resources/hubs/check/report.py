"""What the findings about a hub come to: a report, conditions, a state. Pure; called by the reconciler and the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from boatyard.model.generated.boatyard import HubFinding, HubReport
from boatyard.model.generated.osac import (
    ConditionStatus,
    Hub,
    HubCondition,
    HubConditionType,
    HubState,
)
from boatyard.resources.hubs.check.model import FAILED, ROLES_AT_RISK, Finding

KUBERNETES_CONDITIONS = (
    HubConditionType.REACHABLE,
    HubConditionType.AUTHORIZED,
    HubConditionType.SUPPORTED,
    HubConditionType.PREPARED,
    HubConditionType.OPERATED,
)
EMBEDDED_CONDITIONS = (HubConditionType.DRIVERS_READY,)


def report(hub: Hub, version: str, findings: Sequence[Finding]) -> HubReport:
    return HubReport(
        hub=hub.id,
        version=version,
        ready=not any(one.result == FAILED for one in findings),
        findings=tuple(
            HubFinding(check=one.check, result=one.result, message=one.message, remedy=one.remedy)
            for one in findings
        ),
    )


def conditions(
    hub: Hub,
    findings: Sequence[Finding],
    types: Sequence[HubConditionType],
    now: datetime,
) -> tuple[HubCondition, ...]:
    """One for each type; what was not asked, because something before it failed, is unknown."""
    before = {one.type: one for one in hub.status.conditions}
    found = []
    for kind in types:
        about = [one for one in findings if one.condition == kind]
        failed = next((one for one in about if one.result == FAILED), None)
        status = (
            ConditionStatus.FALSE
            if failed
            else ConditionStatus.TRUE
            if about
            else ConditionStatus.UNSPECIFIED
        )
        cautions = (one for one in about if one.reason == ROLES_AT_RISK)
        told = failed or next(cautions, None)
        old = before.get(kind)
        since = old.last_transition_time if old is not None and old.status == status else now
        found.append(
            HubCondition(
                type=kind,
                status=status,
                last_transition_time=since,
                reason=told.reason if told else "",
                message=told.message if told else "",
                remedy=told.remedy if told else "",
            )
        )
    return tuple(found)


def state(findings: Sequence[Finding]) -> tuple[HubState, str]:
    """The state of the hub and, in one sentence, what is wrong with it."""
    failed = [one for one in findings if one.result == FAILED]
    if not failed:
        return HubState.READY, ""
    lost = (HubConditionType.REACHABLE, HubConditionType.DRIVERS_READY)
    first = failed[0]
    found = HubState.UNREACHABLE if first.condition in lost else HubState.NOT_READY
    return found, first.message


def failing_since(hub: Hub) -> datetime | None:
    """Since when something is wrong with it; None when nothing is."""
    wrong = [
        one.last_transition_time
        for one in hub.status.conditions
        if one.status == ConditionStatus.FALSE and one.last_transition_time
    ]
    return min(wrong, default=None)
