"""Lets a hub's automation create the control planes of its platform. Put between the two by `driver_factory.py`."""

from __future__ import annotations

from boatyard.automation.port import RUN_FAILED, Automation, RunSpec
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome
from boatyard.platforms.drivers.hosted.cluster_automation import AutomationJob

CREATE, DELETE = "create-hosted-cluster", "delete-hosted-cluster"


class AutomatedClusters:
    """One run per cluster: a later request replaces an earlier one."""

    def __init__(self, automation: Automation) -> None:
        self.automation = automation

    async def check_ready(self) -> None:
        await self.automation.check_ready()

    async def create(self, key: str, job: AutomationJob) -> Outcome:
        return await self._ensure_run(key, CREATE, job)

    async def delete(self, key: str, job: AutomationJob) -> Outcome:
        try:
            return await self._ensure_run(key, DELETE, job)
        except Refused as error:
            if error.reason != RUN_FAILED:
                raise
            # The author of a deletion cannot correct anything; it is retried until its time is up.
            raise Unavailable(str(error), reason=RUN_FAILED) from error

    async def forget(self, key: str) -> None:
        await self.automation.release_run(run_key(key))

    async def _ensure_run(self, key: str, action: str, job: AutomationJob) -> Outcome:
        request = RunSpec(
            action=action,
            template="",  # the playbooks are the automation's own
            attempt=job.number,
            order=job.order,
            values={"manifests": list(job.manifests)},
        )
        try:
            return await self.automation.ensure_run(run_key(key), request)
        except Refused as error:
            if error.reason == RUN_FAILED:
                await self.forget(key)  # reported once; the next request starts a new run
            raise


def run_key(cluster_key: str) -> str:
    return f"{cluster_key}/run"
