"""Ansible in its own virtual environment: created once, on first use or by `make ansible`. Called by the workshop.

Ansible stays a separate program that is called as a process; nothing in Boatyard imports it. The environment is
identified by the lock file and the Python version: another lock file is another environment, and both may exist.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from boatyard.assets.cache import cache_directory, make_directory
from boatyard.model.errors import Unavailable

_INSTALLED_LOCK_FILE = (
    Path(__file__).parent / "ansible.txt"
)  # in the package, when installed from a wheel
_SOURCE_LOCK_FILE = Path(__file__).parents[5] / "requirements" / "ansible.txt"
_COMPLETE_MARKER = ".complete"
_PACKAGE_PATTERN = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_COLLECTING_PATTERN = re.compile(r"^Collecting ([A-Za-z0-9._-]+)")
# pip gets the variables that say where packages come from, and no others of ours.
_PASSED_VARIABLES = ("PATH", "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "LANG")
_PASSED_PREFIXES = ("PIP_", "HTTP_", "HTTPS_", "NO_PROXY", "http_", "https_", "no_proxy")

ReportProgress = Callable[[str], None]  # one line of progress


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """$BOATYARD_ANSIBLE, else `ansible` in the cache directory."""
    configured = environ.get("BOATYARD_ANSIBLE")
    return (
        Path(configured).expanduser().absolute()
        if configured
        else cache_directory(environ) / "ansible"
    )


class AnsibleEnvironment:
    """The environment for this lock file and this Python. One directory may hold several environments."""

    def __init__(self, directory: Path | None = None, *, lock: Path | None = None) -> None:
        self.lock_file = lock or (
            _INSTALLED_LOCK_FILE if _INSTALLED_LOCK_FILE.exists() else _SOURCE_LOCK_FILE
        )
        seed = self.lock_file.read_bytes() + sys.version.encode() + sys.base_prefix.encode()
        self.directory = (directory or default_directory()).absolute()
        self.venv_directory = self.directory / hashlib.sha256(seed).hexdigest()[:12]

    @property
    def python(self) -> Path:
        return self.venv_directory / "bin" / "python"

    @property
    def playbook(self) -> Path:
        return self.venv_directory / "bin" / "ansible-playbook"

    def is_ready(self) -> bool:
        return (self.venv_directory / _COMPLETE_MARKER).exists() and self.python.exists()

    def ensure(self, report: ReportProgress) -> None:
        """Creates the environment when there is none. Unavailable when that fails; a partial one is created again."""
        if self.is_ready():
            return
        make_directory(self.directory)
        with _exclusive_lock(self.venv_directory.with_suffix(".lock")):
            if self.is_ready():
                return  # another process has created it meanwhile
            report("making an environment for Ansible")
            shutil.rmtree(self.venv_directory, ignore_errors=True)
            _run_command([sys.executable, "-m", "venv", str(self.venv_directory)], lambda _: None)
            self._install(report)
            (self.venv_directory / _COMPLETE_MARKER).touch()
            report("the environment for Ansible is ready")

    def _install(self, report: ReportProgress) -> None:
        total = len(_PACKAGE_PATTERN.findall(self.lock_file.read_text()))
        packages: set[str] = set()

        def on_line(line: str) -> None:
            if match := _COLLECTING_PATTERN.match(line):
                packages.add(match[1])
                report(f"fetching {match[1]} ({len(packages)} of {total})")
            elif line.startswith("Installing collected"):
                report(f"installing {len(packages)} packages")

        pip = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check"]
        _run_command([*pip, "--no-input", "--require-hashes", "-r", str(self.lock_file)], on_line)


def _run_command(command: list[str], on_line: Callable[[str], None]) -> None:
    environ = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_VARIABLES or name.startswith(_PASSED_PREFIXES)
    }
    last_lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            last_lines = [*last_lines[-4:], line.strip()]
            on_line(line.strip())
    if process.returncode != 0:
        raise Unavailable(
            f"the environment for Ansible cannot be made: {' '.join(last_lines)}",
            reason="NoAnsible",
        )


@contextmanager
def _exclusive_lock(lock: Path) -> Iterator[None]:
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    AnsibleEnvironment().ensure(lambda line: print(line, flush=True))  # noqa: T201 - it is `make ansible`
