"""The version of a hosted control plane: the current one, the target, and the history. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.fakes.hypershift.faults import PlantedFaults
from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    format_time,
    generation_of,
    get_nested,
    parse_time,
    status_of,
    true_since,
    uid_of,
)
from boatyard.fakes.hypershift.releases import ReleaseImage
from boatyard.fakes.hypershift.snapshot import HostedClusterSnapshot
from boatyard.fakes.hypershift.stage_delays import StageDelays

HISTORY_LIMIT = 10


@dataclass(frozen=True)
class Rollout:
    """`status.version`, and the conditions that follow from it."""

    version: Object | None
    conditions: tuple[StatusCondition, ...]
    next_check: float | None

    @property
    def is_complete(self) -> bool:
        return is_complete(self.version)


def is_complete(version: Object | None) -> bool:
    history = (version or {}).get("history") or []
    return bool(history) and history[0]["state"] == "Completed"


def compute_rollout(
    snapshot: HostedClusterSnapshot,
    release: ReleaseImage | None,
    faults: PlantedFaults,
    delays: StageDelays,
    *,
    blocked: bool,
    serving: bool,
    available_since: float | None,
    now: float,
) -> Rollout:
    """The rollout at this time. The first one needs a worker, because much of a cluster runs on its nodes."""
    assert snapshot.cluster is not None
    history = [
        dict(entry) for entry in get_nested(status_of(snapshot.cluster), "version", "history") or []
    ]
    if blocked or release is None:
        # The version that was accepted before stays.
        version = status_of(snapshot.cluster).get("version")
        return Rollout(version, _make_conditions(history, serving, ""), None)
    if not history or history[0]["image"] != release.image:
        history = _begin_entry(history, release, now)
    next_check = None
    stuck_reason = ""
    if history[0]["state"] != "Completed":
        due, stuck_reason = _completion_time(snapshot, history, faults, delays, available_since)
        if due is not None and now >= due:
            history[0] |= {"state": "Completed", "completionTime": format_time(now)}
        else:
            next_check = due
    version = {
        "desired": {"image": release.image, "version": release.version},
        "history": history,
        "observedGeneration": generation_of(snapshot.cluster),
        "availableUpdates": None,  # the field must be present, and no updates are known
    }
    return Rollout(version, _make_conditions(history, serving, stuck_reason), next_check)


def _begin_entry(history: list[Object], release: ReleaseImage, now: float) -> list[Object]:
    if history and history[0]["completionTime"] is None:
        history[0]["completionTime"] = format_time(now)  # abandoned half way; it stays Partial
    entry = {
        "state": "Partial",
        "image": release.image,
        "version": release.version,
        "startedTime": format_time(now),
        "completionTime": None,
        "verified": False,
    }
    return [entry, *history][:HISTORY_LIMIT]


def _completion_time(
    snapshot: HostedClusterSnapshot,
    history: list[Object],
    faults: PlantedFaults,
    delays: StageDelays,
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
        started = parse_time(history[0]["startedTime"]) or 0.0
        return started + delays.seconds_for("upgrade", key) + faults.extra_seconds, ""
    if available_since is None:
        return None, ""
    worker = _first_worker_time(snapshot, available_since)
    if worker is None:
        return None, "ClusterOperatorsNotAvailable"
    return max(worker, available_since) + delays.seconds_for(
        "rollout", key
    ) + faults.extra_seconds, ""


def _first_worker_time(snapshot: HostedClusterSnapshot, available_since: float) -> float | None:
    if snapshot.platform == "None":
        return available_since  # its nodes come from outside, and the fake does not see them
    join_times = [true_since(machine, "NodeHealthy") for machine in snapshot.machines]
    return min((joined_at for joined_at in join_times if joined_at is not None), default=None)


_VERSION_CONDITIONS = (
    "Succeeding",
    "Failing",
    "Progressing",
    "Available",
    "ReleaseAccepted",
    "Upgradeable",
)


def _make_conditions(
    history: list[Object], serving: bool, stuck_reason: str
) -> tuple[StatusCondition, ...]:
    if not serving or not history:
        unknown = ("Unknown", "StatusUnknown", "The cluster version is not known yet")
        return tuple(
            StatusCondition(f"ClusterVersion{name}", *unknown) for name in _VERSION_CONDITIONS
        )
    is_completed = history[0]["state"] == "Completed"
    was_completed = any(entry["state"] == "Completed" for entry in history)
    target = history[0]["version"]
    message = f"The cluster is {target}" if is_completed else f"Working towards {target}"
    return (
        StatusCondition(
            "ClusterVersionSucceeding",
            "False" if stuck_reason else "True",
            stuck_reason or "FromClusterVersion",
            "Some cluster operators are not available" if stuck_reason else "",
        ),
        StatusCondition(
            "ClusterVersionFailing",
            "True" if stuck_reason else "False",
            stuck_reason or "FromClusterVersion",
        ),
        StatusCondition(
            "ClusterVersionProgressing",
            "False" if is_completed else "True",
            "FromClusterVersion",
            message,
        ),
        StatusCondition(
            "ClusterVersionAvailable", "True" if was_completed else "False", "FromClusterVersion"
        ),
        StatusCondition("ClusterVersionReleaseAccepted", "True", "PayloadLoaded", ""),
        StatusCondition(
            "ClusterVersionUpgradeable",
            "True" if was_completed else "Unknown",
            "FromClusterVersion",
        ),
    )
