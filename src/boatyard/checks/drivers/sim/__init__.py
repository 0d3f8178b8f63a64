"""Checks of a simulated cluster: one per file, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boatyard.checks.drivers.sim import api, names, nodes, version, workload
from boatyard.checks.port import Subject
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome, Waiting
from boatyard.twin.calls import TwinCalls

CHECKS = {
    "names": names.check_names,
    "api": api.check_api,
    "version": version.check_version,
    "nodes": nodes.check_nodes,
    "workload": workload.check_workload,
}


class SimChecks:
    """Looks at the twin from outside, as a person with kubectl and dig would."""

    needs_kubeconfig = False

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub

    def list_names(self) -> Sequence[str]:
        return tuple(CHECKS)

    async def check_ready(self) -> None:
        await self._query_twin("ping")

    async def run_check(self, name: str, subject: Subject) -> Outcome:
        if name not in CHECKS:
            raise Refused(f"no question {name!r}; there are {', '.join(CHECKS)}")
        facts = await self._query_twin("cluster", cluster_key=subject.cluster_key)
        match facts["mood"]:
            case "stuck":
                return Waiting("The cluster does not answer as it should.", reason="Stuck")
            case "refused":
                raise Refused("the simulated cluster will never pass this question")
            case "unavailable":
                raise Unavailable("the simulated cluster could not be asked")
        return await CHECKS[name](self._query_twin, subject, facts)

    async def close(self) -> None:
        return None

    async def _query_twin(self, verb: str, **args: Any) -> Any:
        return await self._twin.call(f"checks.{verb}", hub=self._hub, **args)
