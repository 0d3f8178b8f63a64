"""Faults by name: planted by an annotation on an object, or by a control file for objects that do not exist yet. Pure.

`player.boatyard.io/fault: "blocked=QuotaExceeded, slow=5"` on the object, or a file of rules:

    faults:
      - {kind: HostedCluster, name: "order-*", fault: blocked=QuotaExceeded}
    releases:
      registry.example/release@sha256:…: 4.18.2
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import yaml

from boatyard.fakes.hypershift.names import FAULT_ANNOTATION, Object
from boatyard.fakes.hypershift.objects import annotations_of, name_of, namespace_of

FAULTS: Mapping[str, Mapping[str, str]] = {
    "HostedCluster": {
        "blocked": "its infrastructure never gets ready; a value is the reason told",
        "unsupported": "it is not supported here; a value is the reason told",
        "down": "its API server does not answer",
        "degraded": "a part of its control plane is short of a replica",
        "slow": "every stage takes so many seconds more (30)",
        "stuck-upgrade": "a change of version never completes",
        "stuck-deletion": "its control plane never goes away",
    },
    "NodePool": {
        "never-joins": "so many of its nodes (1) never join",
        "wrong-machine": "another machine leaves than the one that was named",
        "slow": "every stage of its machines takes so many seconds more (30)",
        "stuck-deletion": "its machines never go away",
    },
    "Machine": {
        "never-joins": "it never becomes a node",
        "stuck-deletion": "it never goes away",
    },
    "Agent": {"lost": "it is never heard of again"},
}

_REASON_PATTERN = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NUMBER_PATTERN = re.compile(r"[0-9]+(\.[0-9]+)?")
_VALUE_PATTERNS = {
    "blocked": _REASON_PATTERN,
    "unsupported": _REASON_PATTERN,
    "slow": _NUMBER_PATTERN,
    "never-joins": _NUMBER_PATTERN,
}


class BadFaults(ValueError):
    """A control file, or a fault in it, that cannot be understood."""


@dataclass(frozen=True)
class PlantedFaults:
    """The faults of one object."""

    faults: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, fault: object) -> bool:
        return fault in self.faults

    def get_text(self, fault: str, default: str) -> str:
        return self.faults.get(fault) or default

    def get_number(self, fault: str, default: float) -> float:
        """The fault's number, `default` when it is planted without one, 0 when it is not planted."""
        if fault not in self.faults:
            return 0.0
        return float(self.faults[fault] or default)

    @property
    def extra_seconds(self) -> float:
        return self.get_number("slow", 30)


@dataclass(frozen=True)
class FaultRule:
    """A fault for every object of a kind whose name and namespace match the patterns."""

    kind: str
    fault: str
    value: str = ""
    name: str = "*"
    namespace: str = "*"

    def matches(self, kind: str, thing: Object) -> bool:
        return (
            kind == self.kind
            and fnmatchcase(name_of(thing), self.name)
            and fnmatchcase(namespace_of(thing), self.namespace)
        )


@dataclass(frozen=True)
class ControlFile:
    """The content of a control file: faults, and versions of images whose tag names none."""

    rules: tuple[FaultRule, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)

    def faults_of(self, kind: str, thing: Object) -> PlantedFaults:
        """The faults of an object; its annotation wins over rules. Faults that cannot be read are ignored."""
        rule_faults = {rule.fault: rule.value for rule in self.rules if rule.matches(kind, thing)}
        annotation = annotations_of(thing).get(FAULT_ANNOTATION, "")
        return PlantedFaults({**rule_faults, **dict(_parse_readable_faults(kind, annotation))})


def find_fault_problems(kind: str, thing: Object) -> list[str]:
    """Problems of the faults in an object's annotation, for the log."""
    problems = []
    for word in _split_words(annotations_of(thing).get(FAULT_ANNOTATION, "")):
        try:
            parse_fault(kind, word)
        except BadFaults as error:
            problems.append(str(error))
    return problems


def parse_fault(kind: str, word: str) -> tuple[str, str]:
    """Name and value of one fault."""
    name, _, value = (part.strip() for part in word.partition("="))
    if name not in FAULTS[kind]:
        raise BadFaults(f"a {kind} has no fault {name!r}; it has {', '.join(FAULTS[kind])}")
    if value:
        if name not in _VALUE_PATTERNS:
            raise BadFaults(f"the fault {name} takes no value")
        if not _VALUE_PATTERNS[name].fullmatch(value):
            expected_form = (
                "a number" if _VALUE_PATTERNS[name] is _NUMBER_PATTERN else "a CamelCase word"
            )
            raise BadFaults(f"the fault {name}={value}: say {expected_form}")
    return name, value


def parse_control_file(text: str) -> ControlFile:
    """The rules of a file in YAML or JSON. BadFaults names the place."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadFaults(f"not YAML: {error}") from None
    if document is None:
        return ControlFile()
    if not isinstance(document, dict) or not set(document) <= {"faults", "releases"}:
        raise BadFaults("say a mapping with `faults` (a list) and `releases` (image: version)")
    faults, releases = document.get("faults") or [], document.get("releases") or {}
    if not isinstance(faults, list):
        raise BadFaults("faults: not a list")
    if not isinstance(releases, dict):
        raise BadFaults("releases: not a mapping of image to version")
    return ControlFile(
        rules=tuple(_parse_rule(index, entry) for index, entry in enumerate(faults)),
        releases={str(image): str(version) for image, version in releases.items()},
    )


def _parse_rule(index: int, entry: Any) -> FaultRule:
    path = f"faults[{index}]"
    if not isinstance(entry, dict) or not set(entry) <= {"kind", "name", "namespace", "fault"}:
        raise BadFaults(f"{path}: say `kind`, `fault`, and perhaps `name` and `namespace`")
    kind = str(entry.get("kind"))
    if kind not in FAULTS:
        raise BadFaults(f"{path}.kind is {kind}; say one of {', '.join(FAULTS)}")
    try:
        fault, value = parse_fault(kind, str(entry.get("fault") or ""))
    except BadFaults as error:
        raise BadFaults(f"{path}.fault: {error}") from None
    return FaultRule(
        kind=kind,
        fault=fault,
        value=value,
        name=str(entry.get("name") or "*"),
        namespace=str(entry.get("namespace") or "*"),
    )


def _parse_readable_faults(kind: str, text: str) -> list[tuple[str, str]]:
    faults = []
    for word in _split_words(text):
        try:
            faults.append(parse_fault(kind, word))
        except BadFaults:
            continue  # `complaints` reports it
    return faults


def _split_words(text: str) -> list[str]:
    # HyperShift's pattern allows a comma in a reason; such a reason cannot be planted here.
    return [word.strip() for word in text.split(",") if word.strip()]
