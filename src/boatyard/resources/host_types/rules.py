"""Admission rules of host types. Called by the API before a host type is stored."""

from __future__ import annotations

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import HostType
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.kind_rules import KindRules

LONGEST_TITLE = 256
MOST_INTERFACES = 64


class HostTypeRules(KindRules[HostType]):
    def admit_create(self, new: HostType, context: AdmissionContext) -> HostType:
        _check_limits(new)
        return new

    def admit_update(self, old: HostType, new: HostType, context: AdmissionContext) -> HostType:
        _check_limits(new)
        return new


def _check_limits(host_type: HostType) -> None:
    violations = []
    if len(host_type.title) > LONGEST_TITLE:
        violations.append(
            Violation("title", f"has {len(host_type.title)} characters", f"at most {LONGEST_TITLE}")
        )
    if len(host_type.interfaces) > MOST_INTERFACES:
        violations.append(Violation("interfaces", f"at most {MOST_INTERFACES} are kept"))
    names = [interface.name for interface in host_type.interfaces]
    for index, name in enumerate(names[:MOST_INTERFACES]):
        if not name:
            violations.append(Violation(f"interfaces[{index}].name", "is required"))
        elif name in names[:index]:
            violations.append(Violation(f"interfaces[{index}].name", f"{name!r} is there twice"))
    if violations:
        raise Refused("", *violations)
