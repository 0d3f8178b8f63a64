"""Admission rules of tenants. Called by the API before a tenant is stored."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Precondition, Refused, Violation
from boatyard.model.generated.osac import Tenant, TenantState
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import is_label, quote_text

BUILT_IN_TENANTS = (SHARED, SYSTEM)
MOST_DOMAINS = 100


class TenantRules(KindRules[Tenant]):
    def admit_create(self, new: Tenant, context: AdmissionContext) -> Tenant:
        """Admits a new tenant. Its id, its name and its own tenant are the same word."""
        name = new.metadata.name
        violations = list(_domain_violations(new))
        if new.id and new.id != name:
            violations.append(Violation("id", "of a tenant must be its name", "leave it out"))
        if violations:
            raise Refused("", *violations)
        return replace(
            new,
            id=name,
            metadata=replace(new.metadata, tenant=name, project=""),
            status=replace(new.status, state=TenantState.SYNCED),
        )

    def admit_update(self, old: Tenant, new: Tenant, context: AdmissionContext) -> Tenant:
        violations = list(_domain_violations(new))
        if violations:
            raise Refused("", *violations)
        return new

    def admit_delete(self, old: Tenant, context: AdmissionContext) -> None:
        if old.id in BUILT_IN_TENANTS:
            raise Precondition(f"the tenant {old.id} is built in and cannot be deleted")

    def unique_keys(self, doc: Tenant) -> tuple[str, ...]:
        """Unique keys of the tenant: a domain belongs to one tenant."""
        return tuple(f"domain/{domain}" for domain in doc.spec.domains)


def _domain_violations(tenant: Tenant) -> Iterator[Violation]:
    domains = tenant.spec.domains
    if len(domains) > MOST_DOMAINS:
        yield Violation("spec.domains", f"has {len(domains)} entries", f"at most {MOST_DOMAINS}")
        return
    for index, domain in enumerate(domains):
        path = f"spec.domains[{index}]"
        labels = domain.split(".")
        if domain in domains[:index]:
            yield Violation(path, f"{quote_text(domain)} is there twice")
        elif len(domain) > 253 or len(labels) < 2 or not all(map(is_label, labels)):
            yield Violation(path, f"{quote_text(domain)} is not a DNS name", "such as example.com")
        elif all(label.isdigit() for label in labels):
            yield Violation(path, f"{quote_text(domain)} is an address", "give a DNS name")
