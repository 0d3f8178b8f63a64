"""Decides about a HostedCluster that is not deleted: writes, and the next check. Pure; called by `decide`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from boatyard.fakes.hypershift.acceptance import Verdict, judge
from boatyard.fakes.hypershift.faults import Planted
from boatyard.fakes.hypershift.kinds import CLUSTERS, NAMESPACES
from boatyard.fakes.hypershift.names import (
    FINALIZER,
    HOSTED,
    Object,
    kubeconfig_secret,
    password_secret,
)
from boatyard.fakes.hypershift.objects import (
    Condition,
    conditions_of,
    deleted_at,
    generation_of,
    name_of,
    short_hash,
    spec_of,
    status_of,
    true_since,
    uid_of,
    write_conditions,
)
from boatyard.fakes.hypershift.observation import Manner, Seen
from boatyard.fakes.hypershift.pace import Pace
from boatyard.fakes.hypershift.published import (
    endpoint,
    has_password,
    publish_kubeconfig,
    publish_password,
)
from boatyard.fakes.hypershift.rollout import Rollout, roll_out
from boatyard.fakes.hypershift.writes import (
    Change,
    Create,
    Decision,
    Report,
    Write,
    add_finalizer,
    earliest,
)

LONGEST_NAME = 57  # so that an infra id, with its suffix, fits into a label


@dataclass(frozen=True)
class Stage:
    """One stage on the way to an available control plane, reported by one condition."""

    condition: str
    delay: str
    awaited: tuple[str, str]  # reason and message until it is reached
    reached: tuple[str, str]


STAGES = (
    Stage(
        "InfrastructureReady",
        "infrastructure",
        ("WaitingOnInfrastructureReady", "The API server is not published yet"),
        ("AsExpected", "The infrastructure is ready"),
    ),
    Stage(
        "EtcdAvailable",
        "etcd",
        ("EtcdWaitingForQuorum", "etcd has no quorum yet"),
        ("QuorumAvailable", "etcd has a quorum"),
    ),
    Stage(
        "KubeAPIServerAvailable",
        "api-server",
        ("WaitingForAvailable", "The API server is not available yet"),
        ("AsExpected", "The API server is available"),
    ),
    Stage(
        "IgnitionEndpointAvailable",
        "ignition",
        ("WaitingForAvailable", "The ignition server is not available yet"),
        ("AsExpected", "The ignition server is available"),
    ),
)


@dataclass(frozen=True)
class Progress:
    """How far a control plane is."""

    conditions: Mapping[str, Condition]
    available_since: float | None
    look_at: float | None

    def reached(self, condition: str) -> bool:
        return self.conditions[condition].true


def play_control_plane(snapshot: Seen, settings: Manner, now: float) -> Decision:
    cluster = snapshot.cluster
    assert cluster is not None
    identity = _identity(cluster)
    if identity is not None:
        return Decision((identity,))
    verdict = judge(snapshot, settings, now)
    faults = settings.faults("HostedCluster", cluster)
    writes: list[Write] = []
    namespace_is_terminating = False
    if verdict.blocked is None and snapshot.namespace is None:
        writes.append(_home(snapshot))
    elif snapshot.namespace is not None and deleted_at(snapshot.namespace) is not None:
        # It belongs to an earlier cluster of the same name, and must be deleted first.
        namespace_is_terminating = True
    progress = _walk(
        cluster,
        faults,
        settings.pace,
        frozen=verdict.blocked is not None or namespace_is_terminating,
        start_time=_begun(cluster, verdict, now),
        now=now,
    )
    rollout = roll_out(
        snapshot,
        verdict.release,
        faults,
        settings.pace,
        blocked=verdict.blocked is not None,
        serving=progress.reached("KubeAPIServerAvailable"),
        available_since=progress.available_since,
        now=now,
    )
    writes += _published(snapshot, settings, progress)
    conditions = _conditions(verdict, progress, rollout, faults)
    status = _status(cluster, verdict, progress, rollout)
    status["conditions"] = write_conditions(
        conditions_of(cluster), conditions, now, generation_of(cluster)
    )
    if status != status_of(cluster):
        writes.append(Report(CLUSTERS, cluster, status))
    return Decision(tuple(writes), earliest(verdict.look_at, progress.look_at, rollout.look_at))


def infra_id(cluster: Object) -> str:
    return str(spec_of(cluster).get("infraID") or "")


def _identity(cluster: Object) -> Change | None:
    """The change that adds the finalizer, and the ids that HyperShift generates when the spec has none."""
    spec = {}
    if not infra_id(cluster):
        spec["infraID"] = f"{name_of(cluster)[:LONGEST_NAME]}-{short_hash(uid_of(cluster))}"
    if not spec_of(cluster).get("clusterID"):
        spec["clusterID"] = uid_of(cluster)
    return add_finalizer(CLUSTERS, cluster, FINALIZER, **({"spec": spec} if spec else {}))


def _home(snapshot: Seen) -> Create:
    metadata = {"labels": {HOSTED: "true"}}
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": snapshot.home, **metadata},
    }
    return Create(NAMESPACES, body, adopt={"metadata": metadata})


def _begun(cluster: Object, verdict: Verdict, now: float) -> float:
    """When work on the control plane began: the time at which all its input became valid."""
    moments = (true_since(cluster, condition.type) for condition in verdict.conditions)
    return max(now if since is None else since for since in moments)


def _walk(
    cluster: Object, faults: Planted, pace: Pace, *, frozen: bool, start_time: float, now: float
) -> Progress:
    broken = _broken(faults)
    conditions: dict[str, Condition] = {}
    next_check: float | None = None
    stage_start, waiting = start_time, frozen
    for stage in STAGES:
        since = true_since(cluster, stage.condition)
        due = stage_start + pace.of(stage.delay, uid_of(cluster)) + faults.slowness
        if stage.condition in broken:
            condition = Condition(stage.condition, "False", *broken[stage.condition])
            waiting = True
        elif since is not None:
            # A stage that was reached stays reached, even if an earlier one breaks.
            condition = Condition(stage.condition, "True", *stage.reached)
            stage_start = max(stage_start, since)
        elif waiting:
            condition = Condition(stage.condition, "Unknown", "StatusUnknown", stage.awaited[1])
        elif now >= due:
            condition = Condition(stage.condition, "True", *stage.reached)
            stage_start = now
        else:
            condition = Condition(stage.condition, "False", *stage.awaited)
            next_check, waiting = due, True
        conditions[stage.condition] = condition
    available, since, due_at = _available(
        cluster,
        conditions,
        stage_start + pace.of("available", uid_of(cluster)) + faults.slowness,
        frozen=frozen,
        now=now,
    )
    conditions["Available"] = available
    return Progress(conditions, since, earliest(next_check, due_at))


def _broken(faults: Planted) -> dict[str, tuple[str, str]]:
    broken = {}
    if "blocked" in faults:
        reason = faults.text("blocked", "InfraStatusFailure")
        broken["InfrastructureReady"] = (reason, "The infrastructure cannot be made ready")
    if "down" in faults:
        outage = ("WaitingForAvailable", "The API server does not answer")
        broken["KubeAPIServerAvailable"] = outage
    return broken


def _available(
    cluster: Object,
    conditions: Mapping[str, Condition],
    due: float,
    *,
    frozen: bool,
    now: float,
) -> tuple[Condition, float | None, float | None]:
    """The condition Available, since when it is True, and when it will become True."""
    failing = next((condition for condition in conditions.values() if not condition.true), None)
    if failing is not None:
        reason = failing.reason if failing.status == "False" else "WaitingForAvailable"
        return Condition("Available", "False", reason, failing.message), None, None
    available = Condition(
        "Available", "True", "AsExpected", "The hosted control plane is available"
    )
    since = true_since(cluster, "Available")
    if since is not None:
        return available, since, None
    if not frozen and now >= due:
        return available, now, None
    message = "Waiting for all components of the control plane"
    waiting = Condition("Available", "False", "WaitingForAvailable", message)
    return waiting, None, None if frozen else due


def _published(snapshot: Seen, settings: Manner, progress: Progress) -> list[Write]:
    assert snapshot.cluster is not None
    status, writes = status_of(snapshot.cluster), list[Write]()
    if progress.reached("KubeAPIServerAvailable") or status.get("kubeconfig"):
        writes += publish_kubeconfig(snapshot, settings)
    if progress.reached("Available") or status.get("kubeadminPassword"):
        writes += publish_password(snapshot, settings)
    return writes


def _conditions(
    verdict: Verdict, progress: Progress, rollout: Rollout, faults: Planted
) -> Iterator[Condition]:
    blocked = verdict.blocked
    yield from verdict.conditions
    good = ("Unknown", "StatusUnknown") if blocked else ("True", "AsExpected")
    yield Condition("ValidHostedControlPlaneConfiguration", *good)
    yield Condition("ReconciliationSucceeded", "True", "AsExpected")
    yield from progress.conditions.values()
    if "degraded" in faults:
        message = "kube-controller-manager has 1 unavailable replica"
        yield Condition("Degraded", "True", "UnavailableReplicas", message)
    else:
        yield Condition("Degraded", "False", "AsExpected", "The control plane is not degraded")
    yield from rollout.conditions
    if blocked is not None:
        yield Condition("Progressing", "False", "Blocked", f"{blocked.type}: {blocked.message}")
    elif rollout.complete:
        yield Condition("Progressing", "False", "AsExpected", "The cluster is at its version")
    else:
        yield Condition("Progressing", "True", "AsExpected", "Working towards its version")


def _status(cluster: Object, verdict: Verdict, progress: Progress, rollout: Rollout) -> Object:
    """The status without conditions. A field that was set once stays."""
    old, name = status_of(cluster), name_of(cluster)
    status: Object = {}
    if rollout.version is not None:
        status["version"] = rollout.version
        if verdict.release is not None and verdict.blocked is None:
            status["payloadArch"] = verdict.release.arch
        elif "payloadArch" in old:
            status["payloadArch"] = old["payloadArch"]
    if progress.reached("InfrastructureReady") or "controlPlaneEndpoint" in old:
        host, port = endpoint(cluster)
        status["controlPlaneEndpoint"] = {"host": host, "port": port}
        oauth, oauth_port = endpoint(cluster, "OAuthServer")
        status["oauthCallbackURLTemplate"] = (
            f"https://{oauth}:{oauth_port}/oauth2callback/[identity-provider-name]"
        )
    if progress.reached("IgnitionEndpointAvailable") or "ignitionEndpoint" in old:
        status["ignitionEndpoint"] = endpoint(cluster, "Ignition")[0]
    if progress.reached("KubeAPIServerAvailable") or "kubeconfig" in old:
        status["kubeconfig"] = {"name": kubeconfig_secret(name)}
    if has_password(cluster) and (progress.reached("Available") or "kubeadminPassword" in old):
        status["kubeadminPassword"] = {"name": password_secret(name)}
    return status
