"""Checks values against a form, collects all mistakes and fills in defaults. Pure; called at admission.

Stricter than Ansible, which accepts "4" for 4 and a dict for its text: a typing error is reported before anything
runs. No message contains the value of a secret.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from boatyard.model.errors import Violation
from boatyard.roles.form import (
    LARGEST_INT,
    LARGEST_NESTED_INT,
    SIZE_PATTERNS,
    Form,
    Option,
    Relations,
    is_same_json,
)

LONGEST_TEXT = 256 * 1024
_LONGEST_SHOWN = 80
_TYPE_TEXTS = {
    "str": "a text",
    "path": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "json": "a text, an object or a list",
    "jsonarg": "a text, an object or a list",
    "bytes": "a size such as 512MB",
    "bits": "a size such as 512Mb",
}


def check_values(
    form: Form, values: Mapping[str, Any], violations: list[Violation], *, at: str
) -> dict[str, Any]:
    """The values by the names of the form's options, with defaults. Adds what does not fit to `violations`."""
    level = _LevelChecker(form.options, form.relations, at, top=True)
    return level.check(values, violations)


def check_value(
    option: Option, value: Any, violations: list[Violation], *, at: str, top: bool = True
) -> Any:
    """The value in the form in which it is stored. Also called for defaults and choices when a form is read."""
    problem = _type_problem(option, value, top=top)
    if problem:
        violations.append(Violation(at, problem, f"give {_describe_expected(option)}"))
        return value
    if option.type == "list":
        element = option.element()
        return [
            check_value(element, entry, violations, at=f"{at}[{index}]", top=False)
            for index, entry in enumerate(value)
        ]
    if option.choices and not any(is_same_json(value, choice) for choice in option.choices):
        subject = "is" if option.no_log else f"{_format_value(value)} is"
        violations.append(
            Violation(at, f"{subject} not one of the choices", f"give {_describe_expected(option)}")
        )
        return value
    if option.type == "dict" and option.options is not None:
        return _LevelChecker(option.options, option.relations, at, secret=option.no_log).check(
            value, violations
        )
    return _to_stored_value(option, value)


def _type_problem(option: Option, value: Any, *, top: bool) -> str:
    """Why the value is not of the option's type; empty when it is."""
    if option.type == "raw":
        return _raw_problem(value)
    if value is None:
        return "is null"
    largest = LARGEST_INT if top else LARGEST_NESTED_INT
    match option.type, value:
        case "bool", bool():
            return ""
        case _, bool():
            return "is true or false"
        case "int", float() if not value.is_integer():
            return "is not a whole number"
        case "int", int() | float():
            return "" if abs(value) <= largest else "is too large a number"
        case "float", int() | float():
            return "" if _is_finite(value) else "is too large a number"
        case (("str" | "path" | "bytes" | "bits" | "json" | "jsonarg"), str()):
            return _text_problem(option, value)
        case ("list", list()) | ("dict", dict()) | (("json" | "jsonarg"), dict() | list()):
            has_any_content = option.type != "list" and option.options is None
            return _raw_problem(value) if has_any_content else ""
    return f"is {_describe_type(value)}"


def _text_problem(option: Option, value: str) -> str:
    if len(value) > LONGEST_TEXT:
        return f"has {len(value)} characters, more than {LONGEST_TEXT}"
    pattern = SIZE_PATTERNS.get(option.type)
    if pattern and not re.fullmatch(pattern.strip("^$"), value, re.ASCII):
        return "is not a size"
    return ""


def _raw_problem(value: Any) -> str:
    """Why an untyped value is refused; empty when it is fine. Numbers are doubles: none may be rounded."""
    match value:
        case bool() | None | str():
            return ""
        case int() | float():
            exact = _is_finite(value) and (
                isinstance(value, float) or abs(value) <= LARGEST_NESTED_INT
            )
            return "" if exact else "has too large a number"
        case list():
            return next(filter(None, map(_raw_problem, value)), "")
        case dict():
            return next(filter(None, map(_raw_problem, value.values())), "")
    return f"is {_describe_type(value)}"


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _to_stored_value(option: Option, value: Any) -> Any:
    """The value to store. JSON has one type of number: 3.0 becomes 3 unless the option is a float."""
    match value:
        case bool():
            return value
        case float() if option.type != "float":
            whole = value.is_integer() and abs(value) <= LARGEST_NESTED_INT
            return int(value) if whole or option.type == "int" else value
        case list():
            return [_to_stored_value(_RAW, entry) for entry in value]
        case dict():
            return {key: _to_stored_value(_RAW, entry) for key, entry in value.items()}
    return value


_RAW = Option(type="raw")


