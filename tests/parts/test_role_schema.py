"""The JSON Schema of a form takes exactly what the check takes; an independent validator is the judge."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from boatyard.model.errors import Violation
from boatyard.roles.form import Form, Option, Relations, RequiredIf
from boatyard.roles.form_check import check_values
from boatyard.roles.role import TemplateRole, read_role
from boatyard.roles.schema import form_schema
from tests.support.roles import files

NAMES = ("a", "b", "c", "d")
SCALARS = ("str", "path", "int", "float", "bool", "bytes", "bits")

texts = st.text(max_size=5).filter(lambda text: not text.endswith("\n"))
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts | st.sampled_from(["1", "5GB", "8kb", "yes"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=3)
    ),
    max_leaves=6,
)


def fitting(option: Option) -> st.SearchStrategy[Any]:
    """Values of the option's type, more often than not."""
    if option.choices and option.type != "list":
        return st.sampled_from(option.choices)
    match option.type:
        case "str" | "path":
            return texts
        case "bytes":
            return st.sampled_from(["1", "5GB", "1.5 k"])
        case "bits":
            return st.sampled_from(["1", "5Gb", "1.5 k"])
        case "int":
            return st.integers(-5, 5) | st.sampled_from([1.0, 2**53 - 1])
        case "float":
            return numbers
        case "bool":
            return st.booleans()
        case "list":
            return st.lists(fitting(option.element()), max_size=3)
        case "dict" if option.options is not None:
            return objects(option.options)
        case "dict":
            return st.dictionaries(texts, json_values, max_size=2)
        case "json" | "jsonarg":
            return texts | st.lists(json_values, max_size=2)
    return json_values


def objects(options: Any) -> st.SearchStrategy[dict[str, Any]]:
    mostly = {
        name: fitting(option) | fitting(option) | json_values for name, option in options.items()
    }
    return st.fixed_dictionaries({}, optional=mostly)


@st.composite
def an_option(draw: st.DrawFn, depth: int) -> Option:
    types = (*SCALARS, "raw", "json", "list", "dict") if depth else SCALARS
    type_ = draw(st.sampled_from(types))
    option = Option(
        type=type_,
        required=draw(st.booleans()),
        no_log=draw(st.booleans()),
        elements=draw(st.sampled_from(("", "str", "int", "dict"))) if type_ == "list" else "",
    )
    if depth and (type_ == "dict" or option.elements == "dict") and draw(st.booleans()):
        options = draw(some_options(depth - 1))
        option = msgspec.structs.replace(
            option, options=options, relations=draw(some_relations(options))
        )
    if type_ in ("str", "int") and draw(st.booleans()):
        choices = draw(st.lists(fitting(Option(type=type_)), min_size=1, max_size=3, unique=True))
        option = msgspec.structs.replace(option, choices=tuple(choices))
    if type_ in SCALARS and draw(st.booleans()):
        option = msgspec.structs.replace(option, has_default=True, default=draw(fitting(option)))
    return option


def some_options(depth: int) -> st.SearchStrategy[dict[str, Option]]:
    return st.dictionaries(st.sampled_from(NAMES), an_option(depth), min_size=1, max_size=4)


@st.composite
def some_relations(draw: st.DrawFn, options: dict[str, Option]) -> Relations:
    names = st.sampled_from(sorted(options))
    groups = st.lists(st.lists(names, min_size=1, max_size=3, unique=True).map(tuple), max_size=1)
    single = [name for name in sorted(options) if options[name].type in SCALARS]
    conditions: list[RequiredIf] = []
    if single and draw(st.booleans()):
        name = draw(st.sampled_from(single))
        needs = tuple(draw(st.lists(names, min_size=1, max_size=2, unique=True)))
        conditions.append(
            RequiredIf(name, draw(fitting(options[name])), needs, draw(st.booleans()))
        )
    return Relations(
        mutually_exclusive=tuple(draw(groups)),
        required_together=tuple(draw(groups)),
        required_one_of=tuple(draw(groups)),
        required_if=tuple(conditions),
        required_by=dict(draw(st.lists(st.tuples(names, st.tuples(names)), max_size=1))),
    )


@st.composite
def forms_and_values(draw: st.DrawFn) -> tuple[Form, dict[str, Any]]:
    options = draw(some_options(2))
    form = Form(options=options, relations=draw(some_relations(options)))
    return form, draw(objects(options) | st.dictionaries(texts, json_values, max_size=2))


def violations_of(form: Form, values: dict[str, Any]) -> tuple[list[Violation], dict[str, Any]]:
    found: list[Violation] = []
    return found, check_values(form, values, found, at="p")


@settings(max_examples=200, deadline=None)
@given(forms_and_values())
def test_schema_and_check_agree(both: tuple[Form, dict[str, Any]]) -> None:
    form, values = both
    schema = form_schema(form)
    Draft202012Validator.check_schema(schema)

    violations, _ = violations_of(form, values)

    told = [str(one) for one in violations]
    assert Draft202012Validator(schema).is_valid(values) == (not violations), (told, schema)


@settings(max_examples=200, deadline=None)
@given(forms_and_values())
def test_what_was_kept_once_is_kept_again_unchanged(both: tuple[Form, dict[str, Any]]) -> None:
    form, values = both
    violations, kept = violations_of(form, values)
    if violations:
        return
    # Two that exclude each other may both have defaults: what was filled in is not asked for again.
    loose = msgspec.structs.replace(
        form, relations=msgspec.structs.replace(form.relations, mutually_exclusive=())
    )
    if any(option.relations.mutually_exclusive for option in form.options.values()):
        return

    again, same = violations_of(loose, kept)

    assert again == []
    assert same == kept
    assert json.loads(json.dumps(kept)) == kept


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({"replicas": st.sampled_from([1, 2, 3])}, optional={"greeting": texts})
)
def test_generated_values_pass_the_form_of_a_role(values: dict[str, Any]) -> None:
    read = read_role("web", files())
    assert isinstance(read, TemplateRole)

    violations, kept = violations_of(read.form, values)

    assert violations == []
    assert kept == {"greeting": "hello"} | values


@pytest.mark.parametrize(
    "loosened",
    [
        pytest.param({"required": ["x"]}, id="a schema that forgets what is required"),
        pytest.param({"additionalProperties": False}, id="a schema that takes anything"),
    ],
)
def test_the_comparison_would_find_a_difference(loosened: dict[str, Any]) -> None:
    form = Form(options={"x": Option(required=True)})
    schema = form_schema(form)
    for key in loosened:
        assert schema.pop(key) == loosened[key]
    wrong = {} if "required" in loosened else {"x": "", "y": ""}

    assert Draft202012Validator(schema).is_valid(wrong)
    assert violations_of(form, wrong)[0]
