"""Generic code of the API stays generic and typed: no hooks by string, no kind by name, no more `Any`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from google.protobuf.descriptor import Descriptor

from boatyard.api import requests
from boatyard.api.kinds import KINDS, VIEWS, ResourceKind
from boatyard.model import wire
from boatyard.resources.kind_rules import KindRules
from tests.unit.test_house_sizes import SOURCE

API = SOURCE / "api"
# Code for every kind: a kind that needs something of its own has a hook or a field of `ResourceKind`.
GENERIC = (
    *(
        API / f"{name}.py"
        for name in (
            "admission",
            "answers",
            "methods",
            "catalogue_cache",
            "crud",
            "fields",
            "kinds",
            "masks",
            "policy",
            "references",
            "updates",
            "document_changes",
        )
    ),
    SOURCE / "ledger" / "commit.py",
)
# The table of kinds is where they are named, by their structs.
TABLE_OF_KINDS = API / "kinds.py"
# Only goes down: who removes one lowers it.
LIMIT = 74


def test_no_attribute_of_rules_is_looked_up_by_name() -> None:
    assert [place for path in API.glob("*.py") for place in lookups(path.read_text())] == []


@pytest.mark.parametrize(
    "code",
    [
        'getattr(kind.rules, "also", None)',
        'getattr(rules, "holds")',
        'hasattr(self.kind.rules, "wants")',
        'maybe(rules, "requires", doc)',
    ],
)
def test_a_hook_by_string_is_noticed(code: str) -> None:
    assert list(lookups(code)) == [code]


@pytest.mark.parametrize("path", GENERIC, ids=lambda path: path.name)
def test_generic_code_names_no_kind(path: Path) -> None:
    names = list(kinds_named(path.read_text(), classes=path != TABLE_OF_KINDS))

    assert names == [], "make it a hook of KindRules or a field of Kind"


@pytest.mark.parametrize(
    "code, name",
    [
        ('if kind.name == "Tenant": ...', "Tenant"),
        ('Unreferenced("Project named", id, ())', "Project"),
        ("if kind.struct is Hub: ...", "Hub"),
        ("cls = osac.ClusterVersion", "ClusterVersion"),
        ("from boatyard.model.generated.osac import Cluster", "Cluster"),
        ('if service == f"{OURS}.Hubs": ...', "Hub"),
    ],
)
def test_a_kind_in_generic_code_is_noticed(code: str, name: str) -> None:
    assert list(kinds_named(code, classes=True)) == [name]


def test_any_in_the_api_only_goes_down() -> None:
    count = sum(mentions_of_any(path.read_text()) for path in API.glob("*.py"))

    assert count <= LIMIT, "give it a type"
    assert count == LIMIT, f"good: lower LIMIT to {count}"


def test_every_any_is_counted() -> None:
    code = 'from typing import Any\n\nx: Any = y  # Any\nz: "list[Any]" = []\nAnything = 1\n'

    assert mentions_of_any(code) == 4


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_rules_are_those_of_the_kinds_struct(kind: ResourceKind) -> None:
    assert kind.written_by_service == (type(kind.rules) is KindRules)
    if not kind.written_by_service:
        (base,) = type(kind.rules).__orig_bases__
        assert get_args(base) == (kind.struct,)


def test_a_hook_that_no_rule_has_is_not_defined() -> None:
    """A misspelt override would never be called; mypy cannot know that it was meant as one."""
    hooks = set(dir(KindRules))
    extra = {
        f"{kind.name}.{name}"
        for kind in KINDS.values()
        for name in vars(type(kind.rules))
        if not name.startswith("_") and name not in hooks
    }

    assert extra == set()


OURS = "boatyard.v1"
MESSAGES = {
    requests.OrderRequest: [
        f"{OURS}.Orders{rpc}Request" for rpc in ("Explain", "Follow", "Retry", "GetReceipt")
    ],
    requests.HistoryRequest: [f"{OURS}.OrdersHistoryRequest"],
    requests.LogRequest: [f"{OURS}.RunLogsReadRequest", f"{OURS}.RunLogsWatchRequest"],
    requests.ReadLogRequest: [f"{OURS}.RunLogsReadRequest"],
    requests.WatchLogRequest: [f"{OURS}.RunLogsWatchRequest"],
    requests.IssueRequest: [f"{OURS}.AccessIssueRequest"],
    requests.HubRequest: [f"{OURS}.HubsCheckRequest", f"{OURS}.HubsPrepareRequest"],
    requests.TemplateRequest: [f"{OURS}.TemplatesGetSchemaRequest"],
    requests.PublishRequest: [f"{OURS}.TemplatesPublishRequest"],
    requests.RoleFileMessage: [f"{OURS}.RoleFile"],
    requests.RunRequest: [f"{OURS}.RoleRunsAskRequest", f"{OURS}.RoleRunsGetRequest"],
    requests.StepRequest: [f"{OURS}.RoleRunsAskRequest"],
    requests.RunStateRequest: [f"{OURS}.RoleRunsGetRequest"],
    requests.WatchRequest: ["osac.public.v1.EventsWatchRequest"],
    requests.ResourceMessage: [view.message for view in VIEWS.values()],
    requests.IdRequest: [f"{service}GetRequest" for service in VIEWS],
    requests.ListRequest: [f"{service}ListRequest" for service in VIEWS],
    requests.CreateRequest: ["osac.public.v1.ClustersCreateRequest"],
    requests.UpdateRequest: ["osac.private.v1.ClustersUpdateRequest"],
}


def test_every_request_is_compared_with_its_messages() -> None:
    shapes = {
        cls
        for cls in vars(requests).values()
        if isinstance(cls, type) and cls.__module__ == requests.__name__
    }

    assert shapes == set(MESSAGES)


@pytest.mark.parametrize("shape", MESSAGES, ids=lambda shape: shape.__name__)
def test_requests_have_the_fields_of_their_messages(shape: type) -> None:
    for name in MESSAGES[shape]:
        assert missing_fields(shape, wire.message(name).DESCRIPTOR) == set(), name


def test_a_field_that_no_message_has_is_noticed() -> None:
    class Wrong:
        id: str
        hub: str

    assert missing_fields(Wrong, wire.message("osac.public.v1.ClustersGetRequest").DESCRIPTOR) == {
        "hub"
    }


def lookups(code: str) -> Iterator[str]:
    """Calls that take rules and the name of one of their attributes."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        target, name = node.args[:2]
        if ast.unparse(target).endswith("rules") and isinstance(name, ast.Constant):
            yield ast.unparse(node).replace("'", '"')


def kinds_named(code: str, *, classes: bool) -> Iterator[str]:
    """Kinds that are mentioned in a text, first word or plural; with `classes`, also as a class."""
    tree = ast.parse(code)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and text:
                plural = node.value.rpartition(".")[2] if classes else ""
                for name in KINDS:
                    if text.split()[:1] == [name] or plural == f"{name}s":
                        yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if classes and name in KINDS:
                    yield name


def mentions_of_any(code: str) -> int:
    return len(re.findall(r"\bAny\b", code))


def missing_fields(shape: type, descriptor: Descriptor) -> set[str]:
    fields = {name for cls in shape.__mro__ for name in vars(cls).get("__annotations__", ())}
    return fields - set(descriptor.fields_by_name)
