"""Interprets the status that HyperShift writes. Pure.

Tenants may read the messages, so they are ours. HyperShift's own messages, which name things of the hub, are shown
only in refusals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boatyard.model.errors import Refused, Violation
from boatyard.platforms.drivers.hosted.kinds import (
    ObservedObject,
    get_path,
    is_being_deleted,
    metadata_of,
)
from boatyard.platforms.port import ObservedCluster, ObservedNode

TRUE, FALSE = "True", "False"


@dataclass(frozen=True)
class ObjectCondition:
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    is_current: bool = True  # it refers to the present generation of the spec

    @property
    def is_true(self) -> bool:
        return self.status == TRUE

    @property
    def is_false(self) -> bool:
        return self.status == FALSE


_UNKNOWN = ObjectCondition()


@dataclass(frozen=True)
class HostedRelease:
    version: str
    image: str


@dataclass(frozen=True)
class InstallStage:
    """How far a control plane is: a reason for programs, and one sentence for people."""

    reason: str
    message: str


def conditions_of(obj: ObservedObject) -> Mapping[str, ObjectCondition]:
    generation = metadata_of(obj).get("generation") or 0
    conditions: dict[str, ObjectCondition] = {}
    for entry in get_path(obj, "status", "conditions") or ():
        # A condition without observedGeneration counts as current.
        observed = entry.get("observedGeneration")
        conditions[str(entry.get("type"))] = ObjectCondition(
            status=str(entry.get("status") or "Unknown"),
            reason=str(entry.get("reason") or ""),
            message=str(entry.get("message") or ""),
            is_current=not observed or observed >= generation,
        )
    return conditions


# Conditions that stay False until the spec changes: HyperShift does nothing more before that.
_TERMINAL_CONDITIONS = {
    "ValidConfiguration": ("", "the cluster's configuration is not accepted"),
    "SupportedHostedCluster": ("", "this hub cannot host such a cluster"),
    "ValidReleaseImage": ("release_image", "the release is not accepted"),
    "ValidHostedControlPlaneConfiguration": ("", "the control plane's configuration is refused"),
    "PlatformCredentialsFound": ("", "the platform's credentials are missing on this hub"),
}
_TERMINAL_POOL_CONDITIONS = {
    "ValidReleaseImage": ("release_image", "the nodes' release is not accepted"),
    "ValidPlatformImage": ("release_image", "there is no disk image for the nodes' release"),
    "ValidPlatformConfig": ("", "the nodes' configuration is not accepted"),
    "ValidMachineConfig": ("", "the nodes' machine configuration is not accepted"),
    "ValidTuningConfig": ("", "the nodes' tuning is not accepted"),
    "ValidMachineTemplate": ("", "no machine can be made from the nodes' settings"),
    "UpdateManagementEnabled": ("", "the nodes' way of updating is not accepted"),
    "SupportedVersionSkew": ("version", "the nodes are too far behind the control plane"),
}
# Reasons with which a False condition only means that HyperShift has not looked yet.
_PENDING_REASONS = ("StatusUnknown", "NotFound", "WaitingForAvailable")


def check_not_blocked(cluster: ObservedObject) -> None:
    """Refused when HyperShift will do nothing more until the spec changes."""
    _check_conditions(cluster, _TERMINAL_CONDITIONS)


def check_pool_not_blocked(pool: ObservedObject) -> None:
    """Does the same as `check_not_blocked` for a node pool."""
    _check_conditions(pool, _TERMINAL_POOL_CONDITIONS)


def blocked_release(cluster: ObservedObject) -> ObjectCondition | None:
    """Returns the condition by which HyperShift refuses the release in the spec; None when it does not."""
    condition = conditions_of(cluster).get("ValidReleaseImage", _UNKNOWN)
    return condition if _is_terminal(condition) else None


def _check_conditions(obj: ObservedObject, terminal: Mapping[str, tuple[str, str]]) -> None:
    conditions = conditions_of(obj)
    violations = []
    reason = ""
    for name, (field, words) in terminal.items():
        condition = conditions.get(name, _UNKNOWN)
        if _is_terminal(condition):
            explanation = condition.message or condition.reason
            violations.append(Violation(field, words, f"HyperShift says: {explanation}"))
            reason = reason or condition.reason
    if violations:
        raise Refused("", *violations, reason=reason or "Blocked")


def _is_terminal(condition: ObjectCondition) -> bool:
    return condition.is_false and condition.is_current and condition.reason not in _PENDING_REASONS


def is_available(cluster: ObservedObject) -> bool:
    return conditions_of(cluster).get("Available", _UNKNOWN).is_true and not is_being_deleted(
        cluster
    )


def stage_of(cluster: ObservedObject) -> InstallStage:
    """Returns the first part that is not ready yet, in the order in which HyperShift creates them."""
    conditions = conditions_of(cluster)
    if is_being_deleted(cluster):
        return InstallStage("Deleting", "The control plane is being removed.")
    if conditions.get("ReconciliationActive", _UNKNOWN).is_false:
        return InstallStage("Paused", "Work on the cluster has been paused by an operator.")
    if not conditions:
        return InstallStage("StageUnknown", "The control plane has been asked for.")
    for name, reason, words in _INSTALL_STAGES:
        if not conditions.get(name, _UNKNOWN).is_true:
            return InstallStage(reason, words)
    return InstallStage("WorkersJoining", "The nodes are joining.")


_INSTALL_STAGES = (
    (
        "InfrastructureReady",
        "PreparingInfrastructure",
        "The control plane's infrastructure is being prepared.",
    ),
    ("EtcdAvailable", "ControlPlaneStarting", "The control plane's storage is starting."),
    ("KubeAPIServerAvailable", "ControlPlaneStarting", "The API server is starting."),
    ("Available", "ControlPlaneStarting", "The control plane is starting."),
)


def find_completed_release(cluster: ObservedObject) -> HostedRelease | None:
    """Returns the newest release that was rolled out completely; None before the first."""
    for entry in _history(cluster):
        if entry.get("state") == "Completed":
            return HostedRelease(str(entry.get("version") or ""), str(entry.get("image") or ""))
    return None


def _history(cluster: ObservedObject) -> Sequence[Mapping[str, Any]]:
    """Returns the releases that were rolled out, newest first."""
    return get_path(cluster, "status", "version", "history") or ()


def running_version(cluster: ObservedObject) -> str:
    """Returns the version of the last complete release. Before the first is complete, the one being installed."""
    release = find_completed_release(cluster)
    if release is not None:
        return release.version
    history = _history(cluster)
    first = history[0].get("version") if history else ""
    return str(first or get_path(cluster, "status", "version", "desired", "version") or "")


def _is_release(entry: Mapping[str, Any], release: HostedRelease) -> bool:
    """Whether an entry is this release, by image or by version: a mirror may give the image another name."""
    return release.image == entry.get("image") or release.version == entry.get("version")


def has_reached_release(cluster: ObservedObject, release: HostedRelease, *, nodes: bool) -> bool:
    """Whether the control plane has reached this release as far as it can now.

    A release becomes complete only on nodes: without nodes, and while the first ones join, a started one is enough.
    """
    history = _history(cluster)
    desired = get_path(cluster, "status", "version", "desired") or {}
    if not history or not _is_release(desired, release) or not _is_release(history[0], release):
        return False
    first = find_completed_release(cluster) is None and len(history) == 1
    return first or not nodes or history[0].get("state") == "Completed"


def version_of_image(cluster: ObservedObject, image: str) -> str:
    """Returns the version that HyperShift has read from an image; empty before it has."""
    for entry in _history(cluster):
        if entry.get("image") == image:
            return str(entry.get("version") or "")
    return ""


def is_rolling_out(cluster: ObservedObject) -> bool:
    conditions = conditions_of(cluster)
    return any(
        conditions.get(name, _UNKNOWN).is_true
        for name in ("Progressing", "ClusterVersionProgressing")
    )


def is_pool_updated(pool: ObservedObject, image: str, version: str) -> bool:
    """Whether all nodes of the pool are at this release."""
    conditions = conditions_of(pool)
    updating = any(
        conditions.get(name, _UNKNOWN).is_true for name in ("UpdatingVersion", "UpdatingConfig")
    )
    is_requested = get_path(pool, "spec", "release", "image") == image
    return is_requested and not updating and get_path(pool, "status", "version") == version


def to_observed_cluster(
    cluster: ObservedObject, nodes: Sequence[ObservedNode], joined: Sequence[str]
) -> ObservedCluster:
    """Returns the cluster's state in the form of the port. `joined` are the slots whose machine has been a node."""
    available = is_available(cluster)
    trouble = _find_problem(cluster, nodes, joined) if available else ""
    return ObservedCluster(
        exists=True,
        available=available,
        degraded=bool(trouble),
        version=running_version(cluster),
        message=trouble or ("" if available else stage_of(cluster).message),
        nodes=tuple(nodes),
    )


