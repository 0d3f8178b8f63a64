"""A form as JSON Schema 2020-12, for programs that display it: the console, a portal, an editor. Pure.

The schema and `check` accept the same values; a test compares them. Aliases are only in `x-aliases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boatyard.roles.form import (
    LARGEST_INT,
    LARGEST_NESTED_INT,
    SIZE_PATTERNS,
    Form,
    Option,
    Relations,
    is_same_json,
)
from boatyard.roles.form_check import LONGEST_TEXT

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONTENT_TYPE = "application/schema+json"

Schema = dict[str, Any]


def form_schema(form: Form, *, title: str = "") -> Schema:
    """The schema of the object that has all parameters by name."""
    schema = _object(form.options, form.relations, top=True)
    texts = {"title": title or form.title, "description": form.description}
    return {"$schema": DIALECT, **{key: text for key, text in texts.items() if text}, **schema}


def _object(options: Mapping[str, Option], relations: Relations, *, top: bool) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: _option(option, top=top) for name, option in options.items()},
        "additionalProperties": False,
    }
    required = [name for name, option in options.items() if option.must_be_given]
    if required:
        schema["required"] = required
    rules = list(_rules(relations, options))
    if rules:
        schema["allOf"] = rules
    return schema


def _option(option: Option, *, top: bool) -> Schema:
    schema: Schema = {}
    if option.title:
        schema["title"] = option.title
    if option.description:
        schema["description"] = option.description
    schema |= _type(option, top=top)
    if option.choices and option.type != "list":
        schema["enum"] = list(option.choices)
    if option.aliases:
        schema["x-aliases"] = list(option.aliases)
    if option.secret:
        schema |= {"writeOnly": True, "x-sensitive": True}
    elif option.has_default:  # the default of a secret is secret too
        schema["default"] = option.default
    elif option.default_text:
        schema["x-default-expression"] = option.default_text
    return schema


def _type(option: Option, *, top: bool) -> Schema:
    match option.type:
        case "str" | "path":
            return {"type": "string", "maxLength": LONGEST_TEXT}
        case "bytes" | "bits":
            return {
                "type": "string",
                "maxLength": LONGEST_TEXT,
                "pattern": SIZE_PATTERNS[option.type],
            }
        case "int":
            largest = LARGEST_INT if top else LARGEST_NESTED_INT
            return {"type": "integer", "minimum": -largest, "maximum": largest}
        case "float":
            return {"type": "number"}
        case "bool":
            return {"type": "boolean"}
        case "list":
            return {"type": "array", "items": _option(option.element(), top=False)}
        case "dict" if option.options is not None:
            return _object(option.options, option.relations, top=False)
        case "dict":
            return {"type": "object"}
        case "json" | "jsonarg":
            return {"type": ["string", "object", "array"], "maxLength": LONGEST_TEXT}
    return {}


def _rules(relations: Relations, options: Mapping[str, Option]) -> Iterator[Schema]:
    """The relations as schemas. Options with a default count as given, except where options exclude each other."""
    filled = {name for name, option in options.items() if _is_filled(option)}
    for names in relations.mutually_exclusive:
        for index, option_name in enumerate(names):
            for other in names[index + 1 :]:
                yield {"not": {"required": [option_name, other]}}
    for names in relations.required_one_of:
        if not filled & set(names):
            yield {"anyOf": [{"required": [name]} for name in names]}
    for names in relations.required_together:
        for name in names:
            yield from _required_schemas(
                name, [option_name for option_name in names if option_name != name], filled
            )
    for name, needs in relations.required_by.items():
        yield from _required_schemas(name, needs, filled)
    for rule in relations.required_if:
        missing = [name for name in rule.needs if name not in filled]
        if not missing or (rule.any_of and len(missing) < len(rule.needs)):
            continue
        consequence: Schema = {"required": missing}
        if rule.any_of:
            consequence = {"anyOf": [{"required": [name]} for name in missing]}
        yield {"if": _value_schema(rule.option, rule.value, options), "then": consequence}


def _value_schema(name: str, value: Any, options: Mapping[str, Option]) -> Schema:
    """A schema that matches when the option has the value, also when it is left out and the value is its default."""
    condition: Schema = {"properties": {name: {"const": value}}}
    option = options[name]
    if option.has_default and is_same_json(option.default, value):
        return condition
    return {**condition, "required": [name]}


def _required_schemas(name: str, needs: Any, filled: set[str]) -> Iterator[Schema]:
    missing = [need for need in needs if need not in filled]
    if not missing:
        return
    if name in filled:
        yield {"required": missing}
    else:
        yield {"dependentRequired": {name: missing}}


def _is_filled(option: Option) -> bool:
    return option.has_default or (option.apply_defaults and option.options is not None)
