"""Waits until several steps that were asked for are done."""

from __future__ import annotations

from ansible_collections.boatyard.service.plugins.plugin_utils.asking import Failed
from ansible_collections.boatyard.service.plugins.plugin_utils.steps import (
    AskingAction,
    facts_of,
    known_steps,
)


class ActionModule(AskingAction):
    arguments = frozenset({"timeout", "steps"})

    def asked(self, asking):
        steps = known_steps(self._task.args.get("steps"))
        asked = {step["name"] for step in asking.look()["steps"] if step.get("asked")}
        never = [step for step in steps if step not in asked]
        if never:
            raise Failed(f"{never[0]} was not asked for: use boatyard.service.{never[0]} before")
        run = asking.wait(steps)
        return {"changed": False, "steps": steps, **facts_of(run)}
