"""Does a small workload run on the cluster? It is created as a tenant's would be, and removed."""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.checks.drivers.kube.check_job import CheckJob, run_check_job
from boatyard.kube.client import KubeObject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_workload(context: CheckContext) -> Outcome:
    if not context.subject.slots:
        return Done()  # a cluster without nodes runs nothing, and was ordered so
    trial = CheckJob(
        name="boatyard-check-workload",
        namespace="default",  # exists in every cluster; a namespace of our own would have to be removed too
        image=context.settings.image,
        find_problem=_find_problem,
    )
    return await run_check_job(context, trial)


def _find_problem(job: KubeObject, pods: Sequence[KubeObject]) -> Waiting | None:
    if not pods:
        return Waiting("The test workload is not made.", reason="WorkloadNotMade")
    if any(_has_run(pod) for pod in pods):
        return None
    for pod in pods:
        problem = _find_pod_problem(pod)
        if problem is not None:
            return problem
    return Waiting("The test workload does not run yet.", reason="WorkloadNotRunning")


def _has_run(pod: KubeObject) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return True
    ready = [
        condition for condition in status.get("conditions") or () if condition["type"] == "Ready"
    ]
    return status.get("phase") == "Running" and any(
        condition["status"] == "True" for condition in ready
    )


def _find_pod_problem(pod: KubeObject) -> Waiting | None:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            why = str(condition.get("message") or "").partition(". ")[0].rstrip(".")
            return Waiting(
                f"No node takes the test workload: {why}.", reason="WorkloadNotScheduled"
            )
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        if ((state.get("waiting") or {}).get("reason")) in _IMAGE_ERRORS:
            return Waiting("The image of the test workload cannot be had.", reason="WorkloadImage")
        if "terminated" in state:
            return Waiting("The test workload does not stay up.", reason="WorkloadFails")
    return None


_IMAGE_ERRORS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
