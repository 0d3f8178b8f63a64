"""What the verb `template` asks for and prints, against a server that answers as it is told, and without one."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from boatyard.app.main import main
from boatyard.cli.cluster_flags import parse_parameters
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import ClusterTemplate, ClusterTemplateParameterDefinition
from boatyard.roles.content import digest_of
from tests.support.roles import files, write
from tests.support.scripted_server import listing

TYPE = "type.googleapis.com/google.protobuf."
DIGEST = "sha256:" + "0123456789abcdef" * 4
WEB = {
    "id": "web_small",
    "metadata": {"name": "web-small", "tenant": "shared"},
    "title": "Small web cluster",
    "description": "Three servers\nand a page.",
    "node_sets": {"compute": {"host_type": {"id": "bm-small", "name": "bm-small"}, "size": 3}},
    "digest": DIGEST,
    "phases": ["post_install"],
    "version_from": "4.17",
    "version_below": "4.18",
    "allowed_host_types": ["bm-large"],
    "parameters": [
        {"name": "replicas", "type": f"{TYPE}Int64Value", "required": True},
        {"name": "password", "type": f"{TYPE}StringValue", "no_log": True},
        {"name": "disks", "type": f"{TYPE}Value", "description": "Sizes\x1b[2J"},
    ],
}
PLAIN = {"id": "small", "metadata": {"name": "small"}, "title": "Small"}
MISTAKE = {
    "file": "meta/argument_specs.yml",
    "line": 4,
    "path": "argument_specs.main.options.x.type",
    "message": "'integer' is not a type",
    "remedy": "one of str, int",
}


def source(name, state, **status):
    return {"id": name, "status": {"state": state, "origin": "/yard/roles"} | status}


@pytest.fixture
def template_server(scripted_server):
    scripted_server.answers |= {
        "ClusterTemplates/List": listing(PLAIN, WEB),
        "TemplateSources/List": listing(
            source("web", 1, template="web_small", digest=DIGEST),
            source("broken", 2, mistakes=[MISTAKE]),
            source("edited", 2, template="edited", digest=DIGEST, mistakes=[{"message": "is bad"}]),
        ),
    }
    return scripted_server


def test_the_list_tells_operators_what_is_not_offered_and_why(template_server, capsys):
    assert main(["template", "list"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "ID         TITLE              DIGEST        RUNS          ROLE",
        "small      Small              -             -             -",
        "web_small  Small web cluster  0123456789ab  post_install  web",
        "",
        "Not offered:",
        "  broken in /yard/roles",
        "    meta/argument_specs.yml:4: argument_specs.main.options.x.type: "
        "'integer' is not a type; one of str, int",
        "  edited in /yard/roles, 0123456789ab stays on offer",
        "    is bad",
    ]


def test_tenants_are_told_of_templates_only(template_server, capsys):
    def deny(request, context):
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "for operators")

    template_server.answers["TemplateSources/List"] = deny

    assert main(["template", "list"]) == 0
    assert "Not offered" not in capsys.readouterr().out


def test_a_template_in_full(template_server, capsys):
    template_server.answers["ClusterTemplates/List"] = listing(WEB)

    assert main(["template", "show", "web_small"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "ID:          web_small",
        "Name:        web-small",
        "Title:       Small web cluster",
        "Description: Three servers and a page.",
        "Node sets:   compute: 3 x bm-small",
        "Other hosts: bm-large",
        "Versions:    4.17 or later, below 4.18",
        "Runs:        post_install",
        f"Digest:      {DIGEST}",
        "",
        "PARAMETER  TYPE          DEFAULT   DESCRIPTION",
        "replicas   whole number  required  -",
        "password   text, secret  -         -",
        "disks      JSON          -         Sizes\\x1b[2J",
    ]


def test_the_form_as_a_schema(template_server, capsys):
    template_server.answers["Templates/GetSchema"] = lambda request, context: {
        "content_type": "application/schema+json",
        "data": b'{"type": "object", "title": "\\u001b"}',
    }

    assert main(["template", "show", "web_small", "--schema"]) == 0

    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert json.loads(shown) == {"type": "object", "title": "\x1b"}
    assert template_server.requests("Templates/GetSchema")[0].template == "web_small"


# --- roles in a folder ---------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "roles" / "web", files())


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    specs = "argument_specs: {main: {options: {a: {type: integer}, b: {requried: true}}}}"
    return write(tmp_path / "roles" / "bad", files(specs=specs))


def test_a_good_role_is_told_with_its_digest(good, capsys):
    assert main(["template", "lint", str(good)]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "web: good, template web_small, 3 parameters, runs post_install",
        f"  {digest_of(files())}",
    ]


def test_everything_wrong_with_a_role_is_told(good, bad, capsys):
    assert main(["template", "lint", str(good.parent)]) == 1

    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == [
        "bad: 2 mistakes",
        "  meta/argument_specs.yml:1: argument_specs.main.options.a.type: 'integer' is not a type; "
        "one of str, int, float, bool, list, dict, path, raw, json, jsonarg, bytes, bits",
        "  meta/argument_specs.yml:1: argument_specs.main.options.b.requried: "
        "is not a word of argument specs; see its spelling",
    ]
    assert shown[3].startswith("web: good")


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_role_is_not_found(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)

    assert main(["template", "lint", name]) == 3
    assert "there is no" in capsys.readouterr().err


def test_a_role_is_sent_whole_and_offered(template_server, good, capsys):
    template_server.answers["Templates/Publish"] = lambda request, context: {
        "object": source("web", 1, template="web_small", digest=DIGEST)
    }

    assert main(["template", "publish", str(good)]) == 0

    (request,) = template_server.requests("Templates/Publish")
    assert request.role == "web"
    assert {one.path: one.content for one in request.files} == {
        path: file.data for path, file in files().items()
    }
    assert capsys.readouterr().out == f"Template web_small is offered: {DIGEST}\n"


def test_a_role_with_mistakes_is_not_sent(template_server, bad, capsys):
    assert main(["template", "publish", str(bad)]) == 1

    assert template_server.requests("Templates/Publish") == []
    assert capsys.readouterr().out.startswith("bad: 2 mistakes")


def test_what_the_server_finds_is_told(template_server, good, capsys):
    template_server.answers["Templates/Publish"] = lambda request, context: {
        "object": source("web", 2, mistakes=[MISTAKE])
    }

    assert main(["template", "publish", str(good)]) == 1
    assert capsys.readouterr().out.startswith("web: 1 mistake\n  meta/argument_specs.yml:4: ")


# --- ordering from a file --------------------------------------------------------------------------


def definition(name, kind, **more):
    return ClusterTemplateParameterDefinition(name=name, type=f"{TYPE}{kind}", **more)


ASKED = ClusterTemplate(
    parameters=(
        definition("replicas", "Int64Value", required=True),
        definition("share", "DoubleValue"),
        definition("fast", "BoolValue"),
        definition("password", "StringValue", no_log=True),
        definition("disks", "Value"),
    )
)


def test_parameters_come_from_a_file_with_their_types(tmp_path):
    path = tmp_path / "values.yaml"
    path.write_text("replicas: 2\nshare: 1\nfast: true\npassword: a b\ndisks: [{size: 3}]\n")

    found = parse_parameters(["replicas=3"], ASKED, str(path))

    assert {
        name: (one["@type"].rpartition(".")[2], one["value"]) for name, one in found.items()
    } == {
        "replicas": ("Int64Value", "3"),  # what is typed counts
        "share": ("DoubleValue", 1),
        "fast": ("BoolValue", True),
        "password": ("StringValue", "a b"),
        "disks": ("Value", [{"size": 3}]),
    }


def test_a_value_of_another_type_is_left_to_the_server(tmp_path):
    path = tmp_path / "values.yaml"
    path.write_text("replicas: many\nother: 1\npassword: 5\n")

    found = parse_parameters([], ASKED, str(path))

    assert {one["@type"] for one in found.values()} == {f"{TYPE}Value"}


@pytest.mark.parametrize("text", ["- a", "1: 2", "a: [", "a: *b"])
def test_what_is_no_list_of_parameters_is_refused(tmp_path, text):
    path = tmp_path / "values.yaml"
    path.write_text(text)

    with pytest.raises(Refused):
        parse_parameters([], ASKED, str(path))
