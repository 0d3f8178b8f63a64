"""Runs pytest in a fork of itself for each request: what tests import from others is loaded once.

A request is one line of JSON on stdin: {"arguments": […], "output": PATH, "environment": {…}}. The answers on stdout
are the child's process id, and then its exit code. Nothing of the tree under test is imported here.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys

LIBRARIES = (
    *("pytest", "_pytest.assertion.rewrite", "_pytest.junitxml", "_pytest.terminal"),
    *("pytest_asyncio.plugin", "pytest_timeout", "xdist.plugin", "anyio.pytest_plugin"),
    *("pygments.lexers", "hypothesis", "aiohttp.web", "asyncpg", "msgspec", "cryptography.x509"),
    *("yaml", "google.protobuf.json_format", "joserfc.jwt"),
)


def main() -> int:
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError:
            continue  # it only makes runs quicker
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return run(request)
        answer(pid)
        answer(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def run(request: dict[str, object]) -> int:
    """In the child: pytest's exit code, as of a process of its own."""
    import pytest

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(str(request["output"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.environ.update(request["environment"])  # type: ignore[arg-type]
    # What is imported already cannot be rewritten, and need not be.
    arguments = ["-W", "ignore::pytest.PytestAssertRewriteWarning", *request["arguments"]]  # type: ignore[misc]
    return int(pytest.main(arguments))


def answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
