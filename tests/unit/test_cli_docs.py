"""Every command in the guide is one that the command line understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from boatyard.app.main import make_parser

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def commands():
    for path in sorted(GUIDE.glob("*.md")):
        for block in re.findall(r"```\n(.*?)```", path.read_text(), re.DOTALL):
            for line in block.splitlines():
                typed = re.fullmatch(r"(?:\$ )?(?:[A-Z_]+=\S+ )*boatyard (.+)", line)
                if typed:
                    yield pytest.param(typed[1], id=f"{path.stem}: {typed[1]}")


@pytest.mark.parametrize("command", list(commands()))
def test_a_command_of_the_guide_is_understood(command):
    assert make_parser().parse_args(shlex.split(command)).verb == command.split()[0]


def test_the_guide_names_every_verb():
    page = (GUIDE / "command-line.md").read_text()
    verbs = re.findall(r"^    (\w+)  ", make_parser().format_help(), re.MULTILINE)
    assert len(verbs) > 20
    assert [verb for verb in verbs if f"`{verb}" not in page] == []
