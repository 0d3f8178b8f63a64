"""The form of a role: the options of its argument spec, in exact types. Pure; stored with the template as JSON.

`reading_form` makes it, `schema` and `definitions` show it, `check` checks values against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

OPTION_TYPES = (
    *("str", "int", "float", "bool", "list", "dict"),
    *("path", "raw", "json", "jsonarg", "bytes", "bits"),
)
TEXT_TYPES = ("str", "path", "bytes", "bits")

# Integers arrive as 64 bits, inside lists and dicts as doubles.
LARGEST_INT = 2**63 - 1
LARGEST_NESTED_INT = 2**53 - 1

# As Ansible reads sizes: 10, 1.5G, 512MB.
SIZE_PATTERNS = {
    "bytes": r"^[0-9]+(\.[0-9]+)? ?[KMGTPEZYkmgtpezy]?B?$",
    "bits": r"^[0-9]+(\.[0-9]+)? ?[KMGTPEZYkmgtpezy]?b?$",
}


class RequiredIf(msgspec.Struct, frozen=True):
    """When `option` is `value`, all of `needs` are required, or any of them."""

    option: str
    value: Any
    needs: tuple[str, ...]
    any_of: bool = False


class Relations(msgspec.Struct, frozen=True, omit_defaults=True):
    """The relations between the options of one level."""

    mutually_exclusive: tuple[tuple[str, ...], ...] = ()
    required_together: tuple[tuple[str, ...], ...] = ()
    required_one_of: tuple[tuple[str, ...], ...] = ()
    required_if: tuple[RequiredIf, ...] = ()
    required_by: Mapping[str, tuple[str, ...]] = {}


NO_RELATIONS = Relations()


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    """One option of a form."""

    type: str = "str"
    title: str = ""
    description: str = ""
    required: bool = False
    has_default: bool = False
    default: Any = None
    default_text: str = ""  # a default with Jinja, which only the role can evaluate
    choices: tuple[Any, ...] = ()
    elements: str = ""  # of a list; empty: anything
    options: Mapping[str, Option] | None = None  # of a dict, or of a list's dicts; None: anything
    relations: Relations = NO_RELATIONS
    apply_defaults: bool = False
    no_log: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def secret(self) -> bool:
        """Whether the option, or one inside it, is `no_log`."""
        return self.no_log or any(option.secret for option in (self.options or {}).values())

    @property
    def must_be_given(self) -> bool:
        return self.required and not self.has_default

    def element(self) -> Option:
        """The option that each entry of a list must fit."""
        return Option(
            type=self.elements or "raw",
            choices=self.choices,
            options=self.options,
            relations=self.relations,
            no_log=self.no_log,
        )


class Form(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every option of a role's entry point."""

    options: Mapping[str, Option] = {}
    relations: Relations = NO_RELATIONS
    title: str = ""
    description: str = ""


NO_FORM = Form()


def form_to_json(form: Form) -> str:
    return msgspec.json.encode(form).decode()


@lru_cache(maxsize=256)
def form_from_json(text: str) -> Form:
    """The form from its text. Cached, because every order of a template needs it."""
    return msgspec.json.decode(text, type=Form)


def is_same_json(first: Any, second: Any) -> bool:
    """Equal as JSON: true is not 1, 1 is 1.0."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same_json, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            is_same_json(first[key], second[key]) for key in first
        )
    return bool(first == second)


def list_secret_options(form: Form) -> Iterator[str]:
    """Names of the options whose values are shown nowhere."""
    return (name for name, option in form.options.items() if option.secret)
