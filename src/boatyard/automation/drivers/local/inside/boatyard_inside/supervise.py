"""Supervises one run until its end and writes its result. One process per run, in its own session.

It holds the run's lock as long as it lives: the driver finds a run by asking the kernel who holds the lock. It is
started by Boatyard or forked by the warm server, and afterwards needs neither of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable

from boatyard_inside import confine, plans
from boatyard_inside.confine import Launch, Started
from boatyard_inside.hiding import Hiding
from boatyard_inside.lines import Lines
from boatyard_inside.plans import Plan
from boatyard_inside.story import LONGEST_TEXT, Story

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
LONGEST_EVENT = 256 * 1024
MOST_FACTS = 256
LONGEST_FACTS = 64 * 1024  # characters, all of them together
ERROR = "[ERROR]:"
LAST_WORDS = 12  # lines of output in the result when no task says why it failed


def supervise(directory: str, launch: Launch, ready: Callable[[], None]) -> None:
    """Runs the plan in `directory`. Does nothing when another supervisor runs it, or there is no plan."""
    lock = os.open(os.path.join(directory, plans.LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    plan = plans.take(directory)
    if plan is None:
        return
    ready()
    watch = _Watch(directory, plan)
    try:
        watch.run(launch)
    except OSError as error:
        watch.ended("broken", str(error))


class _Watch:
    def __init__(self, directory: str, plan: Plan) -> None:
        self._directory = directory
        self._plan = plan
        hide = Hiding(plan.hidden)
        path = os.path.join(directory, plans.EVENTS)
        self._story = Story(path, plan.events_limit, hide, plan.attempt)
        self._event_lines = Lines(LONGEST_EVENT, hide.longest)
        self._output_lines = Lines(LONGEST_TEXT, hide.longest)
        self._output_left = plan.output_limit
        self._last_words: list[str] = []
        self._error_seen = False
        self._failure = ("", "")  # task and words
        self._facts: dict[str, str] = {}
        self._told_all = False
        self._too_many = False
        self._broken = ""
        self._ending = ""  # why we end the run; empty: we do not
        self._kill_at = 0.0

    def run(self, launch: Launch) -> None:
        if self._plan.start > 1:
            self._story.tell("output", text="the run was interrupted and begins again")
        wakeup_fd, wakeup_write_fd = os.pipe()
        os.set_blocking(wakeup_write_fd, False)
        signal.signal(signal.SIGTERM, lambda *_: self._end("cancelled"))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(wakeup_write_fd, warn_on_full_buffer=False)
        deadline = time.monotonic() + self._plan.time_limit
        started = confine.start(self._directory, self._plan, launch)
        with selectors.DefaultSelector() as selector:
            for fd in (started.events, started.output, started.fd, wakeup_fd):
                os.set_blocking(fd, False)
                selector.register(fd, selectors.EVENT_READ)
            self._follow(started, selector, wakeup_fd, deadline)
        _, status = os.waitpid(started.pid, 0)
        self._conclude(os.waitstatus_to_exitcode(status))

    def _follow(
        self, started: Started, selector: selectors.BaseSelector, wakeup_fd: int, deadline: float
    ) -> None:
        term_sent = False
        while True:
            now = time.monotonic()
            if now >= deadline:
                self._end("timeout")
            if self._ending and not term_sent:
                term_sent, self._kill_at = True, now + GRACE_SECONDS
                started.signal(signal.SIGTERM)
            if term_sent and now >= self._kill_at:
                started.signal(signal.SIGKILL)
                self._kill_at = now + 1.0
            wait = (self._kill_at if term_sent else deadline) - now
            ready = {key.fd for key, _ in selector.select(max(0.0, min(wait, 60.0)))}
            if wakeup_fd in ready:
                _read(wakeup_fd)
            for fd, absorb in (
                (started.events, self._absorb_events),
                (started.output, self._absorb_output),
            ):
                if fd in ready:
                    data = _read(fd)
                    if data == b"":
                        selector.unregister(fd)
                    elif data is not None:
                        absorb(data)
            if started.fd in ready:
                self._drain(started)
                return

    def _drain(self, started: Started) -> None:
        """Reads what is left in the pipes after the last process of the run has ended."""
        for fd, absorb in (
            (started.events, self._absorb_events),
            (started.output, self._absorb_output),
        ):
            while data := _read(fd):
                absorb(data)
        for line in self._output_lines.rest():
            self._absorb_line(line)

    def _end(self, reason: str) -> None:
        self._ending = self._ending or reason

    def _absorb_output(self, data: bytes) -> None:
        self._output_left -= len(data)
        if self._output_left < 0:
            self._end("output")
            return
        for line in self._output_lines.feed(data):
            self._absorb_line(line)

    def _absorb_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if text.strip():
            # A cut line is cleaned on its own: joined with others, the cut secret at its end would not be found.
            self._remember(text if len(line) < LONGEST_TEXT else self._story.clean(text))
            self._story.tell("output", text=text)

    def _remember(self, text: str) -> None:
        """Keeps lines for the result: the first lines of Ansible's own error, or else the last lines of output."""
        if text.startswith(ERROR) and not self._error_seen:
            self._error_seen, self._last_words = True, []
            text = text.removeprefix(ERROR).strip()
        if not self._error_seen:
            del self._last_words[: -LAST_WORDS + 1]
        if len(self._last_words) < LAST_WORDS:
            self._last_words.append(text)

    def _absorb_events(self, data: bytes) -> None:
        self._output_left -= len(data)
        if self._output_left < 0:
            self._end("output")
            return
        for line in self._event_lines.feed(data):
            try:
                event = json.loads(line)
                self._absorb_event(event)
            except (ValueError, KeyError, TypeError, AttributeError):
                self._story.tell("output", text="the run told something that cannot be read")

    def _absorb_event(self, event: dict[str, object]) -> None:
        kind = str(event["kind"])
        task, text = str(event.get("task", "")), str(event.get("text", ""))
        if kind == "facts":
            facts = event["facts"]
            if isinstance(facts, dict):
                self._facts = {str(name): str(value) for name, value in facts.items()}
            self._told_all = True
            self._too_many = bool(event.get("too_many"))
            return
        if kind == "broken":
            self._broken = text
            return
        if kind not in ("task", "ok", "changed", "failed", "skipped", "output"):
            raise ValueError(kind)
        if kind == "failed" and not event.get("ignored"):
            self._failure = (task, text)
        self._story.tell(kind, task, text, " (ignored)" if event.get("ignored") else "")

    def _conclude(self, code: int) -> None:
        plan = self._plan
        if self._ending == "timeout":
            self.ended("failed", f"it took longer than {plan.time_limit:g} s and was ended")
        elif self._ending == "output":
            self.ended("failed", f"it printed more than {plan.output_limit} bytes and was ended")
        elif self._ending == "cancelled":
            self.ended("cancelled", "it was cancelled")
        elif code == 0 and self._told_all:
            self._succeed()
        elif code < 0 or code == 128 + signal.SIGKILL:
            # Not by us, and not by the role: by somebody else, or by the kernel when memory is short.
            self.ended("killed", "it was killed")
        elif code == confine.BROKEN:
            self.ended("broken", self._broken or "it could not be started")
        else:
            self._fail(code)

    def _succeed(self) -> None:
        length = sum(map(len, self._facts.values()))
        if self._too_many or len(self._facts) > MOST_FACTS or length > LONGEST_FACTS:
            message = f"it reported more than {MOST_FACTS} facts, or more than {LONGEST_FACTS} characters of them"
            self.ended("failed", message)
            return
        keep = self._story.keep
        facts = {keep(name): keep(value) for name, value in self._facts.items()}
        self.ended("succeeded", "", facts=facts)

    def _fail(self, code: int) -> None:
        task, message = self._failure
        if message or task:
            self.ended("failed", message or "it failed without a word", task=task)
            return
        output = "\n".join(self._last_words)
        self.ended("failed", output or f"it ended with code {code} without a word")

    def ended(
        self, state: str, words: str, *, task: str = "", facts: dict[str, str] | None = None
    ) -> None:
        clean = self._story.clean
        summary = state if task or not words or state == "broken" else f"{state}: {words}"
        self._story.tell("end", task, summary)
        result = {
            "attempt": self._plan.attempt,
            "start": self._plan.start,
            "state": state,
            "task": clean(task, 300),
            "words": clean(words),
            "facts": facts or {},
        }
        plans.write_result(self._directory, result)


def _read(fd: int) -> bytes | None:
    """The bytes that are available; empty at the end of the pipe, None when there are none now."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None


def main(arguments: list[str]) -> None:
    """`NETNS_DIRECTORY READY_FD`: supervises a run that executes ansible-playbook as a new program."""
    directory, ready_fd = arguments[0], int(arguments[1])
    with contextlib.suppress(PermissionError):
        os.setsid()

    def ready() -> None:
        os.write(ready_fd, b"1")
        os.close(ready_fd)

    os.set_inheritable(ready_fd, False)
    supervise(directory, confine.execute, ready)


if __name__ == "__main__":
    main(sys.argv[1:])
