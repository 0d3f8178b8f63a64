"""A real ansible-rulebook in an environment of its own, with our rulebook and playbooks. For tests/eda.

The environment is made on first use, from the locked list, in `build/`; where there is no Java, tests skip.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from boatyard.assets.cache import cache_directory, hold_lock, make_directory
from tests.support.control_plane import free_port

ROOT = Path(__file__).parents[3]
LOCKED = ROOT / "requirements" / "eda.txt"
START_SECONDS = 120
_READY = ".complete"


def needs_rulebook() -> Path:
    """The folder of its programs; skips where it cannot run."""
    if shutil.which("java") is None:
        pytest.skip("ansible-rulebook needs Java: apt-get install openjdk-17-jre-headless")
    return environment() / "bin"


def environment() -> Path:
    """Made once per locked list and Python, in the cache directory: clones share it."""
    seed = LOCKED.read_bytes() + sys.version.encode() + sys.base_prefix.encode()
    folder = cache_directory() / "eda" / hashlib.sha256(seed).hexdigest()[:12]
    make_directory(folder.parent)
    with hold_lock(folder.with_suffix(".lock"), lambda: _say("waiting for another clone's")):
        if not (folder / _READY).exists():
            _make(folder)
    return folder


def _make(folder: Path) -> None:
    _say(f"making the environment of ansible-rulebook in {folder} (a minute)")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    how = ["--require-hashes", "-r", str(LOCKED)]
    uv = Path(sys.executable).with_name("uv")
    # uv does not read pip's configuration: where only pip knows the way to a package index, pip does it.
    tried = uv.exists() and subprocess.run(
        [str(uv), "pip", "install", "--python", python, "--compile-bytecode", *how], check=False
    )
    if not tried or tried.returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *how], check=True)
    (folder / _READY).touch()
    _say("made")


def _say(words: str) -> None:
    print(f"\ntests/eda: {words}", file=sys.__stderr__, flush=True)


class Rulebook:
    """Our rulebook on a port of its own. Whatever it starts ends with it, however that ends."""

    def __init__(self, folder: Path, environ: Mapping[str, str], token: str) -> None:
        self.port = free_port()
        self.folder = folder
        self.log = folder / "rulebook.log"
        self._programs = needs_rulebook()
        self._environ = {**environ, "BOATYARD_EDA_TOKEN": token}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it takes events."""
        settings = self.folder / "settings.yml"
        settings.write_text(yaml.safe_dump({"host": "127.0.0.1", "port": self.port}))
        # In a namespace of processes of its own: killed, it leaves no playbook behind that goes on by itself.
        words = [
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
            str(self._programs / "ansible-rulebook"),
            *("--rulebook", "deploy/eda/cluster_fulfillment.yml"),
            *("--inventory", "deploy/eda/inventory.yml"),
            *("--vars", str(settings), "--env-vars", "BOATYARD_EDA_TOKEN", "--verbose"),
        ]
        path = f"{self._programs}:{os.environ.get('PATH', '')}"
        plain = {
            "PATH": path,
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "ansible"),
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                words,
                cwd=ROOT,
                env={**plain, **self._environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, f"it does not run: {self.said()}"
            assert time.monotonic() < end, f"it takes no events: {self.said()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """With all it has started. Done twice it is done once."""
        if self._process is not None:
            with self._process as process:
                process.send_signal(signal.SIGKILL)
            self._process = None

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-8000:]

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def rulebook(folder: Path, environ: Mapping[str, str], token: str) -> Iterator[Rulebook]:
    made = Rulebook(folder, environ, token)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
