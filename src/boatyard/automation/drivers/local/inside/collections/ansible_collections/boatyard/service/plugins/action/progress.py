"""Writes one line to the log of the run, which users can follow."""

from __future__ import annotations

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False
    _VALID_ARGS = frozenset({"message"})

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        message = self._task.args.get("message")
        if not isinstance(message, str) or set(self._task.args) - self._VALID_ARGS:
            return {**result, "failed": True, "msg": "message: one line of text is wanted"}
        return {**result, "changed": False, "msg": message}
