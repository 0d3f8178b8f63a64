"""The road of docs/guide/templates.md against a live `boatyard up`: what each command prints, to the letter.

UPDATE_GOLDENS=1 writes what is printed now; read the difference before keeping it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.support.distributed import ANY_PORT
from tests.support.processes import Program, run
from tests.support.roles import files, write

GOLDENS = Path(__file__).parent / "goldens" / "templates"
SECRET = "hunter2-hunter2"
MASKS = (
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b[0-9a-f]{12}\b", "DIGEST"),
    (r"(?<=\S) {2,}", "  "),  # columns are as wide as what was masked
)


class TemplateTerminal:
    """Commands typed at one `boatyard up`; all that was printed is kept."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.roles = home / "data" / "roles"
        self.printed = ""

    def type(self, *words: str, code: int = 0, golden: str = "") -> str:
        done = run(*words, home=self.home)
        text = done.stdout + done.stderr
        self.printed += text
        assert done.returncode == code, text
        if golden:
            self._compare(golden, text)
        return text

    def until(self, words: str, *command: str, without: bool = False) -> None:
        """Types it again until the words are there (or no longer are)."""
        deadline = time.monotonic() + 60
        while (words in self.type(*command)) == without:
            assert time.monotonic() < deadline, self.printed[-2000:]

    def _compare(self, name: str, text: str) -> None:
        shown = text.replace(str(self.home), "HOME")
        for pattern, mask in MASKS:
            shown = re.sub(pattern, mask, shown)
        path = GOLDENS / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDENS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(shown)
        assert shown == path.read_text()


@pytest.mark.timeout(300)
def test_from_a_folder_to_an_order_and_back(home: Path) -> None:
    with Program("up", "--data", str(home / "data"), *ANY_PORT, home=home) as up:
        up.ready()
        terminal = TemplateTerminal(home)
        specs = "argument_specs: {main: {options: {a: {type: integer}, b: {requried: true}}}}"
        write(terminal.roles / "web", files())
        write(terminal.roles / "broken", files(specs=specs))
        terminal.until("web_small", "template", "list")
        terminal.until("Not offered", "template", "list")

        terminal.type("template", "list", golden="list")
        terminal.type("template", "show", "web_small", golden="show")
        terminal.type("template", "show", "web_small", "--schema", golden="schema")
        ordering = ("create", "cluster", "--tenant", "acme", "-t", "web_small", "--no-wait")
        terminal.type(*ordering, "web-1", "-p", "replicas=7", code=2, golden="refused")
        terminal.type(*ordering, "web-1", "-p", "replicas=2", "-p", f"password={SECRET}")
        first = terminal.type("get", "cluster", "web-1", "-o", "yaml")

        # A newer version is offered; what was ordered stays what it was.
        write(terminal.roles / "web", files(tasks="- ansible.builtin.debug: {msg: newer}\n"))
        (old,) = re.findall(r"template_digest: (\S+)", first)
        terminal.until(old, "template", "show", "web_small", without=True)
        terminal.type("scale", "cluster", "web-1", "compute=2", "--no-wait")
        assert old in terminal.type("get", "cluster", "web-1", "-o", "yaml")
        terminal.until("generation: '2'", "get", "orders", "-o", "yaml")
        assert old in terminal.type("get", "orders", "-o", "yaml")

        # Taken away, it is no longer offered; what was ordered can be deleted.
        shutil.rmtree(terminal.roles / "web")
        terminal.until("web_small", "template", "list", without=True)
        terminal.type(*ordering, "web-2", "-p", "replicas=2", code=3)
        terminal.type("delete", "cluster", "web-1")

        # Sent instead of dropped; and after a restart it is still there.
        terminal.type("template", "publish", str(write(home / "sent", files())), golden="publish")
        assert up.end() == 0
        log = up.log.read_text()
    assert SECRET not in terminal.printed + log
    with Program("up", "--data", str(home / "data"), *ANY_PORT, home=home) as again:
        again.ready()
        assert "web_small" in terminal.type("template", "list")
        assert again.end() == 0
