"""Reports facts to Boatyard: every argument of the task is one."""

from __future__ import annotations

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        facts = dict(self._task.args)
        if not facts:
            return {**result, "failed": True, "msg": "name at least one fact"}
        stats = {"data": facts, "per_host": False, "aggregate": False}
        return {**result, "changed": False, "ansible_stats": stats}
