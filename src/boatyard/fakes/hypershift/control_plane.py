"""Decides about a HostedCluster that is not deleted: writes, and the next check. Pure; called by `decide`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from boatyard.fakes.hypershift.acceptance import AcceptanceVerdict, judge_cluster
from boatyard.fakes.hypershift.credentials import (
    find_endpoint,
    has_password,
    publish_kubeconfig,
    publish_password,
)
from boatyard.fakes.hypershift.faults import PlantedFaults
from boatyard.fakes.hypershift.kinds import CLUSTERS, NAMESPACES
from boatyard.fakes.hypershift.names import (
    FINALIZER,
    HOSTED_LABEL,
    Object,
    kubeconfig_secret,
    password_secret,
)
from boatyard.fakes.hypershift.objects import (
    StatusCondition,
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
from boatyard.fakes.hypershift.rollout import Rollout, compute_rollout
from boatyard.fakes.hypershift.snapshot import FakeSettings, HostedClusterSnapshot
from boatyard.fakes.hypershift.stage_delays import StageDelays
from boatyard.fakes.hypershift.writes import (
    CreateObject,
    Decision,
    PatchObject,
    UpdateStatus,
    Write,
    add_finalizer,
    earliest,
)

MAX_NAME_LENGTH = 57  # so that an infra id, with its suffix, fits into a label


@dataclass(frozen=True)
class ControlPlaneStage:
    """One stage on the way to an available control plane, reported by one condition."""

    condition: str
    delay: str
    waiting_reason: tuple[str, str]  # reason and message until it is reached
    reached_reason: tuple[str, str]


STAGES = (
    ControlPlaneStage(
        "InfrastructureReady",
        "infrastructure",
        ("WaitingOnInfrastructureReady", "The API server is not published yet"),
        ("AsExpected", "The infrastructure is ready"),
    ),
    ControlPlaneStage(
        "EtcdAvailable",
        "etcd",
        ("EtcdWaitingForQuorum", "etcd has no quorum yet"),
        ("QuorumAvailable", "etcd has a quorum"),
    ),
    ControlPlaneStage(
        "KubeAPIServerAvailable",
        "api-server",
        ("WaitingForAvailable", "The API server is not available yet"),
        ("AsExpected", "The API server is available"),
    ),
    ControlPlaneStage(
        "IgnitionEndpointAvailable",
        "ignition",
        ("WaitingForAvailable", "The ignition server is not available yet"),
        ("AsExpected", "The ignition server is available"),
    ),
)


@dataclass(frozen=True)
class ControlPlaneProgress:
    """How far a control plane is."""

    conditions: Mapping[str, StatusCondition]
    available_since: float | None
    next_check: float | None

    def is_reached(self, condition: str) -> bool:
        return self.conditions[condition].is_true


def decide_control_plane(
    snapshot: HostedClusterSnapshot, settings: FakeSettings, now: float
) -> Decision:
    cluster = snapshot.cluster
    assert cluster is not None
    identity = _add_identity(cluster)
    if identity is not None:
        return Decision((identity,))
    verdict = judge_cluster(snapshot, settings, now)
    faults = settings.find_faults("HostedCluster", cluster)
    writes: list[Write] = []
    namespace_is_terminating = False
    if verdict.blocking_condition is None and snapshot.namespace is None:
        writes.append(_create_namespace(snapshot))
    elif snapshot.namespace is not None and deleted_at(snapshot.namespace) is not None:
        # It belongs to an earlier cluster of the same name, and must be deleted first.
        namespace_is_terminating = True
    progress = _walk_stages(
        cluster,
        faults,
        settings.delays,
        frozen=verdict.blocking_condition is not None or namespace_is_terminating,
        start_time=_start_time(cluster, verdict, now),
        now=now,
    )
    rollout = compute_rollout(
        snapshot,
        verdict.release,
        faults,
        settings.delays,
        blocked=verdict.blocking_condition is not None,
        serving=progress.is_reached("KubeAPIServerAvailable"),
        available_since=progress.available_since,
        now=now,
    )
    writes += _publish_credentials(snapshot, settings, progress)
    conditions = _iter_conditions(verdict, progress, rollout, faults)
    status = _make_status(cluster, verdict, progress, rollout)
    status["conditions"] = write_conditions(
        conditions_of(cluster), conditions, now, generation_of(cluster)
    )
    if status != status_of(cluster):
        writes.append(UpdateStatus(CLUSTERS, cluster, status))
    return Decision(
        tuple(writes), earliest(verdict.next_check, progress.next_check, rollout.next_check)
    )


def infra_id(cluster: Object) -> str:
    return str(spec_of(cluster).get("infraID") or "")


def _add_identity(cluster: Object) -> PatchObject | None:
    """The change that adds the finalizer, and the ids that HyperShift generates when the spec has none."""
    spec = {}
    if not infra_id(cluster):
        spec["infraID"] = f"{name_of(cluster)[:MAX_NAME_LENGTH]}-{short_hash(uid_of(cluster))}"
    if not spec_of(cluster).get("clusterID"):
        spec["clusterID"] = uid_of(cluster)
    return add_finalizer(CLUSTERS, cluster, FINALIZER, **({"spec": spec} if spec else {}))


def _create_namespace(snapshot: HostedClusterSnapshot) -> CreateObject:
    metadata = {"labels": {HOSTED_LABEL: "true"}}
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": snapshot.home_namespace, **metadata},
    }
    return CreateObject(NAMESPACES, body, merge_if_exists={"metadata": metadata})


def _start_time(cluster: Object, verdict: AcceptanceVerdict, now: float) -> float:
    """When work on the control plane began: the time at which all its input became valid."""
    moments = (true_since(cluster, condition.type) for condition in verdict.conditions)
    return max(now if since is None else since for since in moments)


def _walk_stages(
    cluster: Object,
    faults: PlantedFaults,
    delays: StageDelays,
    *,
    frozen: bool,
    start_time: float,
    now: float,
) -> ControlPlaneProgress:
    broken = _find_broken_stages(faults)
    conditions: dict[str, StatusCondition] = {}
    next_check: float | None = None
    stage_start, waiting = start_time, frozen
    for stage in STAGES:
        since = true_since(cluster, stage.condition)
        due = stage_start + delays.seconds_for(stage.delay, uid_of(cluster)) + faults.extra_seconds
        if stage.condition in broken:
            condition = StatusCondition(stage.condition, "False", *broken[stage.condition])
            waiting = True
        elif since is not None:
            # A stage that was reached stays reached, even if an earlier one breaks.
            condition = StatusCondition(stage.condition, "True", *stage.reached_reason)
            stage_start = max(stage_start, since)
        elif waiting:
            condition = StatusCondition(
                stage.condition, "Unknown", "StatusUnknown", stage.waiting_reason[1]
            )
        elif now >= due:
            condition = StatusCondition(stage.condition, "True", *stage.reached_reason)
            stage_start = now
        else:
            condition = StatusCondition(stage.condition, "False", *stage.waiting_reason)
            next_check, waiting = due, True
        conditions[stage.condition] = condition
    available, since, due_at = _available_condition(
        cluster,
        conditions,
        stage_start + delays.seconds_for("available", uid_of(cluster)) + faults.extra_seconds,
        frozen=frozen,
        now=now,
    )
    conditions["Available"] = available
    return ControlPlaneProgress(conditions, since, earliest(next_check, due_at))


def _find_broken_stages(faults: PlantedFaults) -> dict[str, tuple[str, str]]:
    broken = {}
    if "blocked" in faults:
        reason = faults.get_text("blocked", "InfraStatusFailure")
        broken["InfrastructureReady"] = (reason, "The infrastructure cannot be made ready")
    if "down" in faults:
        outage = ("WaitingForAvailable", "The API server does not answer")
        broken["KubeAPIServerAvailable"] = outage
    return broken


def _available_condition(
    cluster: Object,
    conditions: Mapping[str, StatusCondition],
    due: float,
    *,
    frozen: bool,
    now: float,
) -> tuple[StatusCondition, float | None, float | None]:
    """The condition Available, since when it is True, and when it will become True."""
    failing = next((condition for condition in conditions.values() if not condition.is_true), None)
    if failing is not None:
        reason = failing.reason if failing.status == "False" else "WaitingForAvailable"
        return StatusCondition("Available", "False", reason, failing.message), None, None
    available = StatusCondition(
        "Available", "True", "AsExpected", "The hosted control plane is available"
    )
    since = true_since(cluster, "Available")
    if since is not None:
        return available, since, None
    if not frozen and now >= due:
        return available, now, None
    message = "Waiting for all components of the control plane"
    waiting = StatusCondition("Available", "False", "WaitingForAvailable", message)
    return waiting, None, None if frozen else due


def _publish_credentials(
    snapshot: HostedClusterSnapshot, settings: FakeSettings, progress: ControlPlaneProgress
) -> list[Write]:
    assert snapshot.cluster is not None
    status, writes = status_of(snapshot.cluster), list[Write]()
    if progress.is_reached("KubeAPIServerAvailable") or status.get("kubeconfig"):
        writes += publish_kubeconfig(snapshot, settings)
    if progress.is_reached("Available") or status.get("kubeadminPassword"):
        writes += publish_password(snapshot, settings)
    return writes


def _iter_conditions(
    verdict: AcceptanceVerdict,
    progress: ControlPlaneProgress,
    rollout: Rollout,
    faults: PlantedFaults,
) -> Iterator[StatusCondition]:
    blocked = verdict.blocking_condition
    yield from verdict.conditions
    good = ("Unknown", "StatusUnknown") if blocked else ("True", "AsExpected")
    yield StatusCondition("ValidHostedControlPlaneConfiguration", *good)
    yield StatusCondition("ReconciliationSucceeded", "True", "AsExpected")
    yield from progress.conditions.values()
    if "degraded" in faults:
        message = "kube-controller-manager has 1 unavailable replica"
        yield StatusCondition("Degraded", "True", "UnavailableReplicas", message)
    else:
        yield StatusCondition(
            "Degraded", "False", "AsExpected", "The control plane is not degraded"
        )
    yield from rollout.conditions
    if blocked is not None:
        yield StatusCondition(
            "Progressing", "False", "Blocked", f"{blocked.type}: {blocked.message}"
        )
    elif rollout.is_complete:
        yield StatusCondition("Progressing", "False", "AsExpected", "The cluster is at its version")
    else:
        yield StatusCondition("Progressing", "True", "AsExpected", "Working towards its version")


def _make_status(
    cluster: Object, verdict: AcceptanceVerdict, progress: ControlPlaneProgress, rollout: Rollout
) -> Object:
    """The status without conditions. A field that was set once stays."""
    old, name = status_of(cluster), name_of(cluster)
    status: Object = {}
    if rollout.version is not None:
        status["version"] = rollout.version
        if verdict.release is not None and verdict.blocking_condition is None:
            status["payloadArch"] = verdict.release.arch
        elif "payloadArch" in old:
            status["payloadArch"] = old["payloadArch"]
    if progress.is_reached("InfrastructureReady") or "controlPlaneEndpoint" in old:
        host, port = find_endpoint(cluster)
        status["controlPlaneEndpoint"] = {"host": host, "port": port}
        oauth, oauth_port = find_endpoint(cluster, "OAuthServer")
        status["oauthCallbackURLTemplate"] = (
            f"https://{oauth}:{oauth_port}/oauth2callback/[identity-provider-name]"
        )
    if progress.is_reached("IgnitionEndpointAvailable") or "ignitionEndpoint" in old:
        status["ignitionEndpoint"] = find_endpoint(cluster, "Ignition")[0]
    if progress.is_reached("KubeAPIServerAvailable") or "kubeconfig" in old:
        status["kubeconfig"] = {"name": kubeconfig_secret(name)}
    if has_password(cluster) and (progress.is_reached("Available") or "kubeadminPassword" in old):
        status["kubeadminPassword"] = {"name": password_secret(name)}
    return status
