"""Decides what a simulated kubelet does next with a pod: a pure function of the pod, its node and the time.

Called by the agent for each pod of its nodes whenever something about it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from boatyard.model.backoff import Backoff
from boatyard.platforms.drivers.local.nodes.objects import format_rfc3339, parse_time

FAILS_ANNOTATION = "boatyard.io/pod-fails"  # annotation: its containers fail again and again
RUNS_FOR_ANNOTATION = (
    "boatyard.io/pod-runs-for"  # annotation: seconds until a pod that ends by itself ends
)
RUN_SECONDS = 1.0
STOP_SECONDS = 1.0  # the longest time a pod takes to stop, whatever its grace period
_CRASHES = Backoff(first=10.0, longest=300.0)

_STRUCT_OPTIONS: Any = {"gc": False, "rename": "camel", "frozen": True}


class PodMetadata(msgspec.Struct, **_STRUCT_OPTIONS):
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    finalizers: tuple[str, ...] = ()


class Container(msgspec.Struct, **_STRUCT_OPTIONS):
    name: str
    image: str = ""
    restart_policy: str = ""


class ReadinessGate(msgspec.Struct, **_STRUCT_OPTIONS):
    condition_type: str


class PodSpec(msgspec.Struct, **_STRUCT_OPTIONS):
    node_name: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


class ContainerStatus(msgspec.Struct, **_STRUCT_OPTIONS):
    name: str
    image: str = ""
    restart_count: int = 0
    state: dict[str, dict[str, Any]] = {}

    @property
    def started_at(self) -> str:
        return str((self.state.get("running") or {}).get("startedAt") or "")


class PodStatus(msgspec.Struct, **_STRUCT_OPTIONS):
    phase: str = ""
    start_time: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[dict[str, Any], ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, **_STRUCT_OPTIONS):
    """The fields of a pod that matter to the simulated kubelet."""

    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def ends_by_itself(self) -> bool:
        return self.spec.restart_policy != "Always"

    @property
    def fails(self) -> bool:
        return self.metadata.annotations.get(FAILS_ANNOTATION) == "true"


def parse_pod(item: Mapping[str, Any]) -> Pod:
    pod = msgspec.convert(item, Pod, strict=False)
    annotations = {
        name: text
        for name, text in pod.metadata.annotations.items()
        if name in (FAILS_ANNOTATION, RUNS_FOR_ANNOTATION)
    }
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations)
    )


@dataclass(frozen=True)
class PodNodeState:
    """The state of the node that a pod runs on."""

    address: str  # of the node
    boot_started_at: float  # when the machine last started: containers started earlier have ended
    starts_pods: bool = True  # whether pods are started; a node that is not ready only ends them


@dataclass(frozen=True)
class WriteStatus:
    status: dict[str, Any]


@dataclass(frozen=True)
class DeletePod:
    """The pod has stopped: its object is deleted."""


@dataclass(frozen=True)
class WaitUntil:
    at: float  # wall-clock seconds


PodAction = WriteStatus | DeletePod | WaitUntil | None


def choose_next_action(
    pod: Pod, node_state: PodNodeState, address: str, now: datetime
) -> PodAction:
    """Returns the next action for the pod; None when nothing is to do until something changes.

    `address` is the pod's address once it runs.
    """
    if pod.metadata.deletion_timestamp:
        return _stop_pod(pod, now)
    if pod.is_finished or not node_state.starts_pods:
        return None
    if pod.fails:
        return _crash_pod(pod, node_state, address, now)
    if not _is_running(pod, node_state):
        return WriteStatus(_render_running(pod, node_state, address, now))
    conditions = _conditions(pod, now, ready=True)
    if not _has_conditions(pod, conditions):
        return WriteStatus({"conditions": conditions})
    if pod.ends_by_itself:
        return _finish_pod(pod, now, exit_code=0)
    return None


def _stop_pod(pod: Pod, now: datetime) -> PodAction:
    grace = pod.metadata.deletion_grace_period_seconds
    if grace == 0:
        return None  # only finalizers of others keep it
    asked_at = parse_time(pod.metadata.deletion_timestamp) - grace
    stops_at = asked_at + min(grace, STOP_SECONDS)
    if now.timestamp() < stops_at:
        return WaitUntil(stops_at)
    watched = pod.ends_by_itself or pod.metadata.finalizers
    if watched and not pod.is_finished and pod.status.container_statuses:
        # Controllers that count finished pods must see how this one ended before it is deleted.
        return WriteStatus(_render_ended(pod, now, exit_code=143))
    return DeletePod()


def _finish_pod(pod: Pod, now: datetime, *, exit_code: int) -> PodAction:
    started = max(parse_time(status.started_at) for status in pod.status.container_statuses)
    ends_at = started + run_seconds(pod)
    if now.timestamp() < ends_at:
        return WaitUntil(ends_at)
    return WriteStatus(_render_ended(pod, now, exit_code=exit_code))


def run_seconds(pod: Pod) -> float:
    try:
        return max(float(pod.metadata.annotations[RUNS_FOR_ANNOTATION]), 0.0)
    except (KeyError, ValueError):
        return RUN_SECONDS


def _crash_pod(pod: Pod, node_state: PodNodeState, address: str, now: datetime) -> PodAction:
    if pod.spec.restart_policy == "Never":
        if not _is_running(pod, node_state):
            return WriteStatus(_render_running(pod, node_state, address, now))
        return _finish_pod(pod, now, exit_code=1)
    started_at = parse_time(pod.status.start_time) or now.timestamp()
    restarts, again_at = crash_loop(now.timestamp() - started_at)
    statuses = pod.status.container_statuses
    if statuses and all(
        "waiting" in status.state and status.restart_count >= restarts for status in statuses
    ):
        return WaitUntil(started_at + again_at)
    return WriteStatus(_render_crashing(pod, node_state, address, now, restarts))


def crash_loop(elapsed: float) -> tuple[int, float]:
    """Returns how often a container that always fails was restarted after so many seconds, and the next restart."""
    restarts, at = 1, _CRASHES.first
    while at <= elapsed and _CRASHES.pause(restarts) < _CRASHES.longest:
        restarts += 1
        at += _CRASHES.pause(restarts)
    if at <= elapsed:
        # Computed, not iterated: a tenant may write that its pod started a thousand years ago.
        more = int((elapsed - at) // _CRASHES.longest) + 1
        restarts, at = restarts + more, at + more * _CRASHES.longest
    return restarts, at


def _is_running(pod: Pod, node_state: PodNodeState) -> bool:
    statuses = {entry.name: entry for entry in pod.status.container_statuses}
    if pod.status.phase != "Running" or len(statuses) != len(pod.spec.containers):
        return False
    for container in pod.spec.containers:
        status = statuses.get(container.name)
        if status is None or status.image != container.image or not status.started_at:
            return False
        # Timestamps in objects are whole seconds.
        if parse_time(status.started_at) + 1 <= node_state.boot_started_at:
            return False
    return True


def _render_running(
    pod: Pod, node_state: PodNodeState, address: str, now: datetime
) -> dict[str, Any]:
    moment = format_rfc3339(now)
    counts = {
        container.name: container.restart_count + 1 for container in pod.status.container_statuses
    }
    status = _render_started(pod, node_state, address, now)
    status["containerStatuses"] = [
        _container(
            pod, container, counts.get(container.name, 0), {"running": {"startedAt": moment}}
        )
        for container in pod.spec.containers
    ]
    status["conditions"] = _conditions(pod, now, ready=True)
    return status


def _render_crashing(
    pod: Pod, node_state: PodNodeState, address: str, now: datetime, restarts: int
) -> dict[str, Any]:
    moment = format_rfc3339(now)
    status = _render_started(pod, node_state, address, now)
    text = "back-off restarting failed container"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
    status["containerStatuses"] = [
        {
            **_container(pod, container, restarts, waiting),
            "ready": False,
            "started": False,
            "lastState": {"terminated": _terminated(moment, moment, exit_code=1)},
        }
        for container in pod.spec.containers
    ]
    status["conditions"] = _conditions(pod, now, ready=False)
    return status


def _render_started(
    pod: Pod, node_state: PodNodeState, address: str, now: datetime
) -> dict[str, Any]:
    """Renders the status that every started pod has: its addresses, and its finished init containers."""
    moment = format_rfc3339(now)
    done = {"terminated": _terminated(moment, moment, exit_code=0)}
    status: dict[str, Any] = {
        "phase": "Running",
        "hostIP": node_state.address,
        "hostIPs": [{"ip": node_state.address}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod.status.start_time or moment,
    }
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if pod.spec.init_containers:
        running = {"running": {"startedAt": moment}}
        status["initContainerStatuses"] = [
            _container(pod, container, 0, running if container.restart_policy == "Always" else done)
            for container in pod.spec.init_containers
        ]
    return status


def _render_ended(pod: Pod, now: datetime, *, exit_code: int) -> dict[str, Any]:
    moment = format_rfc3339(now)
    old_statuses = {entry.name: entry for entry in pod.status.container_statuses}
    statuses = []
    for container in pod.spec.containers:
        status = old_statuses.get(container.name)
        started = (status.started_at if status else "") or moment
        count = status.restart_count if status else 0
        state = {"terminated": _terminated(started, moment, exit_code=exit_code)}
        body = _container(pod, container, count, state)
        statuses.append({**body, "ready": False, "started": False})
    reason = "PodCompleted" if exit_code == 0 else "PodFailed"
    return {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "containerStatuses": statuses,
        "conditions": _conditions(pod, now, ready=False, reason=reason),
    }


def _container(
    pod: Pod, container: Container, restarts: int, state: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"simulated://{container.image}",
        "containerID": f"simulated://{pod.metadata.uid}/{container.name}/{restarts}",
        "ready": True,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    }


def _terminated(started: str, finished: str, *, exit_code: int) -> dict[str, Any]:
    reason = "Completed" if exit_code == 0 else "Error"
    return {
        "exitCode": exit_code,
        "reason": reason,
        "startedAt": started,
        "finishedAt": finished,
    }


def _conditions(
    pod: Pod, now: datetime, *, ready: bool, reason: str = "ContainersNotReady"
) -> list[dict[str, Any]]:
    """Renders all conditions of the pod: ours as they should be, those of others unchanged."""
    existing = {condition["type"]: condition for condition in pod.status.conditions}
    gates = [gate.condition_type for gate in pod.spec.readiness_gates]
    open_gates = all(existing.get(gate, {}).get("status") == "True" for gate in gates)
    desired = {
        "PodReadyToStartContainers": (True, ""),
        "Initialized": (True, ""),
        "ContainersReady": (ready, reason),
        "Ready": (ready and open_gates, reason if not ready else "ReadinessGatesNotReady"),
    }
    conditions = [condition for name, condition in existing.items() if name not in desired]
    for name, (is_true, why) in desired.items():
        status = "True" if is_true else "False"
        last = existing.get(name)
        if last is not None and last.get("status") == status:
            conditions.append(last)
            continue
        moment = format_rfc3339(now)
        condition = {"type": name, "status": status, "lastTransitionTime": moment}
        conditions.append(condition if is_true else {**condition, "reason": why})
    return conditions


def _has_conditions(pod: Pod, conditions: list[dict[str, Any]]) -> bool:
    statuses = {condition["type"]: condition.get("status") for condition in pod.status.conditions}
    return all(statuses.get(condition["type"]) == condition["status"] for condition in conditions)
