"""Reads a role as a template: metadata, form, phases. Pure: from files to a Role, or to all its mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from boatyard.roles.argument_specs import read_form
from boatyard.roles.content import Files, RoleFileContent, digest_of
from boatyard.roles.form import NO_FORM, Form
from boatyard.roles.mistakes import Mistake, sort_mistakes
from boatyard.roles.phases import PHASES, phases_of, task_files
from boatyard.roles.template_metadata import (
    TemplateMetadata,
    read_osac_metadata,
    read_template_metadata,
)
from boatyard.roles.yaml_file import parse_yaml, read_yaml

ARGUMENT_SPEC_FILES = ("meta/argument_specs.yml", "meta/argument_specs.yaml")
MAIN_FILES = ("meta/main.yml", "meta/main.yaml")
TEMPLATE_FILES = ("meta/template.yaml", "meta/template.yml")
OSAC_FILES = ("meta/osac.yaml", "meta/osac.yml", "meta/cloudkit.yaml", "meta/cloudkit.yml")


@dataclass(frozen=True)
class TemplateRole:
    """A role that can be offered as a template."""

    name: str  # name of its folder
    metadata: TemplateMetadata
    form: Form
    phases: tuple[str, ...]
    digest: str
    file: str  # the file with the template metadata


@dataclass(frozen=True)
class InvalidRole:
    """A role that cannot be offered, and why."""

    name: str
    mistakes: Sequence[Mistake]


def is_template(files: Mapping[str, RoleFileContent]) -> bool:
    """Whether the role has template metadata; other roles in the same folder may be helpers of templates."""
    return any(name in files for name in (*TEMPLATE_FILES, *OSAC_FILES))


def read_role(
    name: str, files: Files, mistakes: Sequence[Mistake] = ()
) -> TemplateRole | InvalidRole:
    """The role, or everything that is wrong with it, including the `mistakes` found before."""
    all_mistakes = list(mistakes)
    template = _read_metadata(name, files, all_mistakes)
    osac = not any(file in files for file in TEMPLATE_FILES)
    form = _form(files, all_mistakes, osac=osac)
    phases = phases_of(files)
    for phase in PHASES:
        _check_tasks(phase, files, all_mistakes)
    hooks = template.hooks if template is not None else None
    if not phases and hooks is None:
        remedy = f"one of {', '.join(PHASES)}.yaml; or say hooks: [] if nothing is to be run"
        all_mistakes.append(Mistake("tasks", 0, "", "has nothing that is run", remedy))
    for hook in hooks or ():
        if hook not in phases:
            all_mistakes.append(
                Mistake(
                    _first_existing(TEMPLATE_FILES, files),
                    0,
                    "hooks",
                    f"there is no tasks/{hook}.yaml",
                )
            )
    if all_mistakes or template is None:
        return InvalidRole(name, sort_mistakes(all_mistakes))
    if hooks is not None:
        phases = tuple(phase for phase in phases if phase in hooks or phase == "install")
    return TemplateRole(
        name=name,
        metadata=template,
        form=form if form.options else template.form,
        phases=phases,
        digest=digest_of(files),
        file=_first_existing(OSAC_FILES if osac else TEMPLATE_FILES, files),
    )


def _read_metadata(name: str, files: Files, mistakes: list[Mistake]) -> TemplateMetadata | None:
    """The metadata from our file where it exists, because it says more; otherwise from OSAC's file."""
    for candidates, read in (
        (TEMPLATE_FILES, read_template_metadata),
        (OSAC_FILES, read_osac_metadata),
    ):
        file = _find_file(candidates, files, mistakes)
        if not file:
            continue
        document = read_yaml(file, files[file].data, mistakes)
        return read(document, name) if document is not None else None
    mistakes.append(
        Mistake("meta/template.yaml", 0, "", "is missing", "say what the template is about")
    )
    return None


def _form(files: Files, mistakes: list[Mistake], *, osac: bool) -> Form:
    """The form of the argument spec; empty when the role has none."""
    file = _find_file(ARGUMENT_SPEC_FILES, files, mistakes)
    if file:
        document = read_yaml(file, files[file].data, mistakes)
        return read_form(document, nested_only=osac) if document is not None else NO_FORM
    main = _find_file(MAIN_FILES, files, mistakes)
    document = read_yaml(main, files[main].data, mistakes) if main else None
    if document is None or not isinstance(document.value, dict):
        return NO_FORM
    if "argument_specs" not in document.value:
        return NO_FORM
    return read_form(document, nested_only=osac)


def _check_tasks(phase: str, files: Files, mistakes: list[Mistake]) -> None:
    file = _find_file(task_files(phase), files, mistakes)
    if not file:
        return
    node = parse_yaml(file, files[file].data, mistakes)
    if node is not None and not isinstance(node, yaml.SequenceNode):
        mistakes.append(Mistake(file, 1, "", "is not a list of tasks"))


def _find_file(candidates: Sequence[str], files: Files, mistakes: list[Mistake]) -> str:
    """The first of these files that exists. Both .yml and .yaml of one name are a mistake: readers prefer either."""
    present = [name for name in candidates if name in files]
    stems: dict[str, str] = {}
    for name in present:
        stem = name.rpartition(".")[0]
        if stem in stems:
            mistakes.append(Mistake(name, 0, "", f"is there beside {stems[stem]}", "keep one"))
        stems.setdefault(stem, name)
    return present[0] if present else ""


def _first_existing(candidates: Sequence[str], files: Files) -> str:
    return next((name for name in candidates if name in files), candidates[0])
