"""Decides whether a HostedCluster's spec is accepted: the conditions that only its author can fix. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    Condition,
    find_condition,
    generation_of,
    inside,
    moment,
    status_of,
)
from boatyard.fakes.hypershift.observation import Manner, Seen
from boatyard.fakes.hypershift.releases import Release, read_release, why_not_this_release
from boatyard.fakes.hypershift.validation import problems_of_cluster
from boatyard.fakes.hypershift.writes import earliest

LOOK_AGAIN = 1.0  # seconds until a missing Secret is read again: Secrets are not watched


@dataclass(frozen=True)
class Verdict:
    """The conditions about a cluster's input. While `blocked`, nothing new begins and nothing running ends."""

    conditions: tuple[Condition, ...]
    release: Release | None
    look_at: float | None = None

    @property
    def blocked(self) -> Condition | None:
        return next((condition for condition in self.conditions if not condition.true), None)


def judge(snapshot: Seen, settings: Manner, now: float) -> Verdict:
    assert snapshot.cluster is not None
    active, resume_time = reconciliation_active(snapshot.cluster, now)
    secrets = _secret_problems(snapshot)
    release = settings.release(snapshot.cluster)
    conditions = (
        active,
        _valid_configuration(snapshot.cluster, secrets.get("sshKey", "")),
        _supported(snapshot.cluster, settings),
        _valid_release(snapshot, settings, release, secrets.get("pullSecret", "")),
    )
    next_check = earliest(resume_time, now + LOOK_AGAIN if secrets else None)
    return Verdict(conditions, release, next_check)


def needs_inputs(cluster: Object) -> bool:
    """Whether the Secrets in the cluster's spec must be read: once per spec, until they are right."""
    for kind in ("ValidConfiguration", "ValidReleaseImage"):
        condition = find_condition(status_of(cluster).get("conditions") or [], kind)
        if condition is None or condition.get("status") != "True":
            return True
        if condition.get("observedGeneration") != generation_of(cluster):
            return True
    return False


def completed_release(cluster: Object, settings: Manner) -> Release | None:
    """The newest release that the control plane has fully rolled out."""
    for entry in inside(status_of(cluster), "version", "history") or []:
        if entry.get("state") == "Completed":
            return read_release(entry.get("image") or "", settings.control.releases)
    return None


def reconciliation_active(thing: Object, now: float) -> tuple[Condition, float | None]:
    """Whether a HostedCluster or NodePool is paused, and until when."""
    paused_until = inside(thing, "spec", "pausedUntil")
    resume_time = moment(paused_until)
    if paused_until == "true" or (resume_time is not None and resume_time > now):
        message = (
            "until the field is removed" if paused_until == "true" else f"until {paused_until}"
        )
        return _said("ReconciliationActive", False, "ReconciliationPaused", message), resume_time
    if paused_until and resume_time is None and paused_until != "false":
        message = f"spec.pausedUntil: {paused_until!r} is neither a time nor true"
        return _said("ReconciliationActive", True, "InvalidPausedUntilValue", message), None
    return _said("ReconciliationActive", True, "AsExpected", "Reconciliation is active"), None


def _said(kind: str, good: bool, reason: str, message: str) -> Condition:
    return Condition(kind, "True" if good else "False", reason, message)


def _valid_configuration(cluster: Object, secret: str) -> Condition:
    problems = problems_of_cluster(cluster)
    if secret:
        problems.append(secret)
    if problems:
        return _said("ValidConfiguration", False, "InvalidConfiguration", "; ".join(problems))
    return _said("ValidConfiguration", True, "AsExpected", "The configuration is valid")


def _supported(cluster: Object, settings: Manner) -> Condition:
    faults = settings.faults("HostedCluster", cluster)
    if "unsupported" in faults:
        reason = faults.text("unsupported", "UnsupportedHostedCluster")
        return _said("SupportedHostedCluster", False, reason, "not supported on this hub")
    return _said("SupportedHostedCluster", True, "AsExpected", "The cluster is supported here")


def _valid_release(
    snapshot: Seen, settings: Manner, release: Release | None, secret: str
) -> Condition:
    if secret:
        return _said("ValidReleaseImage", False, "SecretNotFound", secret)
    assert snapshot.cluster is not None
    image = inside(snapshot.cluster, "spec", "release", "image")
    if release is None:
        message = f"{image} tells no version: use a tag such as :4.18.2-multi"
        return _said("ValidReleaseImage", False, "InvalidImage", message)
    problem = why_not_this_release(
        release, snapshot.supported, completed_release(snapshot.cluster, settings)
    )
    if problem:
        return _said("ValidReleaseImage", False, "InvalidImage", problem)
    return _said("ValidReleaseImage", True, "AsExpected", f"{image} is {release.version}")


def _secret_problems(snapshot: Seen) -> dict[str, str]:
    """Problems of the Secrets that were read, by the field that names the Secret."""
    problems = {}
    for field, key in (("pullSecret", ".dockerconfigjson"), ("sshKey", "id_rsa.pub")):
        name = inside(snapshot.cluster, "spec", field, "name")
        if not name or name not in snapshot.given:
            continue
        keys = snapshot.given[name]
        if keys is None:
            problems[field] = f"spec.{field}: there is no Secret {name}"
        elif key not in keys:
            problems[field] = f"spec.{field}: Secret {name} has no key {key}"
    return problems
