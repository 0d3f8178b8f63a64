"""An Agent of the assisted service: discovered, bound, installed, unbound. Pure; one decision per Agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.fakes.hypershift.kinds import AGENTS
from boatyard.fakes.hypershift.names import (
    AGENT_DEPLOYMENT,
    AGENT_MACHINE,
    AGENT_MACHINE_NAMESPACE,
    Object,
)
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    conditions_of,
    created_at,
    deleted_at,
    format_time,
    get_nested,
    is_true,
    labels_of,
    name_of,
    parse_time,
    spec_of,
    status_of,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.snapshot import FakeSettings
from boatyard.fakes.hypershift.writes import Decision, PatchObject, UpdateStatus

# The states of an Agent, as the assisted service names them.
DISCOVERING = "discovering-unbound"
FREE = "known-unbound"
BINDING = "binding"
KNOWN = "known"
INSTALLING = "installing-in-progress"
JOINED = "added-to-existing-cluster"
UNBINDING = "unbinding"
LOST = "disconnected"
LOST_FREE = "disconnected-unbound"
UNBOUND = frozenset({"", DISCOVERING, FREE, LOST_FREE})


def agent_state(agent: Object) -> str:
    return str(get_nested(status_of(agent), "debugInfo", "state") or "")


def is_free(agent: Object) -> bool:
    """Whether a machine may take it."""
    return (
        deleted_at(agent) is None
        and spec_of(agent).get("approved") is True
        and not spec_of(agent).get("clusterDeploymentName")
        and AGENT_MACHINE not in labels_of(agent)
        and agent_state(agent) == FREE
        and is_true(agent, "Validated")
    )


def host_name(agent: Object) -> str:
    hostname = spec_of(agent).get("hostname") or get_nested(
        status_of(agent), "inventory", "hostname"
    )
    return str(hostname or name_of(agent))


def bind_agent(agent: Object, machine: Object, home: str, deployment: str) -> PatchObject:
    """Binds a free agent to a machine."""
    return PatchObject(
        AGENTS,
        agent,
        {
            "metadata": {
                "labels": {AGENT_MACHINE: uid_of(machine), AGENT_DEPLOYMENT: home},
                "annotations": {AGENT_MACHINE_NAMESPACE: home},
            },
            "spec": {"clusterDeploymentName": {"namespace": home, "name": deployment}},
        },
    )


def unbind_agent(agent: Object) -> PatchObject:
    return PatchObject(
        AGENTS,
        agent,
        {
            "metadata": {
                "labels": {AGENT_MACHINE: None, AGENT_DEPLOYMENT: None},
                "annotations": {AGENT_MACHINE_NAMESPACE: None},
            },
            "spec": {
                "clusterDeploymentName": None,
                "machineConfigPool": None,
                "ignitionEndpointTokenReference": None,
            },
        },
    )


def decide_agent(agent: Object, settings: FakeSettings, now: float) -> Decision:
    """Moves an Agent through its states, as far as they are due."""
    if deleted_at(agent) is not None:
        return Decision()
    state, since = agent_state(agent), _state_start(agent)
    lost = "lost" in settings.find_faults("Agent", agent)
    next_check = None
    # With no delays several states follow each other at the same time.
    while True:
        next_state, stage = _next_state(state, agent, lost)
        if next_state == state:
            break
        due = since + settings.delays.seconds_for(stage, uid_of(agent)) if stage else now
        if now < due:
            next_check = due
            break
        state, since = next_state, now
    status = _make_status(agent, state, since, now)
    writes = () if _has_status(agent, status) else (UpdateStatus(AGENTS, agent, status),)
    return Decision(writes, next_check)


def _state_start(agent: Object) -> float:
    start_time = parse_time(get_nested(status_of(agent), "progress", "stageStartTime"))
    return created_at(agent) if start_time is None else start_time


def _next_state(state: str, agent: Object, lost: bool) -> tuple[str, str]:
    """The next state, and the name of the delay before it; the same state when nothing changes."""
    has_cluster = bool(spec_of(agent).get("clusterDeploymentName"))
    if lost:
        return (LOST if has_cluster else LOST_FREE), ""
    if state in (LOST, LOST_FREE):
        # Connected again: what was installed is still a node.
        return (JOINED if has_cluster and is_true(agent, "Installed") else FREE), ""
    if not has_cluster:
        return {
            "": (DISCOVERING, ""),
            DISCOVERING: (FREE, "discover"),
            FREE: (FREE, ""),
            UNBINDING: (FREE, "unbind"),
        }.get(state, (UNBINDING, ""))
    return {
        "": (DISCOVERING, ""),
        DISCOVERING: (FREE, "discover"),
        FREE: (BINDING, ""),
        UNBINDING: (FREE, "unbind"),
        BINDING: (KNOWN, "bind"),
        KNOWN: (INSTALLING, ""),
        INSTALLING: (JOINED, "install"),
    }.get(state, (state, ""))


# Per state: Bound, Validated, RequirementsMet, Installed as (status, reason).
_READY = ("True", "AgentIsReady")
_PASSING = ("True", "ValidationsPassing")
_NOT_STARTED = ("False", "InstallationNotStarted")
_UNBOUND = ("False", "Unbound")
_CONDITIONS_BY_STATE: Mapping[str, tuple[tuple[str, str], ...]] = {
    DISCOVERING: (
        _UNBOUND,
        ("Unknown", "ValidationsUnknown"),
        ("False", "AgentNotReady"),
        _NOT_STARTED,
    ),
    FREE: (_UNBOUND, _PASSING, _READY, _NOT_STARTED),
    BINDING: (("False", "Binding"),) * 4,
    KNOWN: (("True", "Bound"), _PASSING, _READY, _NOT_STARTED),
    INSTALLING: (
        ("True", "Bound"),
        _PASSING,
        ("True", "AgentAlreadyInstalling"),
        ("False", "InstallationInProgress"),
    ),
    JOINED: (
        ("True", "Bound"),
        _PASSING,
        ("True", "AgentInstallationStopped"),
        ("True", "InstallationCompleted"),
    ),
    UNBINDING: (("False", "Unbinding"),) * 4,
}


def _make_status(agent: Object, state: str, since: float, now: float) -> Object:
    conditions = [StatusCondition("SpecSynced", "True", "SyncOK")]
    if state in (LOST, LOST_FREE):
        conditions.append(StatusCondition("Connected", "False", "AgentIsDisconnected"))
        bound = ("True", "Bound") if state == LOST else _UNBOUND
        conditions += [
            StatusCondition("Bound", *bound),
            StatusCondition("Validated", "False", "ValidationsFailing"),
            StatusCondition("RequirementsMet", "False", "AgentNotReady"),
        ]
        installed = state == LOST and is_true(agent, "Installed")
        installation = ("True", "InstallationCompleted") if installed else _NOT_STARTED
        conditions.append(StatusCondition("Installed", *installation))
    else:
        conditions.append(StatusCondition("Connected", "True", "AgentIsConnected"))
        bound, valid, ready, done = _CONDITIONS_BY_STATE[state]
        if ready == _READY and spec_of(agent).get("approved") is not True:
            ready = ("False", "AgentIsNotApproved")
        conditions += [
            StatusCondition("Bound", *bound),
            StatusCondition("Validated", *valid),
            StatusCondition("RequirementsMet", *ready),
            StatusCondition("Installed", *done),
        ]
    before = get_nested(status_of(agent), "progress", "stageStartTime")
    same = state == agent_state(agent)
    return {
        "conditions": write_conditions(conditions_of(agent), conditions, now),
        "debugInfo": {"state": state, "stateInfo": ""},
        "progress": {
            "currentStage": "Done" if state == JOINED else "",
            "stageStartTime": before if same and before else format_time(since),
        },
    }


def _has_status(agent: Object, status: Object) -> bool:
    """Whether the Agent has this status already; fields that we do not write are ignored."""
    current_status: dict[str, Any] = status_of(agent)
    return all(_contains(current_status.get(field), expected) for field, expected in status.items())


def _contains(actual: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            _contains(actual.get(field), value) for field, value in expected.items()
        )
    return bool(actual == expected)
