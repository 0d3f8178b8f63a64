"""A copy of the repository in which files are added and suites are run. For tests of what the documents promise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILES = ("pyproject.toml",)
_FOLDERS = ("src", "tests", "proto", "tools", "templates", "deploy", "docs", "requirements")


class TreeCopy:
    """Compiled files are copied too, with the times of their sources: Python does not compile everything anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for folder in _FOLDERS:
            shutil.copytree(ROOT / folder, path / folder)
        for name in _FILES:
            shutil.copy2(ROOT / name, path / name)
        self._environment = {**os.environ, "PYTHONPATH": str(path / "src")}
        # Forks for each run, so that libraries are loaded once.
        self._server = subprocess.Popen(
            [sys.executable, "-u", ROOT / "tools/mutants/pytest_server.py"],
            cwd=path,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._server.communicate()

    def add(self, name: str, text: str) -> None:
        """Adds a file that does not exist yet."""
        target = self.path / name
        assert not target.exists(), f"{name} exists already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def insert(self, name: str, after: str, text: str) -> None:
        """Adds lines to a file, after a text that occurs in it once."""
        target = self.path / name
        content = target.read_text()
        assert content.count(after) == 1, f"{after!r} occurs {content.count(after)} times in {name}"
        target.write_text(content.replace(after, after + text))

    def remove(self, name: str, text: str) -> None:
        """Takes lines out of a file again."""
        target = self.path / name
        content = target.read_text()
        assert content.count(text) == 1, f"{text!r} occurs {content.count(text)} times in {name}"
        target.write_text(content.replace(text, ""))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs Python in the copy, with the copy's own packages."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.path,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def run_tests(self, *tests: str) -> tuple[int, str]:
        """Pytest's exit code and output: 0 when all passed, 1 when one failed."""
        output = self.path / "output"
        request = {
            "arguments": ["-q", "-x", "-p", "no:cacheprovider", *tests],
            "output": str(output),
            "environment": {},
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        self._server.stdout.readline()  # the process id
        return int(self._server.stdout.readline()), output.read_text()

    def make_proto(self) -> None:
        """The first tool of `make proto`."""
        self._run_tool("tools/generate.py", "--root", str(self.path))

    def make_settings_page(self) -> None:
        """The second tool of `make proto`."""
        self._run_tool("tools/settings_page.py")

    def _run_tool(self, *arguments: str) -> None:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
