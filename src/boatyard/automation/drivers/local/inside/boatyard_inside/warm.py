"""Imports Ansible and prepares it to be forked, so that a run starts in a fraction of the time of ansible-playbook.

A rehearsal runs one small playbook, so that plugins are found and loaded; then the global state that it set is reset.
The content of templates is never loaded here: only the forked process reads it, after it has dropped all rights.
"""

from __future__ import annotations

import copy
import gc
import importlib
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from boatyard_inside.confine import EVENTS_FD
from boatyard_inside.plans import Plan

OURS = "boatyard.service."
_ASKING = "ansible_collections.boatyard.service.plugins.plugin_utils.steps"
_ROLE = {
    "meta/argument_specs.yml": (
        "argument_specs: {main: {options: {a: {type: str}, b: {type: dict, options: {c: {type: int}}}}}}"
    ),
    "defaults/main.yml": "d: '{{ a }}'",
    "tasks/main.yml": """
- debug: {msg: "{{ a }} {{ d | default('x') | to_json }}"}
- set_fact: {e: "{{ [1, 2] | map('string') | join(',') }}"}
- assert: {that: [e is defined, b.c == 1]}
- set_stats: {data: {f: "{{ lookup('ansible.builtin.vars', 'a') }}"}}
- boatyard.service.facts: {g: "{{ e }}"}
- boatyard.service.progress: {message: hello}
- debug: {msg: "{{ item }}"}
  loop: [1]
  when: a is defined
""",
}
_PLAY = """[{hosts: localhost, gather_facts: false, vars: !unsafe {? "a" : "x", ? "b" : {? "c" : 1}},
  tasks: [{import_role: {name: r}}]}]"""


def warm_up() -> None:
    """Imports Ansible and runs the rehearsal, in a directory that is removed afterwards."""
    home = tempfile.mkdtemp(prefix="boatyard-rehearsal-")
    try:
        os.environ["HOME"] = home
        # Imported here: HOME and the configuration are read at import.
        from ansible.cli.playbook import PlaybookCLI

        arguments = _write_rehearsal(home)
        events = os.open(os.devnull, os.O_WRONLY)
        os.environ[EVENTS_FD] = str(events)
        code = PlaybookCLI(arguments).run()
        if code:
            raise RuntimeError(f"the rehearsal ended with code {code}")
        os.close(events)
        # Tasks that request steps cannot be rehearsed without a server. Their module loads TLS, which is slow.
        importlib.import_module(_ASKING)
        _reset()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _write_rehearsal(home: str) -> list[str]:
    files = {f"project/roles/r/{path}": text for path, text in _ROLE.items()}
    files["project/play.yml"] = _PLAY
    files["inventory"] = "localhost ansible_connection=local\n"
    for path, text in files.items():
        full_path = os.path.join(home, path)
        os.makedirs(os.path.dirname(full_path), exist_ok=True)
        with open(full_path, "w", encoding="utf-8") as file:
            file.write(text)
    return ["ansible-playbook", "-i", f"{home}/inventory", f"{home}/project/play.yml"]


def _reset() -> None:
    """Resets what Ansible sets once per process and each run must set for itself."""
    from ansible import context
    from ansible.parsing.vault import VaultSecretsContext
    from ansible.plugins.loader import get_all_plugin_loaders
    from ansible.plugins.vars import host_group_vars
    from ansible.utils.collection_loader import AnsibleCollectionConfig
    from ansible.utils.context_objects import CLIArgs, GlobalCLIArgs
    from ansible.utils.display import Display

    GlobalCLIArgs._Singleton__instance = None
    context.CLIARGS = CLIArgs({})
    VaultSecretsContext._current = None
    AnsibleCollectionConfig.playbook_paths = []
    for cache in (host_group_vars.FOUND, host_group_vars.NAK, host_group_vars.CANONICAL_PATHS):
        cache.clear()
    for _, loader in get_all_plugin_loaders():
        _forget_rehearsal(loader)
    display = Display()
    for name in ("_warns", "_errors", "_deprecations"):
        if isinstance(messages := getattr(display, name, None), dict):
            messages.clear()


def _forget_rehearsal(loader: object) -> None:
    """Removes the rehearsal's folders from the plugin search path."""
    remaining = [path for path in loader._extra_dirs if "boatyard-rehearsal-" not in str(path)]  # type: ignore[attr-defined]
    if len(remaining) != len(loader._extra_dirs):  # type: ignore[attr-defined]
        loader._extra_dirs[:] = remaining  # type: ignore[attr-defined]
        loader._paths = None  # type: ignore[attr-defined]


def run_playbook(plan: Plan) -> NoReturn:
    """Called in the forked, confined process: does what ansible-playbook does after its imports."""
    from ansible import constants
    from ansible.cli.playbook import PlaybookCLI

    # True: the rehearsal configured it with the same settings. Collections beside the playbook are still found.
    warnings.filterwarnings("ignore", message="AnsibleCollectionFinder has already been configured")
    _run_ours_in_place()
    gc.set_threshold(50_000)  # a run is short, and looking for garbage unshares memory
    random.seed()  # otherwise every fork has the same random numbers
    home = os.environ["HOME"]
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    constants.ANSIBLE_HOME = f"{home}/.ansible"
    os.makedirs(f"{home}/.ansible/tmp", mode=0o700, exist_ok=True)
    constants.DEFAULT_LOCAL_TMP = tempfile.mkdtemp(
        prefix="ansible-local-", dir=f"{home}/.ansible/tmp"
    )
    tempfile.tempdir = None
    code = 250
    try:
        # The first four are the interpreter, its flags and the program.
        PlaybookCLI.cli_executor(["ansible-playbook", *plan.argv[4:]])
    except SystemExit as exit_request:
        code = exit_request.code if isinstance(exit_request.code, int) else 1
    finally:
        _flush(sys.stdout.flush)
        _flush(sys.stderr.flush)
        # os._exit: the exit handlers that the server registered must not run here.
        os._exit(code)


def _run_ours_in_place() -> None:
    """Makes Ansible run tasks of our own action plugins in this process, without a worker.

    Ansible forks for every task, which takes longer than such a task itself. They work on copies, as in a fork.
    """
    from ansible._internal._task import TaskContext
    from ansible.executor.process.worker import WorkerProcess
    from ansible.executor.task_executor import TaskExecutor
    from ansible.executor.task_result import _RawTaskResult

    original_start = WorkerProcess.start

    def start(worker: Any) -> None:
        task = worker._task
        if not str(task.resolved_action or "").startswith(OURS) or task.loop or task.until:
            original_start(worker)
            return
        task, host = task.copy(), copy.copy(worker._host)
        with TaskContext(task):
            result = TaskExecutor(
                worker._host,
                task,
                worker._task_vars,
                worker._play_context.copy(),
                worker._loader,
                worker._shared_loader_obj,
                worker._final_q,
                worker._variable_manager,
            ).run()
        host.vars, host.groups = {}, []
        worker._final_q.send_task_result(
            _RawTaskResult(host=host, task=task, return_data=result, task_fields=task.dump_attrs())
        )

    WorkerProcess.start = start


def _flush(flush: Callable[[], None]) -> None:
    try:
        flush()
    except (OSError, ValueError):
        return
