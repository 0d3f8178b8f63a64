"""The version of a hosted control plane: the current one, the target, and the history. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.fakes.hypershift.faults import Planted
from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    Condition,
    generation_of,
    inside,
    moment,
    stamp,
    status_of,
    true_since,
    uid_of,
)
from boatyard.fakes.hypershift.observation import Seen
from boatyard.fakes.hypershift.pace import Pace
from boatyard.fakes.hypershift.releases import Release

LONGEST_HISTORY = 10


@dataclass(frozen=True)
class Rollout:
    """`status.version`, and the conditions that follow from it."""

    version: Object | None
    conditions: tuple[Condition, ...]
    look_at: float | None

    @property
    def complete(self) -> bool:
        return is_complete(self.version)


def is_complete(version: Object | None) -> bool:
    history = (version or {}).get("history") or []
    return bool(history) and history[0]["state"] == "Completed"


def roll_out(
    snapshot: Seen,
    release: Release | None,
    faults: Planted,
    pace: Pace,
    *,
    blocked: bool,
    serving: bool,
    available_since: float | None,
    now: float,
) -> Rollout:
    """The rollout at this time. The first one needs a worker, because much of a cluster runs on its nodes."""
    assert snapshot.cluster is not None
    history = [
        dict(entry) for entry in inside(status_of(snapshot.cluster), "version", "history") or []
    ]
    if blocked or release is None:
        # The version that was accepted before stays.
        version = status_of(snapshot.cluster).get("version")
        return Rollout(version, _conditions(history, serving, ""), None)
    if not history or history[0]["image"] != release.image:
        history = _begun(history, release, now)
    next_check = None
    stuck_reason = ""
    if history[0]["state"] != "Completed":
        due, stuck_reason = _due(snapshot, history, faults, pace, available_since)
        if due is not None and now >= due:
            history[0] |= {"state": "Completed", "completionTime": stamp(now)}
        else:
            next_check = due
    version = {
        "desired": {"image": release.image, "version": release.version},
        "history": history,
        "observedGeneration": generation_of(snapshot.cluster),
        "availableUpdates": None,  # the field must be present, and no updates are known
    }
    return Rollout(version, _conditions(history, serving, stuck_reason), next_check)


def _begun(history: list[Object], release: Release, now: float) -> list[Object]:
    if history and history[0]["completionTime"] is None:
        history[0]["completionTime"] = stamp(now)  # abandoned half way; it stays Partial
    entry = {
        "state": "Partial",
        "image": release.image,
        "version": release.version,
        "startedTime": stamp(now),
        "completionTime": None,
        "verified": False,
    }
    return [entry, *history][:LONGEST_HISTORY]


def _due(
    snapshot: Seen,
    history: list[Object],
    faults: Planted,
    pace: Pace,
    available_since: float | None,
) -> tuple[float | None, str]:
    """When the newest entry completes, or None; and the reason if it is stuck."""
    assert snapshot.cluster is not None
    key = uid_of(snapshot.cluster)
    if any(entry["state"] == "Completed" for entry in history):
        if "stuck-upgrade" in faults:
            return None, "ClusterOperatorDegraded"
        if available_since is None:
            return None, ""
        started = moment(history[0]["startedTime"]) or 0.0
        return started + pace.of("upgrade", key) + faults.slowness, ""
    if available_since is None:
        return None, ""
    worker = _first_worker(snapshot, available_since)
    if worker is None:
        return None, "ClusterOperatorsNotAvailable"
    return max(worker, available_since) + pace.of("rollout", key) + faults.slowness, ""


def _first_worker(snapshot: Seen, available_since: float) -> float | None:
    if snapshot.platform == "None":
        return available_since  # its nodes come from outside, and the fake does not see them
    join_times = [true_since(machine, "NodeHealthy") for machine in snapshot.machines]
    return min((joined_at for joined_at in join_times if joined_at is not None), default=None)


_SAID_OF_VERSIONS = (
    "Succeeding",
    "Failing",
    "Progressing",
    "Available",
    "ReleaseAccepted",
    "Upgradeable",
)


def _conditions(history: list[Object], serving: bool, stuck_reason: str) -> tuple[Condition, ...]:
    if not serving or not history:
        unknown = ("Unknown", "StatusUnknown", "The cluster version is not known yet")
        return tuple(Condition(f"ClusterVersion{name}", *unknown) for name in _SAID_OF_VERSIONS)
    is_completed = history[0]["state"] == "Completed"
    was_completed = any(entry["state"] == "Completed" for entry in history)
    target = history[0]["version"]
    message = f"The cluster is {target}" if is_completed else f"Working towards {target}"
    return (
        Condition(
            "ClusterVersionSucceeding",
            "False" if stuck_reason else "True",
            stuck_reason or "FromClusterVersion",
            "Some cluster operators are not available" if stuck_reason else "",
        ),
        Condition(
            "ClusterVersionFailing",
            "True" if stuck_reason else "False",
            stuck_reason or "FromClusterVersion",
        ),
        Condition(
            "ClusterVersionProgressing",
            "False" if is_completed else "True",
            "FromClusterVersion",
            message,
        ),
        Condition(
            "ClusterVersionAvailable", "True" if was_completed else "False", "FromClusterVersion"
        ),
        Condition("ClusterVersionReleaseAccepted", "True", "PayloadLoaded", ""),
        Condition(
            "ClusterVersionUpgradeable",
            "True" if was_completed else "Unknown",
            "FromClusterVersion",
        ),
    )
