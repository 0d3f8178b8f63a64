"""Do the cluster's own components work: etcd, a controller manager, a scheduler?

Several replicas elect a leader and leave a Lease, a single one leaves nothing to look at. So the check tries them: a
controller creates a pod that fits no node and a scheduler considers it, whoever they are, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.checks.drivers.kube.check_job import CheckJob, run_check_job
from boatyard.kube.client import KubeObject
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Outcome, Waiting

_UNMATCHED_NODE_LABELS = {"boatyard.io/no-such-node": "true"}


async def check_components(context: CheckContext) -> Outcome:
    try:
        await context.client.get_text("/readyz/etcd")
    except Unavailable as error:
        if error.reason != "Unavailable":
            raise
        return Waiting("The cluster's store is not healthy.", reason="EtcdNotHealthy")
    trial = CheckJob(
        name="boatyard-check-components",
        namespace="kube-system",  # policies of tenants rarely apply there
        image=context.settings.image,
        find_problem=_find_problem,
        node_labels=_UNMATCHED_NODE_LABELS,
    )
    return await run_check_job(context, trial)


def _find_problem(job: KubeObject, pods: Sequence[KubeObject]) -> Waiting | None:
    if not pods:
        return Waiting("No controller manager acts.", reason="ControllerManagerSilent")
    for pod in pods:
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if any(condition["type"] == "PodScheduled" for condition in conditions):
            return None
    return Waiting("No scheduler acts.", reason="SchedulerSilent")
