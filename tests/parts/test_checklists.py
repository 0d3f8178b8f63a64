"""docs/contributing/adding.md, performed: what each line names is added to a copy of the tree, and nothing else.

The suite that the line names passes, and fails when a part of what was added is taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tree_copy import ROOT, TreeCopy

# Seconds on a free core; on a busy one each process takes its time.
pytestmark = pytest.mark.timeout(400)
PASSED, FAILED = 0, 1


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[TreeCopy]:
    tree = TreeCopy(tmp_path)
    yield tree
    tree.close()


def passes(tree: TreeCopy, *tests: str) -> None:
    code, output = tree.run_tests(*tests)
    assert code == PASSED, output


def fails(tree: TreeCopy, *tests: str, because: str) -> None:
    code, output = tree.run_tests(*tests)
    assert code == FAILED, output
    assert because in output, output


# --- a template ----------------------------------------------------------------------------------

ROLE = "templates/roles/reading_room"
ROLE_FILES = {
    "README.md": """# reading_room

A cluster for one reader.

| parameter | what | left out |
| --- | --- | --- |
| `books` | how many books there are | three |

## What it makes

A cluster with one small server. Nothing is run around it.

```
boatyard create cluster room-1 --tenant acme --template reading_room -p books=5
```
""",
    "meta/argument_specs.yml": """argument_specs:
  main:
    short_description: A reading room
    options:
      books: {type: int, default: 3, description: How many books there are.}
""",
    "meta/template.yaml": """id: reading_room
title: Reading room
description: One small server.
node_sets:
  compute: {host_type: bm-small, size: 1}
hooks: []
""",
}


def test_a_template(tree: TreeCopy) -> None:
    for name, text in ROLE_FILES.items():
        tree.add(f"{ROLE}/{name}", text)
    shipped = "tests/unit/test_shipped_roles.py"
    # All questions take minutes: tests/automation asks them of the roles that come along.
    command = ("-m", "boatyard.app.main", "template", "test", ROLE, "--only", "form")

    passes(tree, shipped)
    result = tree.run(*command)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "reading_room: good" in result.stdout

    tree.remove(f"{ROLE}/README.md", "| `books` | how many books there are | three |\n")
    fails(tree, shipped, because="test_a_role_says_all_that_its_readers_need[reading_room]")
    tree.remove(f"{ROLE}/meta/argument_specs.yml", "options:\n")
    result = tree.run(*command)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "reading_room: not good: lint" in result.stdout


# --- an API resource -----------------------------------------------------------------------------

TYPE_PROTO = """syntax = "proto3";

package {package};

import "{folder}/metadata_type.proto";

// A place for servers.
message Rack {{
  string id = 1;
  Metadata metadata = 2;
  RackSpec spec = 3;
}}

message RackSpec {{
  string aisle = 1;
  int32 units = 2;
}}
"""
RULES = '''"""Admission rules of racks. Called by the API before a rack is stored."""

from __future__ import annotations

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import Rack
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.kind_rules import KindRules


class RackRules(KindRules[Rack]):
    def admit_create(self, new: Rack, world: AdmissionContext) -> Rack:
        if new.spec.units < 0:
            raise Refused("", Violation("spec.units", "is negative"))
        return new

    def admit_update(self, old: Rack, new: Rack, world: AdmissionContext) -> Rack:
        return self.admit_create(new, world)
'''
KIND_IMPORT = "from boatyard.resources.racks.rules import RackRules\n"
KIND_LINE = '        ResourceKind(osac.Rack, "Racks", RackRules()),\n'
PERMISSION_ROW = '    "Rack": _row(_VIEWER, _OPERATOR, signal=_OPERATOR),\n'
SAMPLE = """    Sample(
        "Rack",
        "Racks",
        {"metadata": {"name": "rack-#"}, "spec": {"aisle": "north", "units": 42}},
        {"spec": {"aisle": "south"}},
        "spec.aisle",
    ),