def _find_problem(
    cluster: ObservedObject, nodes: Sequence[ObservedNode], joined: Sequence[str]
) -> str:
    """Returns, in one sentence, what is wrong with a cluster whose API answers; empty when nothing is."""
    if any(not node.ready and node.slot in joined for node in nodes):
        return "Not all nodes are ready."
    conditions = conditions_of(cluster)
    # A new cluster without nodes always has this condition.
    if (
        conditions.get("ClusterVersionFailing", _UNKNOWN).is_true
        and find_completed_release(cluster) is not None
    ):
        return "The cluster's own operators report a failure."
    # HyperShift reports Degraded for every replica that restarts: during a rollout that is normal.
    if conditions.get("Degraded", _UNKNOWN).is_true and not is_rolling_out(cluster):
        return "A part of the control plane is not running."
    connections = ("DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable")
    if any(conditions.get(name, _UNKNOWN).is_false for name in connections) and any(
        node.ready for node in nodes
    ):
        return "The control plane and the nodes do not reach each other."
    return ""


def secret_name(cluster: ObservedObject, field: str) -> str:
    """Returns the name of the Secret in this status field (`kubeconfig` or `kubeadminPassword`); empty if none."""
    name: Any = get_path(cluster, "status", field, "name")
    return str(name or "")
