"""Random values for a form: sets that it must accept and sets that it must refuse. Pure; used by the questions.

The values are not derived from `roles/form_check.py`, which is under test here. It is only asked which sets satisfy the
relations between options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from boatyard.model.errors import Violation
from boatyard.roles.form import LARGEST_INT, LARGEST_NESTED_INT, Form, Option
from boatyard.roles.form_check import check_values

_MAX_TRIES = 300
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
# Texts that tenants may type. None of them may be read as anything but a text.
ODD_TEXTS = (
    "{{ lookup('pipe', 'id') }}",
    "{% raw %}",
    "!unsafe x",
    "$(id); `id` | cat",
    "line one\nline two",
    "' \" \\ %s {0}",
    "yes",
    "0x10",
    " ",
    "Grüße, 你好 🙂",
    "",
)
# For every type, a value of another type.
_WRONG_VALUES: Mapping[str, Any] = {
    "str": 7,
    "path": ["a", "b"],
    "int": "four",
    "float": "four",
    "bool": "yes",
    "list": "one",
    "dict": ["one"],
    "json": 7,
    "jsonarg": 7,
    "bytes": "many",
    "bits": "many",
}


@dataclass(frozen=True)
class BadValues:
    """Values that must be refused, with the path that the refusal must name."""

    reason: str
    values: Mapping[str, Any]
    path: str


class ValueGenerator:
    """Makes values for one form. `pinned` values are in every set; the same `chance` makes the same sets."""

    def __init__(self, form: Form, chance: Random, pinned: Mapping[str, Any] | None = None) -> None:
        self._form = form
        self._random = chance
        self._pinned = dict(pinned or {})

    def make_minimal(self) -> dict[str, Any] | None:
        """A set with the required values only. None when no values fit."""
        names = [name for name, option in self._form.options.items() if option.must_be_given]
        if (values := self._make_fitting(names)) is not None:
            return values
        others = [name for name in self._form.options if name not in names]
        for extra in range(1, len(others) + 1):  # relations may ask for more
            for _ in range(_MAX_TRIES // len(others) + 1):
                values = self._make_fitting([*names, *self._random.sample(others, extra)])
                if values is not None:
                    return values
        return None

    def make_maximal(self) -> dict[str, Any] | None:
        """A set with all options, or as many as may be given together. None when no values fit."""
        names = list(self._form.options)
        if (values := self._make_fitting(names)) is not None:
            return values
        for fewer in range(1, len(names) + 1):
            for _ in range(_MAX_TRIES // len(names) + 1):
                values = self._make_fitting(self._random.sample(names, len(names) - fewer))
                if values is not None:
                    return values
        return None

    def iter_good(self, count: int) -> Iterator[dict[str, Any]]:
        """Sets that must be accepted, with odd texts in them. Fewer than `count` when hardly any fit."""
        produced = 0
        for _ in range(count * 10):
            names = [
                name
                for name, option in self._form.options.items()
                if option.must_be_given or self._random.random() < 0.6
            ]
            values = self._make_fitting(names, odd=True)
            if values is not None:
                yield values
                produced += 1
            if produced == count:
                return

    def iter_bad(self, at: str) -> Iterator[BadValues]:
        """Sets with exactly one mistake each."""
        values = self.make_maximal()
        if values is None:
            return
        yield BadValues(
            "a parameter that is not asked for",
            {**values, "never_asked_for": 1},
            f"{at}.never_asked_for",
        )
        for name, option in self._form.options.items():
            if option.must_be_given and name in values:
                incomplete = {
                    other: good_value for other, good_value in values.items() if other != name
                }
                yield BadValues(f"without {name}, which is required", incomplete, f"{at}.{name}")
        for name, good_value in values.items():
            for reason, bad_value, path in self._iter_mistakes(
                self._form.options[name], good_value, f"{at}.{name}"
            ):
                yield BadValues(reason, {**values, name: bad_value}, path)

    def _iter_mistakes(self, option: Option, value: Any, at: str) -> Iterator[tuple[str, Any, str]]:
        """For each mistake: a description, the bad value, and the path of the mistake."""
        where = at.partition(".")[2].partition(".")[2] or at
        if option.type in _WRONG_VALUES:
            yield f"{where} of another type", _WRONG_VALUES[option.type], at
            yield f"{where} as null", None, at
        if option.type == "int":
            yield f"{where} too large", LARGEST_INT + 1, at
        if option.choices and option.type in ("str", "path"):
            yield f"{where} that is none of its choices", "none-of-these", at
        if option.type == "list" and isinstance(value, list) and option.elements:
            element = option.element()
            first = value[0] if value else self._make_value(element, odd=False)
            for reason, bad_value, path in self._iter_mistakes(element, first, f"{at}[0]"):
                yield reason, [bad_value, *value[1:]], path
        if option.type == "dict" and option.options is not None and isinstance(value, dict):
            mistake_path = at if option.no_log else f"{at}.never_asked_for"
            yield f"{where} with a key too many", {**value, "never_asked_for": 1}, mistake_path
            for name, entry in value.items():
                for reason, bad_value, path in self._iter_mistakes(
                    option.options[name], entry, f"{at}.{name}"
                ):
                    yield reason, {**value, name: bad_value}, path

    def _make_fitting(self, names: list[str], *, odd: bool = False) -> dict[str, Any] | None:
        """Values for these options; None when the relations between options forbid the set."""
        for _ in range(4):
            values = {
                name: self._make_value(self._form.options[name], odd=odd, top=True)
                for name in self._form.options
                if name in names and name not in self._pinned
            }
            values |= self._pinned
            violations: list[Violation] = []
            check_values(self._form, values, violations, at="")
            # Only missing and excluded options count: whether a value itself fits is not the question here.
            if not violations or not _is_about_sets(violations, self._form):
                return values
        return None

    def _make_value(self, option: Option, *, odd: bool, top: bool = False) -> Any:
        chance = self._random
        if option.choices and option.type != "list":
            return chance.choice(option.choices)
        match option.type:
            case "str" | "path" | "raw":
                if option.no_log:
                    return f"Secret{chance.getrandbits(80):020x}"
                return chance.choice(ODD_TEXTS) if odd else self._make_word()
            case "int":
                largest = LARGEST_INT if top else LARGEST_NESTED_INT
                return chance.choice((0, -1, largest, -largest)) if odd else chance.randint(1, 5)
            case "float":
                return chance.choice((0.0, -1.5, 1e300, 3)) if odd else chance.randint(1, 50) / 10
            case "bool":
                return chance.random() < 0.5
            case "bytes":
                return chance.choice(("512", "1.5 k", "10GB") if odd else ("512MB", "10GB"))
            case "bits":
                return chance.choice(("512", "1.5 k", "10Gb") if odd else ("512Mb", "10Gb"))
            case "list":
                count = chance.randint(0, 3) if odd else chance.randint(1, 2)
                return [self._make_value(option.element(), odd=odd) for _ in range(count)]
            case "dict" if option.options is not None:
                return self._make_object(option, odd=odd)
            case "dict":
                return {self._make_word(): self._make_word()}
        return {"made": self._make_word()}  # json, jsonarg

    def _make_object(self, option: Option, *, odd: bool) -> dict[str, Any]:
        """A value for a dict option. Its relations are satisfied by trying."""
        options = option.options or {}
        subform = Form(options=options, relations=option.relations)
        values = ValueGenerator(subform, self._random).make_maximal()
        if odd and values is not None:
            needed = {name for name, suboption in options.items() if suboption.must_be_given}
            fewer = {
                name: value
                for name, value in values.items()
                if name in needed or self._random.random() < 0.5
            }
            violations: list[Violation] = []
            check_values(subform, fewer, violations, at="")
            return values if violations else fewer
        return values or {}

    def _make_word(self) -> str:
        return "".join(self._random.choice(_LETTERS) for _ in range(8))


def _is_about_sets(violations: list[Violation], form: Form) -> bool:
    """Whether the set of options is wrong, not a value: relations have no path, options may be missing."""
    return any(not violation.path or violation.missing for violation in violations)
