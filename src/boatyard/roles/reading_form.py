"""Reads `meta/argument_specs.yml` into a form. Pure; every mistake is told, with its file, line and path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from boatyard.model.errors import Violation
from boatyard.roles.check import check_value
from boatyard.roles.form import NO_FORM, NO_RELATIONS, TYPES, Form, Option, same
from boatyard.roles.reading_relations import RELATIONS, read_relations
from boatyard.roles.yaml_file import Document, Path

ENTRY_POINTS = ("main", "install")
# Where roles made for OSAC keep what people are asked for; what is beside it the system fills in.
NESTED = "template_parameters"
MOST_OPTIONS = 200

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION_KEYS = {
    *("type", "elements", "required", "default", "choices", "options", "suboptions"),
    *("description", "short_description", "title", "no_log", "aliases", "apply_defaults"),
    *RELATIONS,
    # Words about the option, which change nothing here.
    *("version_added", "version_added_collection", "author", "notes", "deprecated", "fallback"),
    *("deprecated_aliases", "removed_in_version", "removed_at_date", "removed_from_collection"),
    *("seealso", "sample", "example", "examples"),
}
_ENTRY_KEYS = {"options", "short_description", "description", "author", "version_added"} | {
    *RELATIONS,
    *("deprecated", "seealso", "notes", "examples", "version_added_collection", "attributes"),
}
# A tenant who could set these would steer Ansible itself.
_RESERVED = re.compile(
    r"(ansible_|boatyard_|molecule_).*|environment|group_names|groups|hostvars|inventory_.*|item|omit|"
    r"play_hosts|playbook_dir|role_name|role_names|role_path|vars|lookup|query|q|become.*|"
    r"connection|delegate_to|template_parameters|cluster_order|boatyard"
)
_YES = {"yes", "on", "true", "y", "t", "1"}
_NO = {"no", "off", "false", "n", "f", "0"}


def read_form(document: Document, *, nested_only: bool = False) -> Form:
    """The form of the entry point `main`, else of `install`; empty when there is neither.

    `nested_only`: the role was made for OSAC, where everything outside `template_parameters` is the system's.
    """
    at: Path = ("argument_specs",)
    specs = _mapping(document, document.value, (), required=True).get("argument_specs")
    found = _mapping(document, specs, at, required=True)
    name = next((one for one in ENTRY_POINTS if one in found), "")
    if not name:
        return NO_FORM
    path = (*at, name)
    entry = _mapping(document, found[name], path)
    _known(document, entry, path, _ENTRY_KEYS)
    options = _mapping(document, entry.get("options"), (*path, "options"))
    nested = options.get(NESTED)
    if isinstance(nested, dict) and nested.get("options") is not None:
        path = (*path, "options", NESTED)
        entry = {**nested, "short_description": entry.get("short_description")}
        options = _mapping(document, nested["options"], (*path, "options"))
    elif nested_only:
        return NO_FORM
    read = read_options(document, options, (*path, "options"), top=True)
    return Form(
        options=read,
        relations=read_relations(document, entry, path, read),
        title=_words(document, entry.get("short_description"), (*path, "short_description")),
        description=_words(document, entry.get("description"), (*path, "description")),
    )


def read_options(
    document: Document, options: Mapping[str, Any], path: Path, *, top: bool = False
) -> dict[str, Option]:
    if len(options) > MOST_OPTIONS:
        document.wrong(path, f"has {len(options)} options", f"at most {MOST_OPTIONS}")
        return {}
    found: dict[str, Option] = {}
    taken: dict[str, str] = {}
    for name, said in options.items():
        here = (*path, name)
        if top and _RESERVED.fullmatch(name):
            document.wrong(here, "is a name that Ansible or Boatyard uses", "choose another name")
        elif top and not _NAME.fullmatch(name):
            document.wrong(here, "is not the name of a variable", "use letters, digits and _")
        option = _option(document, _mapping(document, said, here), here, top=top)
        found[name] = option
        for other in (name, *option.aliases):
            if other in taken:
                document.wrong(here, f"the name {other!r} is that of {taken[other]!r} too")
            taken[other] = name
    return found


def _option(document: Document, said: Mapping[str, Any], path: Path, *, top: bool) -> Option:
    _known(document, said, path, _OPTION_KEYS)
    type_ = _type(document, said, path)
    elements = _one_of_types(document, said.get("elements"), (*path, "elements"))
    inner = said.get("options", said.get("suboptions"))
    options = None
    relations = NO_RELATIONS
    if inner is not None:
        if type_ != "dict" and elements != "dict":
            document.wrong(
                (*path, "options"), f"belong to a dict, not to a {elements or type_}", "type: dict"
            )
        key = "options" if "options" in said else "suboptions"
        options = read_options(document, _mapping(document, inner, (*path, key)), (*path, key))
        relations = read_relations(document, said, path, options)
    if elements and type_ != "list":
        document.wrong((*path, "elements"), f"belong to a list, not to a {type_}", "type: list")
    option = Option(
        type=type_,
        title=_words(document, said.get("title"), (*path, "title"))
        or _words(document, said.get("short_description"), (*path, "short_description")),
        description=_words(document, said.get("description"), (*path, "description")),
        required=_flag(document, said, "required", path),
        elements=elements,
        options=options,
        relations=relations,
        apply_defaults=_flag(document, said, "apply_defaults", path),
        no_log=_flag(document, said, "no_log", path),
        aliases=_texts(document, said.get("aliases"), (*path, "aliases")),
    )
    option = _with_choices(document, option, said.get("choices"), (*path, "choices"))
    return _with_default(document, option, said.get("default"), (*path, "default"), top=top)


def _type(document: Document, said: Mapping[str, Any], path: Path) -> str:
    """Without a word Ansible takes anything for a text; then the default tells what is meant."""
    if said.get("type") is not None:
        return _one_of_types(document, said["type"], (*path, "type")) or "str"
    if said.get("elements") is not None:
        return "list"
    if said.get("options") is not None or said.get("suboptions") is not None:
        return "dict"
    match said.get("default"):
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


def _one_of_types(document: Document, said: Any, path: Path) -> str:
    if said is None:
        return ""
    if said == "string":
        return "str"
    if said not in TYPES:
        document.wrong(path, f"{_shown(said)} is not a type", f"one of {', '.join(TYPES)}")
        return ""
    return str(said)


def _with_choices(document: Document, option: Option, said: Any, path: Path) -> Option:
    if said is None:
        return option
    if isinstance(said, dict):  # a choice with words about it
        said = list(said)
    if not isinstance(said, list) or not said:
        document.wrong(path, "is not a list of values", "leave it out where anything goes")
        return option
    one = option.element() if option.type == "list" else option
    if one.type in ("dict", "list", "json", "jsonarg"):
        document.wrong(path, f"cannot be given for a {one.type}", "leave it out")
        return option
    found: list[Any] = []
    for index, value in enumerate(said):
        kept = _fit(document, one, value, (*path, index), top=option.type != "list")
        if any(same(kept, seen) for seen in found):
            document.wrong((*path, index), f"{_shown(kept)} is there twice")
        found.append(kept)
    return replace(option, choices=tuple(found))


def _with_default(
    document: Document, option: Option, said: Any, path: Path, *, top: bool
) -> Option:
    if said is None:
        return option
    if _is_jinja(said):  # only the role can work it out; its defaults/main.yml does
        return replace(option, default_text=str(said)[:1000])
    value = _fit(document, option, said, path, top=top)
    return replace(option, has_default=True, default=value)


def _fit(document: Document, option: Option, said: Any, path: Path, *, top: bool) -> Any:
    """A default or a choice as it is kept, after the small liberties that Ansible takes."""
    value = _converted(option.type, said)
    violations: list[Violation] = []
    kept = check_value(option, value, violations, at="", top=top)
    for violation in violations:
        # `yes` and `off` are truth values in YAML, whatever was meant.
        remedy = "quote it" if isinstance(said, bool) else violation.remedy
        document.wrong(path, f"{violation.path} {violation.message}".strip(), remedy)
    return kept


def _converted(type_: str, said: Any) -> Any:
    match type_, said:
        case (("str" | "path" | "bytes" | "bits"), int() | float()) if not isinstance(said, bool):
            return str(said)
        case "bool", str() if said.lower() in _YES | _NO:
            return said.lower() in _YES
        case "int", str() if re.fullmatch(r"-?[0-9]{1,18}", said):
            return int(said)
        case "float", str() if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", said):
            return float(said)
    return said


def _is_jinja(said: Any) -> bool:
    match said:
        case str():
            return "{{" in said or "{%" in said
        case list():
            return any(map(_is_jinja, said))
        case dict():
            return any(map(_is_jinja, said.values()))
    return False


def _flag(document: Document, said: Mapping[str, Any], key: str, path: Path) -> bool:
    value = _converted("bool", said.get(key, False))
    if not isinstance(value, bool):
        document.wrong((*path, key), f"{_shown(said[key])} is not true or false")
        return False
    return value


def _texts(document: Document, said: Any, path: Path) -> tuple[str, ...]:
    if said is None:
        return ()
    if not isinstance(said, list) or not all(isinstance(one, str) and one for one in said):
        document.wrong(path, "is not a list of names")
        return ()
    return tuple(said)


def _words(document: Document, said: Any, path: Path) -> str:
    """A description is one text or a list of them."""
    match said:
        case None:
            return ""
        case str():
            return said.strip()
        case list() if all(isinstance(one, str) for one in said):
            return "\n\n".join(one.strip() for one in said)
        case int() | float():
            return str(said)
    document.wrong(path, "is not a text", "a text, or a list of texts")
    return ""


def _mapping(
    document: Document, said: Any, path: Path, *, required: bool = False
) -> Mapping[str, Any]:
    if isinstance(said, dict):
        return said
    if said is not None or required:
        document.wrong(path, "is missing" if said is None else "is not a mapping")
    return {}


def _known(document: Document, said: Mapping[str, Any], path: Path, keys: set[str]) -> None:
    for key in said:
        if key not in keys and not key.startswith(("x-", "x_", "_")):
            document.wrong((*path, key), "is not a word of argument specs", "see its spelling")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
