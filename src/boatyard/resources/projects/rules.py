"""Admission rules of projects. Called by the API before a project is stored."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import Project, ProjectState
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import project_name_violations

LONGEST_TEXT = 4096


class ProjectRules(KindRules[Project]):
    def name_violations(self, name: str) -> Iterable[Violation]:
        return project_name_violations(name)

    def fill_defaults(self, new: Project) -> Project:
        """Fills in the parent of a nested project: `dev.web` is in `dev`."""
        parent = new.metadata.name.rpartition(".")[0]
        return replace(new, metadata=replace(new.metadata, project=new.metadata.project or parent))

    def admit_create(self, new: Project, context: AdmissionContext) -> Project:
        """Admits a new project, active at once. The caller checks that the parent exists, as for any reference."""
        violations = _text_violations(new)
        if new.metadata.tenant in (SHARED, SYSTEM):
            violations.append(
                Violation(
                    "metadata.tenant",
                    f"{new.metadata.tenant!r} has no projects",
                    "name the tenant it is for",
                )
            )
        if new.metadata.project != new.metadata.name.rpartition(".")[0]:
            violations.append(
                Violation("metadata.project", "is not the parent in the name", "leave it out")
            )
        if violations:
            raise Refused("", *violations)
        return replace(new, status=replace(new.status, state=ProjectState.ACTIVE))

    def admit_update(self, old: Project, new: Project, context: AdmissionContext) -> Project:
        violations = _text_violations(new)
        if violations:
            raise Refused("", *violations)
        return new


def _text_violations(project: Project) -> list[Violation]:
    texts = {"spec.title": project.spec.title, "spec.description": project.spec.description or ""}
    return [
        Violation(path, f"has {len(text)} characters", f"at most {LONGEST_TEXT}")
        for path, text in texts.items()
        if len(text) > LONGEST_TEXT
    ]