"""
PERMISSIONS = {
    "HostType         OAMV   OAMV   OAMV   O      O      O      O\n": (
        "Rack             OAMV   OAMV   OAMV   O      O      O      O\n"
    ),
    "HostType         -       -     -           -     -       -     -       -     -       -\n": (
        "Rack             -       -     -           -     -       -     -       -     -       -\n"
    ),
    "osac.public.v1.HostTypes          Create,Update,Delete                 O       O       O\n": (
        "osac.public.v1.Racks              List,Get                             OAMV    OAMV    O\n"
        "osac.public.v1.Racks              Create,Update,Delete                 O       O       O\n"
    ),
    "osac.private.v1.HostTypes         List,Get,Create,Update,Delete,Signal O       n/a     n/a\n": (
        "osac.private.v1.Racks             List,Get,Create,Update,Delete,Signal O       n/a     n/a\n"
    ),
}
# The generic suites, of which the parts that concern the new kind are run.
POLICY_TABLE = "tests/unit/test_policy.py"
GENERIC = (
    "tests/api/test_crud.py",
    "tests/api/test_policy.py",
    "tests/api/test_watch.py",
    "-k",
    "Rack or has_a_sample or every_list",
)
HAS_SAMPLE = "tests/api/test_crud.py::test_every_kind_in_the_table_has_a_sample"


def add_rack_protos(tree: TreeCopy) -> None:
    """The messages and calls of racks in both packages, and their field in events."""
    for view in ("private", "public"):
        folder, package = f"osac/{view}/v1", f"osac.{view}.v1"
        text = TYPE_PROTO.format(package=package, folder=folder)
        tree.add(f"proto/{folder}/rack_type.proto", text)
        calls = (ROOT / f"proto/{folder}/host_types_service.proto").read_text()
        for old, new in (
            ("host_type_type", "rack_type"),
            ("host_type", "rack"),
            ("host types", "racks"),
            ("HostType", "Rack"),
        ):
            calls = calls.replace(old, new)
        tree.add(f"proto/{folder}/racks_service.proto", calls)
        event = f"proto/{folder}/event_type.proto"
        tree.insert(
            event,
            f'import "{folder}/project_type.proto";\n',
            f'import "{folder}/rack_type.proto";\n',
        )
        tree.insert(event, "  oneof payload {\n", "    Rack rack = 1010;\n")


def test_an_api_resource(tree: TreeCopy) -> None:
    add_rack_protos(tree)
    tree.insert("tools/generate.py", '    "HostType",\n', '    "Rack",\n')
    tree.make_proto()
    tree.add("src/boatyard/resources/racks/__init__.py", '"""Racks, as operators know them."""\n')
    tree.add("src/boatyard/resources/racks/rules.py", RULES)
    kinds = "src/boatyard/api/kinds.py"
    tree.insert(kinds, "from boatyard.resources.projects.rules import ProjectRules\n", KIND_IMPORT)
    tree.insert(kinds, "    for kind in (\n", KIND_LINE)
    permissions = "src/boatyard/api/permissions.py"
    host_types = '    "HostType": _row(_VIEWER, _OPERATOR, signal=_OPERATOR),\n'
    tree.insert(permissions, host_types, PERMISSION_ROW)
    # What the suites have to be told: a valid object, and who may do what, by hand.
    tree.insert("tests/api/samples.py", "SAMPLES = (\n", SAMPLE)
    for line, new_line in PERMISSIONS.items():
        tree.insert("tests/support/permissions.py", line, new_line)

    passes(tree, POLICY_TABLE)
    passes(tree, *GENERIC)

    tree.remove("tests/api/samples.py", SAMPLE)
    fails(tree, HAS_SAMPLE, because="test_every_kind_in_the_table_has_a_sample")
    tree.remove(permissions, PERMISSION_ROW)
    fails(tree, POLICY_TABLE, because="Rack")
    tree.remove("proto/osac/public/v1/rack_type.proto", "  int32 units = 2;\n")
    stale = tree.run("tools/generate.py", "--check", "--root", str(tree.path))
    assert stale.returncode == 1
    assert "stale src/boatyard/model/generated/convert.py" in stale.stdout


# --- a verb of the command line --------------------------------------------------------------------

VERB_MODULE = '''"""The verb tide: says how high the water is."""

from __future__ import annotations

import argparse


def tide(args: argparse.Namespace) -> int:
    print("The water is high.")
    return 0
'''
VERB_ROW = """    (
        "tide",
        "boatyard.cli.tides:tide",
        "say how high the water is",
        "boatyard tide",
        None,
    ),
