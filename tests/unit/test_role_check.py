"""What a form takes and what it refuses, as a table; that secrets are in no message."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.errors import Violation
from boatyard.roles.form import Form, Option, Relations, RequiredIf, form_from_json, form_to_json
from boatyard.roles.form_check import check_values
from boatyard.roles.role import TemplateRole, read_role
from boatyard.roles.schema import form_schema
from tests.support.roles import files


def told(form: Form, given: dict[str, Any]) -> list[str]:
    violations: list[Violation] = []
    check_values(form, given, violations, at="p")
    return [str(one) for one in violations]


def one(**said: Any) -> Form:
    return Form(options={"x": Option(**said)})


@pytest.mark.parametrize(
    "said, value, words",
    [
        pytest.param({}, 5, "p.x: is a number; give a text", id="a number for a text"),
        pytest.param({}, None, "p.x: is null; give a text", id="null"),
        pytest.param({}, {"a": 1}, "p.x: is an object; give a text", id="an object for a text"),
        pytest.param({"type": "int"}, "4", "p.x: is a text; give a whole number", id="a text for 4"),
        pytest.param({"type": "int"}, True, "p.x: is true or false; give", id="true for a number"),
        pytest.param({"type": "int"}, 4.5, "p.x: is not a whole number", id="a fraction"),
        pytest.param({"type": "int"}, 2**63, "p.x: is too large a number", id="too large"),
        pytest.param({"type": "bool"}, "yes", "p.x: is a text; give true or false", id="yes"),
        pytest.param({"type": "bool"}, 1, "p.x: is a number; give true or false", id="one for true"),
        pytest.param({"type": "float"}, "1", "p.x: is a text; give a number", id="a text for 1.0"),
        pytest.param({"type": "float"}, 10**400, "p.x: is too large", id="more than a double"),
        pytest.param({"type": "list"}, "a,b", "p.x: is a text; give a list", id="a text for a list"),
        pytest.param({"type": "dict"}, "a=b", "p.x: is a text; give an object", id="text for dict"),
        pytest.param({"type": "bytes"}, "many", "p.x: is not a size; give a size", id="no size"),
        pytest.param({"type": "bytes"}, "5\n", "p.x: is not a size", id="a size and a line end"),
        pytest.param({"type": "raw"}, {"a": [2**60]}, "p.x: has too large a number", id="rounded"),
        pytest.param(
            {"choices": ("a", "b")}, "c", "p.x: 'c' is not one of the choices; give one of 'a', 'b'",
            id="no choice",
        ),
        pytest.param(
            {"type": "int", "choices": (0, 1)}, 2, "p.x: 2 is not one of the choices", id="numbers"
        ),
        pytest.param(
            {"type": "list", "elements": "int"}, [1, "2"], "p.x[1]: is a text", id="an element"
        ),
        pytest.param(
            {"type": "list", "elements": "str", "choices": ("a",)}, ["a", "b"], "p.x[1]: 'b' is not",
            id="an element that is no choice",
        ),
        pytest.param(
            {"type": "list", "elements": "int"}, [2**53], "p.x[0]: is too large", id="inside a list"
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(said: dict[str, Any], value: Any, words: str) -> None:
    (found,) = told(one(**said), {"x": value})

    assert found.startswith(words)


@pytest.mark.parametrize(
    "said, value, kept",
    [
        pytest.param({}, "", "", id="an empty text"),
        pytest.param({}, "{{ lookup('pipe','id') }}", "{{ lookup('pipe','id') }}", id="Jinja"),
        pytest.param({"type": "int"}, 4.0, 4, id="a whole double"),
        pytest.param({"type": "int"}, 2**63 - 1, 2**63 - 1, id="the largest"),
        pytest.param({"type": "bytes"}, "1.5 GB", "1.5 GB", id="a size"),
        pytest.param({"type": "raw"}, None, None, id="raw takes null"),
        pytest.param({"type": "raw"}, {"a": [1.0, 1.5]}, {"a": [1, 1.5]}, id="doubles inside"),
        pytest.param({"type": "json"}, {"a": 1.0}, {"a": 1}, id="an object for JSON"),
        pytest.param({"type": "dict"}, {"a": {"b": None}}, {"a": {"b": None}}, id="an open dict"),
        pytest.param({"type": "float"}, 3, 3, id="a whole number for a number"),
    ],
)
def test_what_fits_is_kept(said: dict[str, Any], value: Any, kept: Any) -> None:
    violations: list[Violation] = []
    found = check_values(one(**said), {"x": value}, violations, at="p")

    assert violations == []
    assert found == {"x": kept}
    assert type(found["x"]) is type(kept)


def test_defaults_are_filled_in_at_every_level() -> None:
    form = Form(
        options={
            "a": Option(has_default=True, default="x", required=True),
            "b": Option(
                type="dict", options={"c": Option(has_default=True, default=1, type="int")}
            ),
            "d": Option(
                type="dict",
                apply_defaults=True,
                options={"e": Option(has_default=True, default="f")},
            ),
            "g": Option(default_text="{{ role }}"),
        }
    )
    violations: list[Violation] = []

    assert check_values(form, {"b": {}}, violations, at="p") == {
        "a": "x",
        "b": {"c": 1},
        "d": {"e": "f"},
    }
    assert check_values(form, {}, violations, at="p") == {"a": "x", "d": {"e": "f"}}
    assert violations == []


def test_all_mistakes_are_told_together_with_their_paths() -> None:
    disk = Option(type="dict", options={"size": Option(type="int", required=True)})
    form = Form(
        options={
            "name": Option(required=True),
            "count": Option(type="int"),
            "disks": Option(type="list", elements="dict", options=disk.options),
        }
    )

    assert told(form, {"count": "1", "disks": [{"size": 1}, {"colour": "red"}], "other": 1}) == [
        "p.other: the template has no such parameter; it has: count, disks, name",
        "p.count: is a text; give a whole number",
        "p.disks[1].colour: is not asked for; there are: size",
        "p.disks[1].size: is required; give a whole number",
        "p.name: is required; give a text",
    ]


RELATIONS = Relations(
    mutually_exclusive=(("a", "b"),),
    required_together=(("c", "d"),),
    required_one_of=(("a", "b", "c"),),
    required_if=(
        RequiredIf("mode", "big", ("d", "e")),
        RequiredIf("mode", "any", ("d", "e"), True),
    ),
    required_by={"e": ("f",)},
)


@pytest.mark.parametrize(
    "given, words",
    [
        pytest.param("a b", "a and b exclude each other; give one of them", id="exclusive"),
        pytest.param("f", "too little is given; give a or b or c", id="one of"),
        pytest.param("a c", "c alone is not enough; give d too", id="together"),
        pytest.param("a mode=big", "mode as it is needs more; give d and e", id="if: all"),
        pytest.param("a mode=any", "mode as it is needs more; give d or e", id="if: any"),
        pytest.param("a e", "e alone is not enough; give f too", id="by"),
        pytest.param("a mode=any e f", "", id="any of two is there"),
        pytest.param("a mode=small", "", id="another value"),
        pytest.param("b", "", id="one is enough"),
    ],
)
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_relations_are_kept_at_every_level(given: str, words: str, nested: bool) -> None:
    options = {name: Option() for name in ("a", "b", "c", "d", "e", "f", "mode")}
    values = dict(word.partition("=")[::2] for word in given.split())
    form = Form(options=options, relations=RELATIONS)
    if nested:
        form = Form(options={"n": Option(type="dict", options=options, relations=RELATIONS)})

    found = told(form, {"n": values} if nested else values)

    place = "p.n" if nested else "p"
    assert found == ([f"{place}: {words}"] if words else [])


def test_an_alias_is_the_option_itself() -> None:
    form = Form(options={"size": Option(type="int", aliases=("count",))})
    violations: list[Violation] = []

    assert check_values(form, {"count": 3}, violations, at="p") == {"size": 3}
    assert violations == []
    assert "given twice" in told(form, {"count": 3, "size": 3})[0]


SECRET = "hunter2-hunter2"
HIDDEN = [
    pytest.param(one(type="int", no_log=True), SECRET, id="of another type"),
    pytest.param(one(choices=("a",), no_log=True), SECRET, id="no choice"),
    pytest.param(one(type="list", elements="int", no_log=True), [SECRET], id="in a list"),
    pytest.param(
        one(type="list", elements="str", choices=("a",), no_log=True), [SECRET], id="list of choices"
    ),
    pytest.param(
        one(type="dict", no_log=True, options={"y": Option(choices=("a",))}), {"y": SECRET},
        id="in a secret dict",
    ),
    pytest.param(
        one(type="dict", no_log=True, options={"y": Option()}), {SECRET: "y"}, id="as a key"
    ),
    pytest.param(
        one(type="dict", options={"y": Option(choices=("a",), no_log=True)}), {"y": SECRET},
        id="secret inside",
    ),
    pytest.param(
        one(type="list", elements="dict", no_log=True, options={"y": Option(choices=("a",))}),
        [{"y": SECRET}],
        id="dicts in a secret list",
    ),
    pytest.param(one(type="bytes", no_log=True), SECRET, id="a size"),
]  # fmt: skip


@pytest.mark.parametrize("form, value", HIDDEN)
def test_a_secret_is_in_no_message(form: Form, value: Any) -> None:
    found = told(form, {"x": value})

    assert found
    assert SECRET not in " ".join(found)


def test_a_secret_is_in_no_schema() -> None:
    shown = form_schema(one(no_log=True, has_default=True, default=SECRET))

    assert SECRET not in str(shown)
    assert shown["properties"]["x"]["writeOnly"] is True


def test_a_form_survives_being_kept() -> None:
    read = read_role("web", files())
    assert isinstance(read, TemplateRole)

    assert form_from_json(form_to_json(read.form)) == read.form


def test_the_schema_tells_no_default_of_a_secret() -> None:
    made = form_schema(one(type="str", no_log=True, has_default=True, default="hunter2"))

    assert made["properties"]["x"]["x-sensitive"]
    assert "hunter2" not in str(made)
