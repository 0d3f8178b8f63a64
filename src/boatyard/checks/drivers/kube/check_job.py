"""A test Job that is created, judged and removed again. Used by checks that must run something to get an answer.

All state between two calls is on the Job itself, so any process may make the next call. When nobody calls again, the
Job's deadline ends it and the cluster removes it a minute later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.kube.client import KubeClient, KubeObject
from boatyard.kube.kinds import EVENTS, JOBS, PODS
from boatyard.model.errors import Conflict, Exists, NotFound, Refused
from boatyard.model.outcome import Done, Outcome, Waiting

CHECK_LABEL = "boatyard.io/check"
_PASSED_ANNOTATION = "boatyard.io/check-passed"
_POLL_SECONDS = 0.1
_TTL_SECONDS = 60  # after its end, so that it can be read
_TERMINATION_SECONDS = 1


@dataclass(frozen=True)
class CheckJob:
    """The Job to run. `judge` gets the Job and its pods and returns None when they are good, else what is missing."""

    name: str
    namespace: str
    image: str
    find_problem: Callable[[KubeObject, Sequence[KubeObject]], Waiting | None]
    node_labels: dict[str, str] | None = None


async def run_check_job(context: CheckContext, trial: CheckJob) -> Outcome:
    """Creates the Job or finds it, judges it, and removes it. Done once it was good and nothing of it is left."""
    loop = asyncio.get_running_loop()
    end = loop.time() + context.settings.trial_seconds
    while True:
        outcome, settled = await _advance_job(context, trial)
        if settled or loop.time() >= end:
            return outcome
        await asyncio.sleep(_POLL_SECONDS)


async def _advance_job(context: CheckContext, trial: CheckJob) -> tuple[Outcome, bool]:
    """Makes one step. Returns the answer as of now, and whether it is final for this call."""
    client = context.client
    try:
        job = await client.get(JOBS, trial.name, trial.namespace)
    except NotFound:
        return await _create_job(context, trial)
    metadata = job["metadata"]
    if (metadata.get("labels") or {}).get(CHECK_LABEL) != trial.name:
        return Waiting(f"Another Job has the name {trial.name}.", reason="NameTaken"), True
    pods = await _pods(client, trial)
    if _PASSED_ANNOTATION in (metadata.get("annotations") or {}):
        return await _remove_job(client, trial, job, pods)
    # Pods of an earlier Job may still be terminating.
    own_pods = [pod for pod in pods if _get_owner_uid(pod) == metadata["uid"]]
    problem = trial.find_problem(job, own_pods)
    if problem is None:
        # Parallelism 0 stops its pods and lets the deadline run on; suspending the Job would stop that clock.
        patch = {
            "metadata": {"annotations": {_PASSED_ANNOTATION: "true"}},
            "spec": {"parallelism": 0},
        }
        await client.merge_patch(JOBS, trial.name, patch, trial.namespace)
        return _REMOVING, False
    refusal = "" if own_pods else await _refusal(client, trial, job)
    if refusal or _has_ended(job):
        await _delete_job(client, trial, job)  # the next call creates a new one
        return (Waiting(refusal, reason="WorkloadRefused") if refusal else problem), True
    return problem, False


_REMOVING = Waiting("The test workload is being removed.", reason="WorkloadLeaving")


async def _create_job(context: CheckContext, trial: CheckJob) -> tuple[Outcome, bool]:
    try:
        job = await context.client.create(JOBS, _job(context, trial), trial.namespace)
    except Exists:
        return _REMOVING, False  # another process runs the same check
    except (NotFound, Refused) as error:
        why = f"The test workload is refused: {error}"
        return Waiting(why, reason="WorkloadRefused"), True
    return trial.find_problem(job, ()) or _REMOVING, False


async def _remove_job(
    client: KubeClient, trial: CheckJob, job: KubeObject, pods: Sequence[KubeObject]
) -> tuple[Outcome, bool]:
    if (job.get("status") or {}).get("active"):
        return _REMOVING, False  # the Job's controller deletes its pods
    remaining_pods = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    for pod in remaining_pods:
        metadata = pod["metadata"]
        await client.delete(PODS, metadata["name"], trial.namespace, uid=metadata["uid"])
    if pods:
        return _REMOVING, False
    await _delete_job(client, trial, job)
    try:
        await client.get(JOBS, trial.name, trial.namespace)
    except NotFound:
        return Done(), True
    return _REMOVING, False


async def _delete_job(client: KubeClient, trial: CheckJob, job: KubeObject) -> None:
    uid = job["metadata"]["uid"]
    try:
        await client.delete(JOBS, trial.name, trial.namespace, uid=uid, propagation="Background")
    except Conflict:
        return  # it is another one by now


async def _pods(client: KubeClient, trial: CheckJob) -> list[KubeObject]:
    return (await client.list(PODS, trial.namespace, labels=f"{CHECK_LABEL}={trial.name}")).items


def _get_owner_uid(pod: KubeObject) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


async def _refusal(client: KubeClient, trial: CheckJob, job: KubeObject) -> str:
    """Why the cluster refuses to create the pod (a quota, a policy). The Job's controller reports it in events only."""
    fields = f"involvedObject.uid={job['metadata']['uid']},reason=FailedCreate"
    events = (await client.list(EVENTS, trial.namespace, fields=fields)).items
    if not events:
        return ""
    message = str(
        max(events, key=lambda event: str(event.get("lastTimestamp"))).get("message") or ""
    )
    # Each pod has a new name; the sentence must stay the same while the cause does.
    return f"The test workload is refused: {re.sub(rf'{trial.name}-[a-z0-9]+', trial.name, message)[:300]}"


def _has_ended(job: KubeObject) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    final_types = ("Complete", "Failed")
    return any(
        condition["type"] in final_types and condition["status"] == "True"
        for condition in conditions
    )


def _job(context: CheckContext, trial: CheckJob) -> dict[str, Any]:
    labels = {CHECK_LABEL: trial.name}
    # What the strictest Pod Security Standard requires of a container.
    security_context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "main",
        "image": trial.image,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": security_context,
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"cpu": "100m", "memory": "32Mi"},
        },
    }
    pod = {
        "containers": [container],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "nodeSelector": trial.node_labels or {},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "metadata": {"name": trial.name, "labels": labels},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "activeDeadlineSeconds": context.settings.trial_deadline,
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
