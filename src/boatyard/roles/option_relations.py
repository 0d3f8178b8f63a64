"""Reads the relations between options (`mutually_exclusive`, `required_if`, …). Pure; called by `reading_form`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boatyard.model.errors import Violation
from boatyard.roles.form import Option, Relations, RequiredIf
from boatyard.roles.form_check import check_value
from boatyard.roles.yaml_file import YamlDocument, YamlPath

RELATION_KEYS = (
    *("mutually_exclusive", "required_together", "required_one_of", "required_if", "required_by"),
)


def read_relations(
    document: YamlDocument, spec: Mapping[str, Any], path: YamlPath, options: Mapping[str, Option]
) -> Relations:
    """The relations between `options`; names of options that do not exist are mistakes."""
    reader = _RelationsReader(document, options)
    return Relations(
        mutually_exclusive=reader.read_groups(spec, "mutually_exclusive", path),
        required_together=reader.read_groups(spec, "required_together", path),
        required_one_of=reader.read_groups(spec, "required_one_of", path),
        required_if=reader.read_conditions(spec.get("required_if"), (*path, "required_if")),
        required_by=reader.read_required_by(spec.get("required_by"), (*path, "required_by")),
    )


class _RelationsReader:
    def __init__(self, document: YamlDocument, options: Mapping[str, Option]) -> None:
        self._document = document
        self._options = options

    def read_groups(
        self, spec: Mapping[str, Any], key: str, path: YamlPath
    ) -> tuple[tuple[str, ...], ...]:
        """A list of lists of names; one list of names is taken for one group, as Ansible does."""
        group_path = (*path, key)
        value = spec.get(key)
        if value is None:
            return ()
        if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
            return (self._read_names(value, group_path),)
        if not isinstance(value, list):
            self._document.add_mistake(group_path, "is not a list of lists of options")
            return ()
        return tuple(
            self._read_names(entry, (*group_path, index)) for index, entry in enumerate(value)
        )

    def read_conditions(self, value: Any, path: YamlPath) -> tuple[RequiredIf, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            self._document.add_mistake(path, "is not a list of conditions")
            return ()
        conditions = (
            self._read_condition(entry, (*path, index)) for index, entry in enumerate(value)
        )
        return tuple(condition for condition in conditions if condition is not None)

    def _read_condition(self, entry: Any, path: YamlPath) -> RequiredIf | None:
        if not isinstance(entry, list) or len(entry) not in (3, 4):
            self._document.add_mistake(
                path, "is not a condition", "[option, value, [options needed]], and true for any of"
            )
            return None
        name, value, needs = entry[:3]
        any_of = entry[3] if len(entry) == 4 else False
        if not isinstance(any_of, bool):
            self._document.add_mistake((*path, 3), "is not true or false")
        option = self._options.get(name) if isinstance(name, str) else None
        if option is None:
            self._report_unknown(name, (*path, 0))
            return None
        if option.type in ("dict", "list", "raw", "json", "jsonarg"):
            self._document.add_mistake(
                (*path, 0), f"{name} is not a single value", "choose another"
            )
            return None
        violations: list[Violation] = []
        value = check_value(option, value, violations, at="")
        for violation in violations:
            self._document.add_mistake((*path, 1), violation.message, violation.remedy)
        return RequiredIf(name, value, self._read_names(needs, (*path, 2)), any_of is True)

    def read_required_by(self, value: Any, path: YamlPath) -> Mapping[str, tuple[str, ...]]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._document.add_mistake(path, "is not a mapping of an option to those it needs")
            return {}
        for name in value:
            if name not in self._options:
                self._report_unknown(name, (*path, name))
        return {
            name: self._read_names([needs] if isinstance(needs, str) else needs, (*path, name))
            for name, needs in value.items()
        }

    def _read_names(self, value: Any, path: YamlPath) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            self._document.add_mistake(path, "is not a list of options")
            return ()
        for index, name in enumerate(value):
            if not isinstance(name, str) or name not in self._options:
                self._report_unknown(name, (*path, index))
        return tuple(dict.fromkeys(name for name in value if isinstance(name, str)))

    def _report_unknown(self, name: Any, path: YamlPath) -> None:
        offered = ", ".join(self._options) or "none"
        self._document.add_mistake(
            path, f"there is no option {str(name)[:80]!r}", f"there are: {offered}"
        )
