"""The role in docs/guide/templates.md is good, and lint says of it what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from boatyard.app.main import main
from boatyard.cli.cluster_flags import parse_parameters
from boatyard.model.errors import Violation
from boatyard.model.generated.osac import ClusterTemplate
from boatyard.resources.cluster_templates import parameters
from boatyard.roles.content import Files, RoleFileContent
from boatyard.roles.form import form_to_json
from boatyard.roles.parameter_values import definitions, plain_values
from boatyard.roles.phases import PHASES
from boatyard.roles.role import TemplateRole, read_role
from boatyard.roles.template_metadata import _TEMPLATE_KEYS
from tests.support.roles import write

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "templates.md").read_text()


@pytest.fixture
def made() -> Files:
    """Every file that the page shows: named in the line before its block."""
    found = re.findall(r"`((?:meta|tasks)/\S+)`[^\n]*:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 3
    return {name: RoleFileContent(text.encode()) for name, text in found}


def test_lint_says_what_the_page_says(made: Files, tmp_path: Path, capsys: Any) -> None:
    assert main(["template", "lint", str(write(tmp_path / "web_small", made))]) == 0

    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert capsys.readouterr().out == shown


def test_the_order_on_the_page_is_taken(made: Files) -> None:
    role = read_role("web_small", made)
    assert isinstance(role, TemplateRole)
    template = ClusterTemplate(parameters=definitions(role.form), form=form_to_json(role.form))
    (line,) = re.findall(r"create cluster web-1 .*", PAGE)
    typed = [word.strip("'") for word in re.findall(r"-p ('[^']*'|\S+='[^']*'|\S+)", line)]
    given = parse_parameters([word.replace("'", "") for word in typed], template)
    violations: list[Violation] = []

    shown, secret = parameters.complete_values(given, template, violations)

    assert violations == []
    assert secret == {}
    assert plain_values(shown) == {
        "greeting": "hello",
        "replicas": 2,
        "pages": [{"path": "/about", "text": ""}],
    }


def test_the_page_names_every_word_and_every_part() -> None:
    assert [word for word in sorted(_TEMPLATE_KEYS) if f"`{word}`" not in PAGE] == []
    assert [phase for phase in PHASES if f"`tasks/{phase}.yaml`" not in PAGE] == []
