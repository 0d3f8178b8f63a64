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

from boatyard.automation.drivers.local.environment import Environment
from boatyard.automation.drivers.local.limits import Limits, Pace
from boatyard.automation.drivers.local.passes import Passes, no_passes
from boatyard.automation.drivers.local.planning import FIRST_USER, Ground, supervisor
from boatyard.automation.drivers.local.records import Records
from boatyard.automation.drivers.local.starting import PlainStarter, Starter
from boatyard.automation.drivers.local.turns import Turns
from boatyard.automation.drivers.local.warm import WarmStarter
from boatyard.model.errors import Unavailable

logger = logging.getLogger(__name__)

Content = Callable[[str], Path]  # digest → folder of the content: a role, or a project with roles/
PREPARING = "Preparing"
_REMEDY = "allow user namespaces there, or run the worker as root with the right to make namespaces"
_CALLS_AT_ONCE = 32


class Workshop:
    """One per process. Its calls block; the drivers make them in threads."""

    def __init__(
        self,
        directory: Path,
        content: Content,
        *,
        environment: Environment | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
        namespaces: bool = True,  # where the kernel allows them
        users: bool = True,  # where we are root
        warm: bool = True,  # fork from a warm Ansible server where possible
        passes: Passes = no_passes,  # makes tokens for runs that request steps of their order
    ) -> None:
        self.directory = directory.absolute()
        self.content = content
        self.passes = passes
        self.environment = environment or Environment()
        self.limits = limits
        self.records = Records(self.directory / "runs")
        self.turns = Turns(self.directory / "active", pace)
        self.starter: Starter = WarmStarter(self.directory / "warm.log") if warm else PlainStarter()
        # Not the default executor: a start waits for its content, which is read in a thread of that executor.
        self.threads = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="runs")
        self._wish = (namespaces, users)
        self._ground: Ground | None = None
        self._making: threading.Thread | None = None
        self._failed: Unavailable | None = None
        self._progress = "an environment for Ansible is being made"
        self._lock = threading.Lock()

    def ground(self) -> Ground:
        """What runs can use here. Unavailable, with the progress, while Ansible's environment is being created."""
        with self._lock:
            if self._ground is None:
                if not self.environment.is_ready():
                    self._prepare()
                self._ground = self._survey()
            return self._ground

    def check(self) -> None:
        """Unavailable when runs cannot be started, even after Ansible's environment is created. Changes nothing."""
        if not self.environment.lock.exists():
            raise Unavailable("the list of packages for Ansible is missing", reason="NoAnsible")
        if self._failed is not None:
            raise self._failed
        if not self.records.directory.is_dir():
            raise Unavailable(f"what is kept of runs is gone: {self.records.directory}")

    def caution(self) -> str:
        """A warning when runs are not fully isolated. Empty otherwise, and while there is no Ansible environment."""
        if not self.environment.is_ready():
            return ""
        try:
            return _caution(self.ground())
        except Unavailable as error:
            return str(error)

    def ground_is_bare(self) -> bool:
        """Whether runs may be without namespaces: then processes may be left when a supervisor is killed."""
        return self._ground is None or not self._ground.namespaces

    def close(self) -> None:
        """Refuses new calls; calls under way complete."""
        self.threads.shutdown(wait=False)
        self.starter.close()

    def _prepare(self) -> None:
        """Creates the environment in a thread: it takes long. Always raises: the progress or the last failure."""
        if self._making is None or not self._making.is_alive():
            failed, self._failed = self._failed, None
            self._making = threading.Thread(target=self._make, daemon=True)
            self._making.start()
            if failed is not None:
                raise failed
        raise Unavailable(self._progress, reason=PREPARING)

    def _make(self) -> None:
        try:
            self.environment.ensure(self._hear)
        except Unavailable as error:
            self._failed = error

    def _hear(self, line: str) -> None:
        self._progress = f"Ansible is being set up: {line}"

    def _survey(self) -> Ground:
        namespaces, users = self._wish
        capabilities = Ground(
            python=self.environment.python,
            playbook=self.environment.playbook,
            namespaces=namespaces and self._allows_namespaces(),
            users=users and os.geteuid() == 0,
        )
        if capabilities.users and not capabilities.namespaces:
            self._check_reach()
        if warning := _caution(capabilities):
            logger.warning("runs of roles are not isolated", extra={"why": warning})
        return capabilities

    def _check_reach(self) -> None:
        """Unavailable when another user cannot reach the paths that a run without its own file system needs."""
        command = [str(self.environment.python), "-I", "-c", "import ansible"]
        user = FIRST_USER
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
            command = supervisor("probe", folder, python=self.environment.python)
            process = subprocess.run(command, check=False, capture_output=True, timeout=30)
        return process.returncode == 0


def _caution(capabilities: Ground) -> str:
    if capabilities.namespaces:
        return ""
    if capabilities.users:
        problem = (
            "have no file system of their own: they read what everybody on their machine may read"
        )
    else:
        problem = "are not set apart on their machine: they read all that Boatyard can, keys and tokens included"
    return f"runs of roles {problem}; {_REMEDY}"
