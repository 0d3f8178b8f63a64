"""Shared by the runs of all hubs on this machine: Ansible's environment, the directory, the machine's capabilities."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from boatyard.automation.drivers.local.limits import RunLimits, RunRateLimits
from boatyard.automation.drivers.local.run_plan import (
    FIRST_RUN_UID,
    RunCapabilities,
    supervisor_command,
)
from boatyard.automation.drivers.local.run_records import RunRecords
from boatyard.automation.drivers.local.run_slots import RunSlots
from boatyard.automation.drivers.local.run_token import MakeRunToken, refuse_run_token
from boatyard.automation.drivers.local.starters import PlainStarter, Starter
from boatyard.automation.drivers.local.warm_starter import WarmStarter
from boatyard.model.errors import Unavailable

logger = logging.getLogger(__name__)

FindContent = Callable[
    [str], Path
]  # digest → folder of the content: a role, or a project with roles/
PREPARING = "Preparing"
_REMEDY = "allow user namespaces there, or run the worker as root with the right to make namespaces"
_THREAD_COUNT = 32


class LocalRunner:
    """One per process. Its calls block; the drivers make them in threads."""

    def __init__(
        self,
        directory: Path,
        content: FindContent,
        *,
        environment: AnsibleEnvironment | None = None,
        limits: RunLimits = RunLimits(),  # noqa: B008 - a frozen value
        rate_limits: RunRateLimits = RunRateLimits(),  # noqa: B008 - a frozen value
        namespaces: bool = True,  # where the kernel allows them
        users: bool = True,  # where we are root
        warm: bool = True,  # fork from a warm Ansible server where possible
        make_run_token: MakeRunToken = refuse_run_token,  # makes tokens for runs that request steps of their order
    ) -> None:
        self.directory = directory.absolute()
        self.content = content
        self.make_run_token = make_run_token
        self.environment = environment or AnsibleEnvironment()
        self.limits = limits
        self.records = RunRecords(self.directory / "runs")
        self.slots = RunSlots(self.directory / "active", rate_limits)
        self.starter: Starter = WarmStarter(self.directory / "warm.log") if warm else PlainStarter()
        # Not the default executor: a start waits for its content, which is read in a thread of that executor.
        self.threads = ThreadPoolExecutor(_THREAD_COUNT, thread_name_prefix="runs")
        self._requested_isolation = (namespaces, users)
        self._capabilities: RunCapabilities | None = None
        self._setup_thread: threading.Thread | None = None
        self._setup_error: Unavailable | None = None
        self._progress = "an environment for Ansible is being made"
        self._lock = threading.Lock()

    def get_capabilities(self) -> RunCapabilities:
        """What runs can use here. Unavailable, with the progress, while Ansible's environment is being created."""
        with self._lock:
            if self._capabilities is None:
                if not self.environment.is_ready():
                    self._begin_setup()
                self._capabilities = self._detect_capabilities()
            return self._capabilities

    def check_ready(self) -> None:
        """Unavailable when runs cannot be started, even after Ansible's environment is created. Changes nothing."""
        if not self.environment.lock_file.exists():
            raise Unavailable("the list of packages for Ansible is missing", reason="NoAnsible")
        if self._setup_error is not None:
            raise self._setup_error
        if not self.records.directory.is_dir():
            raise Unavailable(f"what is kept of runs is gone: {self.records.directory}")

    def get_isolation_warning(self) -> str:
        """A warning when runs are not fully isolated. Empty otherwise, and while there is no Ansible environment."""
        if not self.environment.is_ready():
            return ""
        try:
            return _describe_missing_isolation(self.get_capabilities())
        except Unavailable as error:
            return str(error)

    def may_lack_namespaces(self) -> bool:
        """Whether runs may be without namespaces: then processes may be left when a supervisor is killed."""
        return self._capabilities is None or not self._capabilities.namespaces

    def close(self) -> None:
        """Refuses new calls; calls under way complete."""
        self.threads.shutdown(wait=False)
        self.starter.close()

    def _begin_setup(self) -> None:
        """Creates the environment in a thread: it takes long. Always raises: the progress or the last failure."""
        if self._setup_thread is None or not self._setup_thread.is_alive():
            failed, self._setup_error = self._setup_error, None
            self._setup_thread = threading.Thread(target=self._set_up_environment, daemon=True)
            self._setup_thread.start()
            if failed is not None:
                raise failed
        raise Unavailable(self._progress, reason=PREPARING)

    def _set_up_environment(self) -> None:
        try:
            self.environment.ensure(self._set_progress)
        except Unavailable as error:
            self._setup_error = error

    def _set_progress(self, line: str) -> None:
        self._progress = f"Ansible is being set up: {line}"

    def _detect_capabilities(self) -> RunCapabilities:
        namespaces, users = self._requested_isolation
        capabilities = RunCapabilities(
            python=self.environment.python,
            playbook=self.environment.playbook,
            namespaces=namespaces and self._allows_namespaces(),
            users=users and os.geteuid() == 0,
        )
        if capabilities.users and not capabilities.namespaces:
            self._check_paths_reachable()
        if warning := _describe_missing_isolation(capabilities):
            logger.warning("runs of roles are not isolated", extra={"why": warning})
        return capabilities

    def _check_paths_reachable(self) -> None:
        """Unavailable when another user cannot reach the paths that a run without its own file system needs."""
        command = [str(self.environment.python), "-I", "-c", "import ansible"]
        user = FIRST_RUN_UID
        try:
            directory = self.records.directory
            process = subprocess.run(command, check=False, user=user, group=user, cwd=directory)
            is_reachable = process.returncode == 0
        except OSError:
            is_reachable = False
        if not is_reachable:
            raise Unavailable(
                "this machine allows no namespaces, and another user cannot reach the directory of runs or "
                "Ansible's environment; put both where others may pass, or run as an ordinary user",
                reason="Unreachable",
            )

    def _allows_namespaces(self) -> bool:
        with tempfile.TemporaryDirectory(dir=self.directory) as folder:
            command = supervisor_command("probe", folder, python=self.environment.python)
            process = subprocess.run(command, check=False, capture_output=True, timeout=30)
        return process.returncode == 0


def _describe_missing_isolation(capabilities: RunCapabilities) -> str:
    if capabilities.namespaces:
        return ""
    if capabilities.users:
        problem = (
            "have no file system of their own: they read what everybody on their machine may read"
        )
    else:
        problem = "are not set apart on their machine: they read all that Boatyard can, keys and tokens included"
    return f"runs of roles {problem}; {_REMEDY}"
