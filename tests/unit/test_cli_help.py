"""`--help` answers at once: nothing heavy is imported for it, and every verb shows an example."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from boatyard.app.main import make_parser

HEAVY = (
    "grpc",
    "rich",
    "asyncpg",
    "msgspec",
    "google",
    "asyncio",
    "yaml",
    "starlette",
)


def verbs():
    parser = make_parser()
    choices = next(
        action for action in parser._actions if action.dest == "==SUPPRESS==" or action.choices
    )
    return dict(choices.choices)


@pytest.mark.parametrize("argv", [["--help"], ["create", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(argv):
    program = (
        "import sys\n"
        "from boatyard.app.main import main\n"
        "try:\n"
        f"    main({argv!r})\n"
        "except SystemExit as left:\n"
        "    assert left.code == 0, left.code\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("name", sorted(verbs()))
def test_every_verb_shows_an_example_that_its_own_flags_accept(name):
    shown = verbs()[name].format_help()
    example = shown.partition("example:\n")[2].strip()
    assert example.startswith(f"boatyard {name}")
    assert make_parser().parse_args(example.split()[1:]).verb == name


@pytest.mark.parametrize("name", sorted(verbs()))
def test_every_verb_leads_somewhere(name):
    module, _, function = verbs()[name].get_default("run").partition(":")
    assert callable(getattr(import_module(module), function))