class _LevelChecker:
    """The options of one object: of the whole form, or of a dict in it."""

    def __init__(
        self,
        options: Mapping[str, Option],
        relations: Relations,
        at: str,
        *,
        top: bool = False,
        secret: bool = False,
    ) -> None:
        self._options = options
        self._relations = relations
        self._at = at
        self._top = top
        self._secret = secret

    def check(self, values: Mapping[str, Any], violations: list[Violation]) -> dict[str, Any]:
        values_by_name = self._resolve_aliases(values, violations)
        completed = {}
        for name, value in values_by_name.items():
            option = self._options[name]
            if self._secret and not option.no_log:
                option = _make_secret(option)
            completed[name] = check_value(
                option, value, violations, at=self._path(name), top=self._top
            )
        for name, option in self._options.items():
            if name in values_by_name:
                continue
            if option.has_default:
                completed[name] = option.default
            elif option.apply_defaults and option.options is not None:
                completed[name] = _LevelChecker(
                    option.options, option.relations, self._path(name)
                ).check({}, violations)
            elif option.required:
                violations.append(
                    Violation(
                        self._path(name),
                        "is required",
                        f"give {_describe_expected(option)}",
                        missing=True,
                    )
                )
        # Ansible counts defaults as given, except where two exclude each other; and so do we.
        violations += _find_exclusive_violations(self._relations, values_by_name, self._at)
        violations += _find_missing_options(self._relations, completed, self._at)
        return completed

    def _resolve_aliases(
        self, values: Mapping[str, Any], violations: list[Violation]
    ) -> dict[str, Any]:
        names_by_alias = {
            alias: name for name, option in self._options.items() for alias in option.aliases
        } | {name: name for name in self._options}
        values_by_name: dict[str, Any] = {}
        for key, value in values.items():
            name = names_by_alias.get(key)
            if name is None:
                violations.append(self._unknown_key_violation(key))
            elif name in values_by_name:
                violations.append(
                    Violation(self._path(name), "is given twice, once by another name", "keep one")
                )
            else:
                values_by_name[name] = value
        return values_by_name

    def _unknown_key_violation(self, key: str) -> Violation:
        offered = ", ".join(sorted(self._options)) or "none"
        if self._secret:  # what was given as a key may be the secret itself
            return Violation(self._at, "has a key that is not asked for", f"there are: {offered}")
        if self._top:
            return Violation(
                self._path(key), "the template has no such parameter", f"it has: {offered}"
            )
        return Violation(self._path(key), "is not asked for", f"there are: {offered}")

    def _path(self, name: str) -> str:
        shown_name = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."
        return f"{self._at}.{shown_name}" if self._at else shown_name


def _make_secret(option: Option) -> Option:
    """The option with no_log: everything inside a secret is secret."""
    return Option(
        type=option.type,
        choices=option.choices,
        elements=option.elements,
        options=option.options,
        relations=option.relations,
        no_log=True,
    )


def _find_exclusive_violations(
    relations: Relations, values: Mapping[str, Any], at: str
) -> Iterator[Violation]:
    for names in relations.mutually_exclusive:
        present = [name for name in names if name in values]
        if len(present) > 1:
            yield Violation(at, f"{_and(present)} exclude each other", "give one of them")


def _find_missing_options(
    relations: Relations, values: Mapping[str, Any], at: str
) -> Iterator[Violation]:
    for names in relations.required_one_of:
        if not any(name in values for name in names):
            yield Violation(at, "too little is given", f"give {_or(names)}")
    for names in relations.required_together:
        present = [name for name in names if name in values]
        missing = [name for name in names if name not in values]
        if present and missing:
            yield Violation(at, f"{_and(present)} alone is not enough", f"give {_and(missing)} too")
    for rule in relations.required_if:
        if rule.option not in values or not is_same_json(values[rule.option], rule.value):
            continue
        missing = [name for name in rule.needs if name not in values]
        if rule.any_of and missing and len(missing) == len(rule.needs):
            yield Violation(at, f"{rule.option} as it is needs more", f"give {_or(rule.needs)}")
        elif missing and not rule.any_of:
            yield Violation(at, f"{rule.option} as it is needs more", f"give {_and(missing)}")
    for name, needs in relations.required_by.items():
        missing = [need for need in needs if need not in values]
        if name in values and missing:
            yield Violation(at, f"{name} alone is not enough", f"give {_and(missing)} too")


def _describe_expected(option: Option) -> str:
    if option.choices and option.type != "list":
        return f"one of {', '.join(_format_value(choice) for choice in option.choices)}"
    if option.type == "list" and option.elements in _TYPE_TEXTS:
        return f"a list, each entry {_TYPE_TEXTS[option.elements]}"
    return _TYPE_TEXTS.get(option.type, "a value")


def _describe_type(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
    return "nothing that can be sent"


def _format_value(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _and(names: Any) -> str:
    return " and ".join(names)


def _or(names: Any) -> str:
    return " or ".join(names)
