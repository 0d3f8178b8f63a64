"""Values for a form, made by chance: such that it must take, and such that it must refuse. Pure; used by the questions.

What is made here is not made by looking at `roles/check.py`: that is what is tried. It only says which of the sets
that are possible keep the relations between options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from boatyard.model.errors import Violation
from boatyard.roles.check import check
from boatyard.roles.form import LARGEST_INSIDE, LARGEST_INT, Form, Option

_TRIES = 300
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
# What tenants may type. Nothing of it may be read as anything but a text.
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
# Of every type, something that is none of it.
_WRONG: Mapping[str, Any] = {
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
class Bad:
    """Values that must be refused, with the path that must be named."""

    why: str
    values: Mapping[str, Any]
    path: str


class Fuzz:
    """Makes values for one form. `pinned` are in every set; the same `chance` makes the same sets."""

    def __init__(self, form: Form, chance: Random, pinned: Mapping[str, Any] | None = None) -> None:
        self._form = form
        self._chance = chance
        self._pinned = dict(pinned or {})

    def least(self) -> dict[str, Any] | None:
        """Only what must be given; everything else has its default, or nothing. None when no values fit."""
        names = [name for name, option in self._form.options.items() if option.must_be_given]
        if (values := self._fitting(names)) is not None:
            return values
        others = [name for name in self._form.options if name not in names]
        for extra in range(1, len(others) + 1):  # relations may ask for more
            for _ in range(_TRIES // len(others) + 1):
                values = self._fitting([*names, *self._chance.sample(others, extra)])
                if values is not None:
                    return values
        return None

    def most(self) -> dict[str, Any] | None:
        """Everything, or as much of it as may be given together."""
        names = list(self._form.options)
        if (values := self._fitting(names)) is not None:
            return values
        for fewer in range(1, len(names) + 1):
            for _ in range(_TRIES // len(names) + 1):
                values = self._fitting(self._chance.sample(names, len(names) - fewer))
                if values is not None:
                    return values
        return None

    def good(self, count: int) -> Iterator[dict[str, Any]]:
        """Sets that must be taken, with odd texts in them. Fewer when hardly any fit."""
        produced = 0
        for _ in range(count * 10):
            names = [
                name
                for name, option in self._form.options.items()
                if option.must_be_given or self._chance.random() < 0.6
            ]
            values = self._fitting(names, odd=True)
            if values is not None:
                yield values
                produced += 1
            if produced == count:
                return

    def bad(self, at: str) -> Iterator[Bad]:
        """One mistake each, in values that are good otherwise."""
        values = self.most()
        if values is None:
            return
        yield Bad(
            "a parameter that is not asked for",
            {**values, "never_asked_for": 1},
            f"{at}.never_asked_for",
        )
        for name, option in self._form.options.items():
            if option.must_be_given and name in values:
                incomplete = {
                    other: good_value for other, good_value in values.items() if other != name
                }
                yield Bad(f"without {name}, which is required", incomplete, f"{at}.{name}")
        for name, good_value in values.items():
            for reason, bad_value, path in self._wrong(
                self._form.options[name], good_value, f"{at}.{name}"
            ):
                yield Bad(reason, {**values, name: bad_value}, path)

    def _wrong(self, option: Option, value: Any, at: str) -> Iterator[tuple[str, Any, str]]:
        """Why, the wrong value, and where in it the mistake is."""
        where = at.partition(".")[2].partition(".")[2] or at
        if option.type in _WRONG:
            yield f"{where} of another type", _WRONG[option.type], at
            yield f"{where} as null", None, at
        if option.type == "int":
            yield f"{where} too large", LARGEST_INT + 1, at
        if option.choices and option.type in ("str", "path"):
            yield f"{where} that is none of its choices", "none-of-these", at
        if option.type == "list" and isinstance(value, list) and option.elements:
            element = option.element()
            first = value[0] if value else self._value(element, odd=False)
            for reason, bad_value, path in self._wrong(element, first, f"{at}[0]"):
                yield reason, [bad_value, *value[1:]], path
        if option.type == "dict" and option.options is not None and isinstance(value, dict):
            mistake_path = at if option.no_log else f"{at}.never_asked_for"
            yield f"{where} with a key too many", {**value, "never_asked_for": 1}, mistake_path
            for name, entry in value.items():
                for reason, bad_value, path in self._wrong(
                    option.options[name], entry, f"{at}.{name}"
                ):
                    yield reason, {**value, name: bad_value}, path

    def _fitting(self, names: list[str], *, odd: bool = False) -> dict[str, Any] | None:
        """Values for these, if the relations between options allow them."""
        for _ in range(4):
            values = {
                name: self._value(self._form.options[name], odd=odd, top=True)
                for name in self._form.options
                if name in names and name not in self._pinned
            }
            values |= self._pinned
            violations: list[Violation] = []
            check(self._form, values, violations, at="")
            # Only what is missing or excluded: whether a value itself fits is not asked here.
            if not violations or not _is_about_sets(violations, self._form):
                return values
        return None

    def _value(self, option: Option, *, odd: bool, top: bool = False) -> Any:
        chance = self._chance
        if option.choices and option.type != "list":
            return chance.choice(option.choices)
        match option.type:
            case "str" | "path" | "raw":
                if option.no_log:
                    return f"Secret{chance.getrandbits(80):020x}"
                return chance.choice(ODD_TEXTS) if odd else self._word()
            case "int":
                largest = LARGEST_INT if top else LARGEST_INSIDE
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
                return [self._value(option.element(), odd=odd) for _ in range(count)]
            case "dict" if option.options is not None:
                return self._object(option, odd=odd)
            case "dict":
                return {self._word(): self._word()}
        return {"made": self._word()}  # json, jsonarg

    def _object(self, option: Option, *, odd: bool) -> dict[str, Any]:
        """Relations inside are kept by trying."""
        options = option.options or {}
        subform = Form(options=options, relations=option.relations)
        values = Fuzz(subform, self._chance).most()
        if odd and values is not None:
            needed = {name for name, suboption in options.items() if suboption.must_be_given}
            fewer = {
                name: value
                for name, value in values.items()
                if name in needed or self._chance.random() < 0.5
            }
            violations: list[Violation] = []
            check(subform, fewer, violations, at="")
            return values if violations else fewer
        return values or {}

    def _word(self) -> str:
        return "".join(self._chance.choice(_LETTERS) for _ in range(8))


def _is_about_sets(violations: list[Violation], form: Form) -> bool:
    """Whether what is given, and not its values, is at fault: relations have no path, missing ones are required."""
    return any(not violation.path or violation.message == "is required" for violation in violations)