"""
VERB_GUIDE = "| `tide` | how high the water is |\n"


def test_a_verb_of_the_command_line(tree: TreeCopy) -> None:
    tree.add("src/boatyard/cli/tides.py", VERB_MODULE)
    table = "_VERBS: tuple[tuple[str, str, str, str, Flags | None], ...] = (\n"
    tree.insert("src/boatyard/cli/commands.py", table, VERB_ROW)
    guide = "docs/guide/command-line.md"
    tree.insert(guide, "| `login`, `logout`, `whoami` | which server, and as whom |\n", VERB_GUIDE)
    suites = (
        "tests/unit/test_cli_help.py",
        "tests/unit/test_cli_docs.py",
        "-k",
        "tide or guide_names",
    )

    passes(tree, *suites)

    tree.remove(guide, VERB_GUIDE)
    fails(tree, *suites, because="test_the_guide_names_every_verb")
    tree.remove(
        "src/boatyard/cli/tides.py",
        'def tide(args: argparse.Namespace) -> int:\n    print("The water is high.")\n    return 0\n',
    )
    fails(tree, *suites, because="test_every_verb_leads_somewhere[tide]")


# --- a check ---------------------------------------------------------------------------------------

CHECK = '''"""Does the cluster's API have a name?"""

from __future__ import annotations

from boatyard.checks.drivers.sim.twin_queries import ClusterFacts, QueryTwin
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting


async def check_named(ask_twin: QueryTwin, subject: Subject, facts: ClusterFacts) -> Outcome:
    if not await ask_twin("resolve", name=subject.api_name):
        return Waiting("The API has no name.", reason="NoName")
    return Done()
'''
CHECK_FINDING = """    if not await ask_twin("resolve", name=subject.api_name):
        return Waiting("The API has no name.", reason="NoName")
"""


def test_a_check(tree: TreeCopy) -> None:
    folder = "src/boatyard/checks/drivers/sim"
    tree.add(f"{folder}/named.py", CHECK)
    table = f"{folder}/__init__.py"
    tree.insert(table, "from boatyard.checks.drivers.sim import api, ", "named, ")
    tree.insert(table, '    "names": names.check_names,\n', '    "named": named.check_named,\n')
    suite = "tests/contracts/test_checks.py"

    passes(tree, suite)

    tree.remove(f"{folder}/named.py", CHECK_FINDING)
    fails(tree, suite, because="test_every_question_says_no_to_some_fault")


# --- a rule ----------------------------------------------------------------------------------------

RULE = """    if host_type.title != host_type.title.strip():
        violations.append(Violation("title", "begins or ends with a space"))
"""
RULE_CASE = """

@pytest.mark.parametrize(
    "title, paths",
    [
        pytest.param("Small", [], id="a title"),
        pytest.param(" Small", ["title"], id="people search for it and do not find it"),
    ],
)
def test_the_title_of_a_host_type(title: str, paths: list[str]) -> None:
    from boatyard.api.kinds import KINDS
    from boatyard.model.generated.osac import HostType

    try:
        KINDS["HostType"].rules.admit_create(HostType(title=title), _world())
    except Refused as refused:
        assert [violation.path for violation in refused.violations] == paths
    else:
        assert paths == []
"""


def test_a_rule(tree: TreeCopy) -> None:
    rules, table = (
        "src/boatyard/resources/host_types/rules.py",
        "tests/unit/test_admission_rules.py",
    )
    tree.insert(rules, "    violations = []\n", RULE)
    with (tree.path / table).open("a") as file:
        file.write(RULE_CASE)

    passes(tree, table)

    tree.remove(rules, RULE)
    fails(tree, table, because="people search for it and do not find it")


# --- a setting -------------------------------------------------------------------------------------


def test_a_setting(tree: TreeCopy) -> None:
    source = "src/boatyard/wiring/settings.py"
    tree.insert(
        source,
        '    data: str = ""  # directory for keys, tokens, the embedded database and the twin\n',
        "    tide_minutes: float = 5.0  # how often the height of the water is asked for\n",
    )
    suites = ("tests/unit/test_settings_page.py", "tests/unit/test_settings.py")

    fails(tree, *suites, because="test_the_page_is_up_to_date_and_names_every_setting")
    tree.make_settings_page()
    passes(tree, *suites)

    tree.remove(
        "docs/guide/settings.md",
        "| `tide_minutes` | `5.0` | how often the height of the water is asked for |\n",
    )
    fails(tree, *suites, because="test_the_page_is_up_to_date_and_names_every_setting")
