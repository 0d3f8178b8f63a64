"""Decides whether a HostedCluster's spec is accepted: the conditions that only its author can fix. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
    find_condition,
    generation_of,
    get_nested,
    parse_time,
    status_of,
)
from boatyard.fakes.hypershift.releases import ReleaseImage, find_release_problem, read_release
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot
from boatyard.fakes.hypershift.validation import find_cluster_problems
from boatyard.fakes.hypershift.writes import earliest

SECRET_RETRY_SECONDS = 1.0  # seconds until a missing Secret is read again: Secrets are not watched


@dataclass(frozen=True)
class AcceptanceVerdict:
    """The conditions about a cluster's input. While `blocked`, nothing new begins and nothing running ends."""

    conditions: tuple[StatusCondition, ...]
    release: ReleaseImage | None
    next_check: float | None = None

    @property
    def blocking_condition(self) -> StatusCondition | None:
        return next((condition for condition in self.conditions if not condition.is_true), None)


def judge_cluster(
    snapshot: HostedClusterSnapshot, settings: FakeSettings, now: float
) -> AcceptanceVerdict:
    assert snapshot.cluster is not None
    active, resume_time = reconciliation_condition(snapshot.cluster, now)
    secrets = _find_secret_problems(snapshot)
    release = settings.find_release(snapshot.cluster)
    conditions = (
        active,
        _configuration_condition(snapshot.cluster, secrets.get("sshKey", "")),
        _support_condition(snapshot.cluster, settings),
        _release_condition(snapshot, settings, release, secrets.get("pullSecret", "")),
    )
    next_check = earliest(resume_time, now + SECRET_RETRY_SECONDS if secrets else None)
    return AcceptanceVerdict(conditions, release, next_check)


def needs_inputs(cluster: Object) -> bool:
    """Whether the Secrets in the cluster's spec must be read: once per spec, until they are right."""
    for kind in ("ValidConfiguration", "ValidReleaseImage"):
        condition = find_condition(status_of(cluster).get("conditions") or [], kind)
        if condition is None or condition.get("status") != "True":
            return True
        if condition.get("observedGeneration") != generation_of(cluster):
            return True
    return False


def find_completed_release(cluster: Object, settings: FakeSettings) -> ReleaseImage | None:
    """The newest release that the control plane has fully rolled out."""
    for entry in get_nested(status_of(cluster), "version", "history") or []:
        if entry.get("state") == "Completed":
            return read_release(entry.get("image") or "", settings.control.releases)
    return None


def reconciliation_condition(thing: Object, now: float) -> tuple[StatusCondition, float | None]:
    """Whether a HostedCluster or NodePool is paused, and until when."""
    paused_until = get_nested(thing, "spec", "pausedUntil")
    resume_time = parse_time(paused_until)
    if paused_until == "true" or (resume_time is not None and resume_time > now):
        message = (
            "until the field is removed" if paused_until == "true" else f"until {paused_until}"
        )
        return _make_condition(
            "ReconciliationActive", False, "ReconciliationPaused", message
        ), resume_time
    if paused_until and resume_time is None and paused_until != "false":
        message = f"spec.pausedUntil: {paused_until!r} is neither a time nor true"
        return _make_condition(
            "ReconciliationActive", True, "InvalidPausedUntilValue", message
        ), None
    return _make_condition(
        "ReconciliationActive", True, "AsExpected", "Reconciliation is active"
    ), None


def _make_condition(kind: str, good: bool, reason: str, message: str) -> StatusCondition:
    return StatusCondition(kind, "True" if good else "False", reason, message)


def _configuration_condition(cluster: Object, secret: str) -> StatusCondition:
    problems = find_cluster_problems(cluster)
    if secret:
        problems.append(secret)
    if problems:
        return _make_condition(
            "ValidConfiguration", False, "InvalidConfiguration", "; ".join(problems)
        )
    return _make_condition("ValidConfiguration", True, "AsExpected", "The configuration is valid")


def _support_condition(cluster: Object, settings: FakeSettings) -> StatusCondition:
    faults = settings.find_faults("HostedCluster", cluster)
    if "unsupported" in faults:
        reason = faults.get_text("unsupported", "UnsupportedHostedCluster")
        return _make_condition("SupportedHostedCluster", False, reason, "not supported on this hub")
    return _make_condition(
        "SupportedHostedCluster", True, "AsExpected", "The cluster is supported here"
    )


def _release_condition(
    snapshot: HostedClusterSnapshot,
    settings: FakeSettings,
    release: ReleaseImage | None,
    secret: str,
) -> StatusCondition:
    if secret:
        return _make_condition("ValidReleaseImage", False, "SecretNotFound", secret)
    assert snapshot.cluster is not None
    image = get_nested(snapshot.cluster, "spec", "release", "image")
    if release is None:
        message = f"{image} tells no version: use a tag such as :4.18.2-multi"
        return _make_condition("ValidReleaseImage", False, "InvalidImage", message)
    problem = find_release_problem(
        release, snapshot.supported, find_completed_release(snapshot.cluster, settings)
    )
    if problem:
        return _make_condition("ValidReleaseImage", False, "InvalidImage", problem)
    return _make_condition("ValidReleaseImage", True, "AsExpected", f"{image} is {release.version}")


def _find_secret_problems(snapshot: HostedClusterSnapshot) -> dict[str, str]:
    """Problems of the Secrets that were read, by the field that names the Secret."""
    problems = {}
    for field, key in (("pullSecret", ".dockerconfigjson"), ("sshKey", "id_rsa.pub")):
        name = get_nested(snapshot.cluster, "spec", field, "name")
        if not name or name not in snapshot.input_keys:
            continue
        keys = snapshot.input_keys[name]
        if keys is None:
            problems[field] = f"spec.{field}: there is no Secret {name}"
        elif key not in keys:
            problems[field] = f"spec.{field}: Secret {name} has no key {key}"
    return problems
