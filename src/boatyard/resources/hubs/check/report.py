"""Turns findings into a report, conditions and a state of the hub. Pure; called by the reconciler and the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from boatyard.model.conditions import with_transition_time
from boatyard.model.generated.boatyard import HubFinding, HubReport
from boatyard.model.generated.osac import (
    ConditionStatus,
    Hub,
    HubCondition,
    HubConditionType,
    HubState,
)
from boatyard.resources.hubs.check.model import FAILED, ROLES_AT_RISK, HubCheckFinding

KUBERNETES_CONDITIONS = (
    HubConditionType.REACHABLE,
    HubConditionType.AUTHORIZED,
    HubConditionType.SUPPORTED,
    HubConditionType.PREPARED,
    HubConditionType.OPERATED,
)
EMBEDDED_CONDITIONS = (HubConditionType.DRIVERS_READY,)


def make_report(hub: Hub, version: str, findings: Sequence[HubCheckFinding]) -> HubReport:
    return HubReport(
        hub=hub.id,
        version=version,
        ready=not any(finding.result == FAILED for finding in findings),
        findings=tuple(
            HubFinding(
                check=finding.check,
                result=finding.result,
                message=finding.message,
                remedy=finding.remedy,
            )
            for finding in findings
        ),
    )


def make_conditions(
    hub: Hub,
    findings: Sequence[HubCheckFinding],
    types: Sequence[HubConditionType],
    now: datetime,
) -> tuple[HubCondition, ...]:
    """One condition for each type; UNSPECIFIED when nothing is known, because an earlier request failed."""
    new_conditions = []
    for kind in types:
        own_findings = [finding for finding in findings if finding.condition == kind]
        failed = next((finding for finding in own_findings if finding.result == FAILED), None)
        status = (
            ConditionStatus.FALSE
            if failed
            else ConditionStatus.TRUE
            if own_findings
            else ConditionStatus.UNSPECIFIED
        )
        cautions = (finding for finding in own_findings if finding.reason == ROLES_AT_RISK)
        shown_finding = failed or next(cautions, None)
        condition = HubCondition(
            type=kind,
            status=status,
            reason=shown_finding.reason if shown_finding else "",
            message=shown_finding.message if shown_finding else "",
            remedy=shown_finding.remedy if shown_finding else "",
        )
        new_conditions.append(with_transition_time(condition, hub.status.conditions, now))
    return tuple(new_conditions)


def compute_state(findings: Sequence[HubCheckFinding]) -> tuple[HubState, str]:
    """The state of the hub and, in one sentence, what is wrong with it."""
    failed = [finding for finding in findings if finding.result == FAILED]
    if not failed:
        return HubState.READY, ""
    lost = (HubConditionType.REACHABLE, HubConditionType.DRIVERS_READY)
    first = failed[0]
    hub_state = HubState.UNREACHABLE if first.condition in lost else HubState.NOT_READY
    return hub_state, first.message


def get_failing_since(hub: Hub) -> datetime | None:
    """Since when a condition of the hub is false; None when none is."""
    moments = [
        condition.last_transition_time
        for condition in hub.status.conditions
        if condition.status == ConditionStatus.FALSE and condition.last_transition_time
    ]
    return min(moments, default=None)
