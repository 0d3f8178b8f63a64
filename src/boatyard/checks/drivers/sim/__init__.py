"""Checks of a simulated cluster: one per file, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boatyard.checks.drivers.sim import api, names, nodes, version, workload
from boatyard.checks.port import Subject
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Outcome, Waiting
from boatyard.twin.calls import TwinCalls

QUESTIONS = {
    "names": names.ask,
    "api": api.ask,
    "version": version.ask,
    "nodes": nodes.ask,
    "workload": workload.ask,
}


class SimChecks:
    """Looks at the twin from outside, as a person with kubectl and dig would."""

    needs_kubeconfig = False

    def __init__(self, twin: TwinCalls, hub: str) -> None:
        self._twin = twin
        self._hub = hub

    def names(self) -> Sequence[str]:
        return tuple(QUESTIONS)

    async def check_ready(self) -> None:
        await self._ask_twin("ping")

    async def ask(self, name: str, subject: Subject) -> Outcome:
        if name not in QUESTIONS:
            raise Refused(f"no question {name!r}; there are {', '.join(QUESTIONS)}")
        facts = await self._ask_twin("cluster", cluster_key=subject.cluster_key)
        match facts["mood"]:
            case "stuck":
                return Waiting("The cluster does not answer as it should.", reason="Stuck")
            case "refused":
                raise Refused("the simulated cluster will never pass this question")
            case "unavailable":
                raise Unavailable("the simulated cluster could not be asked")
        return await QUESTIONS[name](self._ask_twin, subject, facts)

    async def close(self) -> None:
        return None

    async def _ask_twin(self, verb: str, **args: Any) -> Any:
        return await self._twin.call(f"checks.{verb}", hub=self._hub, **args)
