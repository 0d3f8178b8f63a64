"""Do the cluster's own components work: etcd, a controller manager, a scheduler?

Several replicas elect a leader and leave a Lease, a single one leaves nothing to look at. So the check tries them: a
controller creates a pod that fits no node and a scheduler considers it, whoever they are, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from boatyard.checks.drivers.kube.asking import Asking
from boatyard.checks.drivers.kube.trial import Trial, carry_out
from boatyard.kube.client import Object
from boatyard.model.errors import Unavailable
from boatyard.model.outcome import Outcome, Waiting

_NOWHERE = {"boatyard.io/no-such-node": "true"}


async def ask(context: Asking) -> Outcome:
    try:
        await context.client.text("/readyz/etcd")
    except Unavailable as error:
        if error.reason != "Unavailable":
            raise
        return Waiting("The cluster's store is not healthy.", reason="EtcdNotHealthy")
    trial = Trial(
        name="boatyard-check-components",
        namespace="kube-system",  # policies of tenants rarely apply there
        image=context.manner.image,
        judge=_judge,
        node_labels=_NOWHERE,
    )
    return await carry_out(context, trial)


def _judge(job: Object, pods: Sequence[Object]) -> Waiting | None:
    if not pods:
        return Waiting("No controller manager acts.", reason="ControllerManagerSilent")
    for pod in pods:
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if any(condition["type"] == "PodScheduled" for condition in conditions):
            return None
    return Waiting("No scheduler acts.", reason="SchedulerSilent")
