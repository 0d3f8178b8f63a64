"""`boatyard logs` against a live `boatyard up`: live while a role runs, whole after a crash, kept after the cluster."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from tests.support.distributed import ANY_PORT
from tests.support.processes import BOATYARD, Program, environment, run
from tests.support.roles import files, write

SECRET = "hunter2-hunter2"
POST_INSTALL = """
- name: greet
  ansible.builtin.debug: {msg: "{{ greeting }} {{ password }}"}
- name: wait for the word
  ansible.builtin.wait_for: {host: 127.0.0.1, port: PORT, timeout: 300}
- name: change something
  ansible.builtin.command: "true"
"""
DELETE = """
- name: say goodbye
  ansible.builtin.debug: {msg: goodbye}
"""
PATIENCE = 90.0


class Following:
    """`boatyard logs -f` as a process, line by line."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [*BOATYARD, "logs", "cluster", *words],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._queue: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._queue.put(line)

    def until(self, words: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(words in line for line in self.lines):
            try:
                self.lines.append(self._queue.get(timeout=max(0.01, end - time.monotonic())))
            except Empty:
                raise AssertionError(f"no {words!r} in {self.lines}") from None

    def ended(self) -> int:
        return self.process.wait(timeout=PATIENCE)

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()


def typed(home: Path, *words: str) -> str:
    done = run(*words, home=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def until(home: Path, found: str, *words: str) -> str:
    end = time.monotonic() + PATIENCE
    while found not in (text := typed(home, *words)):
        assert time.monotonic() < end, text
    return text


def told(text: str) -> list[str]:
    """What was told, without its times."""
    return [re.sub(r" {2,}", " ", line[21:]).strip() for line in text.splitlines()]


@pytest.fixture
def word() -> Iterator[socket.socket]:
    """A place of ours on which nobody can connect before we listen."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


@pytest.mark.timeout(400)
def test_a_role_is_followed_live_through_a_crash_and_read_after_the_end(
    home: Path, word: socket.socket
) -> None:
    port = str(word.getsockname()[1])
    role = files(tasks=POST_INSTALL.replace("PORT", port))
    role |= files({"tasks/delete.yaml": DELETE})
    data = ("up", "--data", str(home / "data"), *ANY_PORT)
    # Whoever comes after a crash waits until the lease of the dead has run out.
    brief = {"BOATYARD_LEASE_SECONDS": "6"}
    with Program(*data, home=home, environ=brief) as up:
        up.ready()
        write(home / "data" / "roles" / "web", role)
        until(home, "web_small", "template", "list")
        typed(
            home, "create", "cluster", "web-1", "--tenant", "acme", "-t", "web_small",
            "-p", "replicas=2", "-p", f"password={SECRET}", "--no-wait",
        )  # fmt: skip
        with Following(home, "web-1", "-f") as following:
            following.until("task     wait for the word")
            explained = typed(home, "explain", "cluster", "web-1")
            assert "post_install of web_small is at task 'wait for the word'" in explained
            assert following.process.poll() is None, "it waits for more"
        up.end(signal.SIGKILL)
    with Program(*data, home=home) as up:
        up.ready()
        with Following(home, "web-1", "-f") as following:
            following.until("task     wait for the word")
            word.listen()
            following.until("end      succeeded")
            assert following.ended() == 0, "it ends with the work"
        assert "3 tasks, 1 changed" in until(home, "ready", "explain", "cluster", "web-1")
        assert told(typed(home, "logs", "cluster", "web-1")) == [
            "post_install ok greet: hello ********",
            "post_install ok wait for the word",
            "post_install changed change something",
            "post_install end succeeded",
        ]
        typed(home, "delete", "cluster", "web-1")
        after = typed(home, "logs", "cluster", "web-1")
        assert told(after)[-2:] == ["delete ok say goodbye: goodbye", "delete end succeeded"]
        assert len(told(after)) == 6
        only = typed(home, "logs", "cluster", "web-1", "--run", "delete")
        assert len(told(only)) == 2
        assert SECRET not in after + up.log.read_text()
        assert up.end() == 0
