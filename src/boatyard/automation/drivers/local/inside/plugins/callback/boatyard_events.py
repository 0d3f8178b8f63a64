"""Reports what Ansible does: one JSON line per event, to a descriptor of the supervisor."""

from __future__ import annotations

import json
import os
import signal

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: boatyard_events
    type: stdout
    short_description: events for Boatyard
    description: One JSON line per event, written to the descriptor named by BOATYARD_EVENTS_FD.
"""

LONGEST_TEXT = 16_000
LONGEST_FACTS = 128 * 1024
MOST_ITEMS = 20
_ALWAYS = ("changed", "failed")
DIES_AT = "BOATYARD_DIES_AT"  # set by `template test`: the run is killed as it reaches this task


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "boatyard_events"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._fd = None
        self._tasks = 0

    def _tell(self, kind, **fields):
        if self._fd is None:  # not at import: the warm server has none
            self._fd = int(os.environ["BOATYARD_EVENTS_FD"])
            os.set_inheritable(self._fd, False)
        data = json.dumps({"kind": kind, **fields}).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]

    def _arrive(self):
        """Counts the tasks, and the end as one more; kills this process at the one that DIES_AT names."""
        self._tasks += 1
        if os.environ.get(DIES_AT) == str(self._tasks):
            os.kill(os.getpid(), signal.SIGKILL)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._tell("task", task=_task(task))
        self._arrive()

    def v2_playbook_on_handler_task_start(self, task):
        self._tell("task", task=_task(task))
        self._arrive()

    def v2_runner_on_ok(self, result):
        kind = "changed" if result.result.get("changed") else "ok"
        text = _words(result.result, ok=True)
        if not text and "var" in result.task.args and result.task.action.endswith("debug"):
            variables = {
                name: value for name, value in result.result.items() if name not in _ALWAYS
            }
            text = json.dumps(variables, default=str)[:LONGEST_TEXT]
        self._tell(kind, task=_name(result), text=text)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        text = _words(result.result)
        self._tell("failed", task=_name(result), text=text, ignored=bool(ignore_errors))

    def v2_runner_on_unreachable(self, result):
        self._tell("failed", task=_name(result), text=_words(result.result))

    def v2_runner_on_skipped(self, result):
        self._tell("skipped", task=_name(result))

    def v2_runner_retry(self, result):
        attempts, most = result.result.get("attempts"), result.result.get("retries")
        self._tell("output", task=_name(result), text=f"not yet: {attempts} of {most} tries")

    def v2_playbook_on_stats(self, stats):
        self._arrive()
        facts = {}
        for host_facts in stats.custom.values():
            facts.update(host_facts)
        texts = {str(name): _plain(value) for name, value in facts.items()}
        if sum(len(name) + len(value) for name, value in texts.items()) > LONGEST_FACTS:
            self._tell("facts", facts={}, too_many=True)
        else:
            self._tell("facts", facts=texts)


def _name(result):
    return _task(result.task)


def _task(task):
    """The name of the task as its author wrote it, without the role in front."""
    return str(task.name or task.action).strip()


def _plain(value):
    return str(value) if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


def _words(result, ok=False):
    """The messages of the task, shortened. For a failed loop, those of the failed items."""
    items = [item for item in result.get("results") or [] if isinstance(item, dict)]
    if items and not ok:
        texts = [_one(item) for item in items if item.get("failed")][:MOST_ITEMS]
        return "\n".join(texts)[:LONGEST_TEXT] or _one(result)
    return _one(result, ok=ok)


def _one(result, ok=False):
    parts = [result.get("msg", "")]
    if not ok:
        parts += [result.get("stderr", ""), result.get("module_stderr", "")]
        parts += [result.get("module_stdout", ""), result.get("reason", "")]
    texts = []
    for part in parts:
        text = part if isinstance(part, str) else _plain(part)
        if text.strip() and text not in texts:
            texts.append(text.strip())
    return "\n".join(texts)[:LONGEST_TEXT]
