"""The version of a hosted control plane: what it is, what it becomes, and since when. Pure."""

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
    """`status.version`, and the conditions that come out of it."""

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
    seen: Seen,
    release: Release | None,
    planted: Planted,
    pace: Pace,
    *,
    blocked: bool,
    serving: bool,
    available_since: float | None,
    now: float,
) -> Rollout:
    """The rollout as it is now. The first one needs a worker: much of a cluster runs on its nodes."""
    assert seen.cluster is not None
    history = [dict(one) for one in inside(status_of(seen.cluster), "version", "history") or []]
    if blocked or release is None:
        # What was accepted before goes on being what it is.
        version = status_of(seen.cluster).get("version")
        return Rollout(version, _conditions(history, serving, ""), None)
    if not history or history[0]["image"] != release.image:
        history = _begun(history, release, now)
    look_at = None
    waits = ""
    if history[0]["state"] != "Completed":
        due, waits = _due(seen, history, planted, pace, available_since)
        if due is not None and now >= due:
            history[0] |= {"state": "Completed", "completionTime": stamp(now)}
        else:
            look_at = due
    version = {
        "desired": {"image": release.image, "version": release.version},
        "history": history,
        "observedGeneration": generation_of(seen.cluster),
        "availableUpdates": None,  # must be there, and nothing is known of any
    }
    return Rollout(version, _conditions(history, serving, waits), look_at)


def _begun(history: list[Object], release: Release, now: float) -> list[Object]:
    if history and history[0]["completionTime"] is None:
        history[0]["completionTime"] = stamp(now)  # given up half way; it stays Partial
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
    seen: Seen,
    history: list[Object],
    planted: Planted,
    pace: Pace,
    available_since: float | None,
) -> tuple[float | None, str]:
    """When the newest entry completes, and why it never will as things are."""
    assert seen.cluster is not None
    key = uid_of(seen.cluster)
    if any(entry["state"] == "Completed" for entry in history):
        if "stuck-upgrade" in planted:
            return None, "ClusterOperatorDegraded"
        if available_since is None:
            return None, ""
        started = moment(history[0]["startedTime"]) or 0.0
        return started + pace.of("upgrade", key) + planted.slowness, ""
    if available_since is None:
        return None, ""
    worker = _first_worker(seen, available_since)
    if worker is None:
        return None, "ClusterOperatorsNotAvailable"
    return max(worker, available_since) + pace.of("rollout", key) + planted.slowness, ""


def _first_worker(seen: Seen, available_since: float) -> float | None:
    if seen.platform == "None":
        return available_since  # its nodes come from outside and are nobody's business here
    moments = [true_since(machine, "NodeHealthy") for machine in seen.machines]
    return min((one for one in moments if one is not None), default=None)


_SAID_OF_VERSIONS = (
    "Succeeding",
    "Failing",
    "Progressing",
    "Available",
    "ReleaseAccepted",
    "Upgradeable",
)


def _conditions(history: list[Object], serving: bool, waits: str) -> tuple[Condition, ...]:
    if not serving or not history:
        unknown = ("Unknown", "StatusUnknown", "The cluster version is not known yet")
        return tuple(Condition(f"ClusterVersion{name}", *unknown) for name in _SAID_OF_VERSIONS)
    done = history[0]["state"] == "Completed"
    ever = any(entry["state"] == "Completed" for entry in history)
    target = history[0]["version"]
    told = f"The cluster is {target}" if done else f"Working towards {target}"
    return (
        Condition(
            "ClusterVersionSucceeding",
            "False" if waits else "True",
            waits or "FromClusterVersion",
            "Some cluster operators are not available" if waits else "",
        ),
        Condition(
            "ClusterVersionFailing", "True" if waits else "False", waits or "FromClusterVersion"
        ),
        Condition(
            "ClusterVersionProgressing", "False" if done else "True", "FromClusterVersion", told
        ),
        Condition("ClusterVersionAvailable", "True" if ever else "False", "FromClusterVersion"),
        Condition("ClusterVersionReleaseAccepted", "True", "PayloadLoaded", ""),
        Condition("ClusterVersionUpgradeable", "True" if ever else "Unknown", "FromClusterVersion"),
    )
