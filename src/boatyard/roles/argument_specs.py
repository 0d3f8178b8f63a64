"""Reads `meta/argument_specs.yml` into a form. Pure; reports every mistake with file, line and path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from boatyard.model.errors import Violation
from boatyard.roles.form import NO_FORM, NO_RELATIONS, OPTION_TYPES, Form, Option, is_same_json
from boatyard.roles.form_check import check_value
from boatyard.roles.option_relations import RELATION_KEYS, read_relations
from boatyard.roles.yaml_file import YamlDocument, YamlPath

ENTRY_POINTS = ("main", "install")
# The option in which roles made for OSAC declare their parameters; the system fills in the options beside it.
NESTED_OPTION = "template_parameters"
MAX_OPTIONS = 200

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION_KEYS = {
    *("type", "elements", "required", "default", "choices", "options", "suboptions"),
    *("description", "short_description", "title", "no_log", "aliases", "apply_defaults"),
    *RELATION_KEYS,
    # Documentation of the option, without effect here.
    *("version_added", "version_added_collection", "author", "notes", "deprecated", "fallback"),
    *("deprecated_aliases", "removed_in_version", "removed_at_date", "removed_from_collection"),
    *("seealso", "sample", "example", "examples"),
}
_ENTRY_KEYS = {"options", "short_description", "description", "author", "version_added"} | {
    *RELATION_KEYS,
    *("deprecated", "seealso", "notes", "examples", "version_added_collection", "attributes"),
}
# A tenant who could set these would control Ansible itself.
_RESERVED = re.compile(
    r"(ansible_|boatyard_|molecule_).*|environment|group_names|groups|hostvars|inventory_.*|item|omit|"
    r"play_hosts|playbook_dir|role_name|role_names|role_path|vars|lookup|query|q|become.*|"
    r"connection|delegate_to|template_parameters|cluster_order|boatyard"
)
_TRUE_TEXTS = {"yes", "on", "true", "y", "t", "1"}
_FALSE_TEXTS = {"no", "off", "false", "n", "f", "0"}


def read_form(document: YamlDocument, *, nested_only: bool = False) -> Form:
    """The form of the entry point `main`, else of `install`; empty when there is neither.

    `nested_only`: the role was made for OSAC, where the system sets everything outside `template_parameters`.
    """
    specs_path: YamlPath = ("argument_specs",)
    specs = _mapping(document, document.value, (), required=True).get("argument_specs")
    entry_points = _mapping(document, specs, specs_path, required=True)
    name = next((candidate for candidate in ENTRY_POINTS if candidate in entry_points), "")
    if not name:
        return NO_FORM
    path = (*specs_path, name)
    entry = _mapping(document, entry_points[name], path)
    _check_keys(document, entry, path, _ENTRY_KEYS)
    options = _mapping(document, entry.get("options"), (*path, "options"))
    nested = options.get(NESTED_OPTION)
    if isinstance(nested, dict) and nested.get("options") is not None:
        path = (*path, "options", NESTED_OPTION)
        entry = {**nested, "short_description": entry.get("short_description")}
        options = _mapping(document, nested["options"], (*path, "options"))
    elif nested_only:
        return NO_FORM
    form_options = read_options(document, options, (*path, "options"), top=True)
    return Form(
        options=form_options,
        relations=read_relations(document, entry, path, form_options),
        title=_read_description(
            document, entry.get("short_description"), (*path, "short_description")
        ),
        description=_read_description(document, entry.get("description"), (*path, "description")),
    )


def read_options(
    document: YamlDocument, options: Mapping[str, Any], path: YamlPath, *, top: bool = False
) -> dict[str, Option]:
    if len(options) > MAX_OPTIONS:
        document.add_mistake(path, f"has {len(options)} options", f"at most {MAX_OPTIONS}")
        return {}
    options_by_name: dict[str, Option] = {}
    owners: dict[str, str] = {}
    for name, spec in options.items():
        option_path = (*path, name)
        if top and _RESERVED.fullmatch(name):
            document.add_mistake(
                option_path, "is a name that Ansible or Boatyard uses", "choose another name"
            )
        elif top and not _NAME.fullmatch(name):
            document.add_mistake(
                option_path, "is not the name of a variable", "use letters, digits and _"
            )
        option = _option(document, _mapping(document, spec, option_path), option_path, top=top)
        options_by_name[name] = option
        for alias in (name, *option.aliases):
            if alias in owners:
                document.add_mistake(
                    option_path, f"the name {alias!r} is that of {owners[alias]!r} too"
                )
            owners[alias] = name
    return options_by_name


def _option(
    document: YamlDocument, spec: Mapping[str, Any], path: YamlPath, *, top: bool
) -> Option:
    _check_keys(document, spec, path, _OPTION_KEYS)
    type_ = _type(document, spec, path)
    elements = _check_type(document, spec.get("elements"), (*path, "elements"))
    suboptions = spec.get("options", spec.get("suboptions"))
    options = None
    relations = NO_RELATIONS
    if suboptions is not None:
        if type_ != "dict" and elements != "dict":
            document.add_mistake(
                (*path, "options"), f"belong to a dict, not to a {elements or type_}", "type: dict"
            )
        key = "options" if "options" in spec else "suboptions"
        options = read_options(document, _mapping(document, suboptions, (*path, key)), (*path, key))
        relations = read_relations(document, spec, path, options)
    if elements and type_ != "list":
        document.add_mistake(
            (*path, "elements"), f"belong to a list, not to a {type_}", "type: list"
        )
    option = Option(
        type=type_,
        title=_read_description(document, spec.get("title"), (*path, "title"))
        or _read_description(document, spec.get("short_description"), (*path, "short_description")),
        description=_read_description(document, spec.get("description"), (*path, "description")),
        required=_flag(document, spec, "required", path),
        elements=elements,
        options=options,
        relations=relations,
        apply_defaults=_flag(document, spec, "apply_defaults", path),
        no_log=_flag(document, spec, "no_log", path),
        aliases=_read_names(document, spec.get("aliases"), (*path, "aliases")),
    )
    option = _with_choices(document, option, spec.get("choices"), (*path, "choices"))
    return _with_default(document, option, spec.get("default"), (*path, "default"), top=top)


def _type(document: YamlDocument, spec: Mapping[str, Any], path: YamlPath) -> str:
    """The declared type. Without one Ansible reads everything as text; here the default shows what is meant."""
    if spec.get("type") is not None:
        return _check_type(document, spec["type"], (*path, "type")) or "str"
    if spec.get("elements") is not None:
        return "list"
    if spec.get("options") is not None or spec.get("suboptions") is not None:
        return "dict"
    match spec.get("default"):
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case list():
            return "list"
        case dict():
            return "dict"
    return "str"


def _check_type(document: YamlDocument, value: Any, path: YamlPath) -> str:
    if value is None:
        return ""
    if value == "string":
        return "str"
    if value not in OPTION_TYPES:
        document.add_mistake(
            path, f"{_format_value(value)} is not a type", f"one of {', '.join(OPTION_TYPES)}"
        )
        return ""
    return str(value)


def _with_choices(document: YamlDocument, option: Option, choices: Any, path: YamlPath) -> Option:
    if choices is None:
        return option
    if isinstance(choices, dict):  # choices with descriptions
        choices = list(choices)
    if not isinstance(choices, list) or not choices:
        document.add_mistake(path, "is not a list of values", "leave it out where anything goes")
        return option
    element = option.element() if option.type == "list" else option
    if element.type in ("dict", "list", "json", "jsonarg"):
        document.add_mistake(path, f"cannot be given for a {element.type}", "leave it out")
        return option
    accepted: list[Any] = []
    for index, value in enumerate(choices):
        choice = _convert_and_check(
            document, element, value, (*path, index), top=option.type != "list"
        )
        if any(is_same_json(choice, previous) for previous in accepted):
            document.add_mistake((*path, index), f"{_format_value(choice)} is there twice")
        accepted.append(choice)
    return replace(option, choices=tuple(accepted))


def _with_default(
    document: YamlDocument, option: Option, default: Any, path: YamlPath, *, top: bool
) -> Option:
    if default is None:
        return option
    if _is_jinja(default):  # only the role can evaluate it; its defaults/main.yml does
        return replace(option, default_text=str(default)[:1000])
    value = _convert_and_check(document, option, default, path, top=top)
    return replace(option, has_default=True, default=value)


def _convert_and_check(
    document: YamlDocument, option: Option, value: Any, path: YamlPath, *, top: bool
) -> Any:
    """A default or a choice as it is stored, after the small conversions that Ansible makes."""
    converted = _converted(option.type, value)
    violations: list[Violation] = []
    checked = check_value(option, converted, violations, at="", top=top)
    for violation in violations:
        # `yes` and `off` are truth values in YAML, whatever was meant.
        remedy = "quote it" if isinstance(value, bool) else violation.remedy
        document.add_mistake(path, f"{violation.path} {violation.message}".strip(), remedy)
    return checked


def _converted(type_: str, value: Any) -> Any:
    match type_, value:
        case (("str" | "path" | "bytes" | "bits"), int() | float()) if not isinstance(value, bool):
            return str(value)
        case "bool", str() if value.lower() in _TRUE_TEXTS | _FALSE_TEXTS:
            return value.lower() in _TRUE_TEXTS
        case "int", str() if re.fullmatch(r"-?[0-9]{1,18}", value):
            return int(value)
        case "float", str() if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", value):
            return float(value)
    return value


def _is_jinja(value: Any) -> bool:
    match value:
        case str():
            return "{{" in value or "{%" in value
        case list():
            return any(map(_is_jinja, value))
        case dict():
            return any(map(_is_jinja, value.values()))
    return False


def _flag(document: YamlDocument, spec: Mapping[str, Any], key: str, path: YamlPath) -> bool:
    flag = _converted("bool", spec.get(key, False))
    if not isinstance(flag, bool):
        document.add_mistake((*path, key), f"{_format_value(spec[key])} is not true or false")
        return False
    return flag


def _read_names(document: YamlDocument, value: Any, path: YamlPath) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        document.add_mistake(path, "is not a list of names")
        return ()
    return tuple(value)


def _read_description(document: YamlDocument, value: Any, path: YamlPath) -> str:
    """A description is one text or a list of them."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case list() if all(isinstance(paragraph, str) for paragraph in value):
            return "\n\n".join(paragraph.strip() for paragraph in value)
        case int() | float():
            return str(value)
    document.add_mistake(path, "is not a text", "a text, or a list of texts")
    return ""


def _mapping(
    document: YamlDocument, value: Any, path: YamlPath, *, required: bool = False
) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if value is not None or required:
        document.add_mistake(path, "is missing" if value is None else "is not a mapping")
    return {}


def _check_keys(
    document: YamlDocument, mapping: Mapping[str, Any], path: YamlPath, keys: set[str]
) -> None:
    for key in mapping:
        if key not in keys and not key.startswith(("x-", "x_", "_")):
            document.add_mistake(
                (*path, key), "is not a word of argument specs", "see its spelling"
            )


def _format_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
