"""Admission rules of cluster versions, and the rule of the single default. Called by the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from boatyard.model.errors import Exists, Refused, Violation
from boatyard.model.generated.osac import (
    ClusterVersion,
    ClusterVersionSpec,
    ClusterVersionState,
)
from boatyard.resources.admission_context import AdmissionContext, KindLookup
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import quote_text

LONGEST_IMAGE = 512
LONGEST_VERSION = 256

_NUMBER = r"(0|[1-9][0-9]*)"
SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII
)


class ClusterVersionRules(KindRules[ClusterVersion]):
    public_filters = (
        ("spec.state", "this.spec.state in [1, 2]"),
        ("spec.enabled", "this.spec.enabled == true"),
    )

    def list_wants(self, old: ClusterVersion | None, new: ClusterVersion) -> tuple[KindLookup, ...]:
        """Requests all versions: a version exists once, and a new default replaces the old one."""
        return (KindLookup(ClusterVersion),)

    def admit_create(self, new: ClusterVersion, context: AdmissionContext) -> ClusterVersion:
        """Admits a new version: enabled and active unless it says otherwise."""
        spec = replace(
            new.spec,
            enabled=True if new.spec.enabled is None else new.spec.enabled,
            state=new.spec.state or ClusterVersionState.ACTIVE,
        )
        violations = list(_violations(spec))
        if not context.private:
            violations.append(
                Violation(
                    "spec.image",
                    "is required, and only the private package has it",
                    "create versions through osac.private.v1",
                )
            )
        if violations:
            raise Refused("", *violations)
        for other in context.get_all(ClusterVersion):
            if other.spec.version == spec.version and other.metadata.tenant == new.metadata.tenant:
                raise Exists(f"the version {spec.version} exists already: {other.metadata.name}")
        return replace(new, spec=_with_lifecycle_times(None, spec, context.now))

    def admit_update(
        self, old: ClusterVersion, new: ClusterVersion, context: AdmissionContext
    ) -> ClusterVersion:
        spec = replace(new.spec, state=new.spec.state or ClusterVersionState.ACTIVE)
        violations = list(_violations(spec))
        if violations:
            raise Refused("", *violations)
        return replace(new, spec=_with_lifecycle_times(old.spec, spec, context.now))

    def companion_changes(
        self, new: ClusterVersion, context: AdmissionContext
    ) -> tuple[ClusterVersion, ...]:
        """Other documents to change in the same transaction: the old default stops being the default."""
        if not new.spec.is_default:
            return ()
        return tuple(
            replace(other, spec=replace(other.spec, is_default=False))
            for other in context.get_all(ClusterVersion)
            if other.spec.is_default
            and other.id != new.id
            and other.metadata.tenant == new.metadata.tenant
        )

    def unique_keys(self, doc: ClusterVersion) -> tuple[str, ...]:
        """Unique keys of the version: per tenant, a number exists once and there is one default."""
        tenant = doc.metadata.tenant
        keys = [f"cluster-version/{tenant}/{doc.spec.version}"]
        if doc.spec.is_default:
            keys.append(f"default-cluster-version/{tenant}")
        return tuple(keys)


def is_usable(version: ClusterVersion) -> bool:
    return version.spec.enabled is not False and version.spec.state != ClusterVersionState.OBSOLETE


def _violations(spec: ClusterVersionSpec) -> Iterator[Violation]:
    if len(spec.version) > LONGEST_VERSION or SEMVER.fullmatch(spec.version) is None:
        yield Violation(
            "spec.version",
            f"{quote_text(spec.version)} is not a version" if spec.version else "is required",
            "give major.minor.patch, such as 4.17.3",
        )
    if not spec.image:
        yield Violation("spec.image", "is required", "give the release image to install")
    elif len(spec.image) > LONGEST_IMAGE or not spec.image.isprintable() or " " in spec.image:
        yield Violation("spec.image", f"{quote_text(spec.image)} is not an image")
    if spec.is_default and spec.enabled is False:
        yield Violation("spec.is_default", "a disabled version cannot be the default", "enable it")
    if spec.is_default and spec.state == ClusterVersionState.OBSOLETE:
        yield Violation("spec.is_default", "an obsolete version cannot be the default")


def _with_lifecycle_times(
    old: ClusterVersionSpec | None, spec: ClusterVersionSpec, now: datetime
) -> ClusterVersionSpec:
    """The spec with the times at which it became deprecated or obsolete, which only the service writes."""
    before = old.state if old is not None else ClusterVersionState.UNSPECIFIED
    if spec.state == before:
        return spec
    deprecation = spec.deprecation
    if spec.state == ClusterVersionState.DEPRECATED:
        deprecation = replace(deprecation, deprecation_timestamp=now)
    if spec.state == ClusterVersionState.OBSOLETE:
        deprecation = replace(deprecation, obsolescence_timestamp=now)
    return replace(spec, deprecation=deprecation)
