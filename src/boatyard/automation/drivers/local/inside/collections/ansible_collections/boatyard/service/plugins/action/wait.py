"""Waits until several requested steps are done."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.asking import Failed
from ansible_collections.boatyard.service.plugins.plugin_utils.steps import (
    AskingAction,
    facts_of,
    known_steps,
)


class ActionModule(AskingAction):
    arguments = frozenset({"timeout", "steps"})

    def asked(self, requests):
        steps = known_steps(self._task.args.get("steps"))
        requested_steps = {step["name"] for step in requests.look()["steps"] if step.get("asked")}
        missing_steps = [step for step in steps if step not in requested_steps]
        if missing_steps:
            raise Failed(
                f"{missing_steps[0]} was not asked for: use boatyard.service.{missing_steps[0]} before"
            )
        run = requests.wait(steps)
        return {"changed": False, "steps": steps, **facts_of(run)}
