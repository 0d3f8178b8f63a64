"""Whether a HostedCluster is taken on as it is written: the conditions that only its author can mend. Pure."""

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

LOOK_AGAIN = 1.0  # seconds until a Secret that was missing is looked for again: nobody tells of it


@dataclass(frozen=True)
class Verdict:
    """The conditions about a cluster's input. While `blocked`, nothing new is begun and nothing running is ended."""

    conditions: tuple[Condition, ...]
    release: Release | None
    look_at: float | None = None

    @property
    def blocked(self) -> Condition | None:
        return next((one for one in self.conditions if not one.true), None)


def judge(seen: Seen, manner: Manner, now: float) -> Verdict:
    assert seen.cluster is not None
    active, resumes = reconciliation_active(seen.cluster, now)
    secrets = _secret_problems(seen)
    release = manner.release(seen.cluster)
    conditions = (
        active,
        _valid_configuration(seen.cluster, secrets.get("sshKey", "")),
        _supported(seen.cluster, manner),
        _valid_release(seen, manner, release, secrets.get("pullSecret", "")),
    )
    look_at = earliest(resumes, now + LOOK_AGAIN if secrets else None)
    return Verdict(conditions, release, look_at)


def needs_inputs(cluster: Object) -> bool:
    """Whether the Secrets its spec names must be looked at: once per spec, until they are right."""
    for kind in ("ValidConfiguration", "ValidReleaseImage"):
        found = find_condition(status_of(cluster).get("conditions") or [], kind)
        if found is None or found.get("status") != "True":
            return True
        if found.get("observedGeneration") != generation_of(cluster):
            return True
    return False


def completed_release(cluster: Object, manner: Manner) -> Release | None:
    """The newest release that the control plane has fully rolled out."""
    for entry in inside(status_of(cluster), "version", "history") or []:
        if entry.get("state") == "Completed":
            return read_release(entry.get("image") or "", manner.control.releases)
    return None


def reconciliation_active(thing: Object, now: float) -> tuple[Condition, float | None]:
    """Whether a HostedCluster or NodePool is paused, and until when."""
    until = inside(thing, "spec", "pausedUntil")
    ends = moment(until)
    if until == "true" or (ends is not None and ends > now):
        told = "until the field is removed" if until == "true" else f"until {until}"
        return _said("ReconciliationActive", False, "ReconciliationPaused", told), ends
    if until and ends is None and until != "false":
        told = f"spec.pausedUntil: {until!r} is neither a time nor true"
        return _said("ReconciliationActive", True, "InvalidPausedUntilValue", told), None
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


def _supported(cluster: Object, manner: Manner) -> Condition:
    planted = manner.faults("HostedCluster", cluster)
    if "unsupported" in planted:
        reason = planted.text("unsupported", "UnsupportedHostedCluster")
        return _said("SupportedHostedCluster", False, reason, "not supported on this hub")
    return _said("SupportedHostedCluster", True, "AsExpected", "The cluster is supported here")


def _valid_release(seen: Seen, manner: Manner, release: Release | None, secret: str) -> Condition:
    if secret:
        return _said("ValidReleaseImage", False, "SecretNotFound", secret)
    assert seen.cluster is not None
    image = inside(seen.cluster, "spec", "release", "image")
    if release is None:
        told = f"{image} tells no version: use a tag such as :4.18.2-multi"
        return _said("ValidReleaseImage", False, "InvalidImage", told)
    why = why_not_this_release(release, seen.supported, completed_release(seen.cluster, manner))
    if why:
        return _said("ValidReleaseImage", False, "InvalidImage", why)
    return _said("ValidReleaseImage", True, "AsExpected", f"{image} is {release.version}")


def _secret_problems(seen: Seen) -> dict[str, str]:
    """Of the Secrets that were looked at, by the field that names them."""
    found = {}
    for field, key in (("pullSecret", ".dockerconfigjson"), ("sshKey", "id_rsa.pub")):
        name = inside(seen.cluster, "spec", field, "name")
        if not name or name not in seen.given:
            continue
        keys = seen.given[name]
        if keys is None:
            found[field] = f"spec.{field}: there is no Secret {name}"
        elif key not in keys:
            found[field] = f"spec.{field}: Secret {name} has no key {key}"
    return found
