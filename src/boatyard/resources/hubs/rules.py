"""Admission rules of hubs. Called by the API before a hub is stored.

Errors that only the author can fix are refused here. Problems that may pass (an address that does not answer, a missing
right) are not: the hub is registered, and its conditions say what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import Hub
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.hubs import kubeconfigs
from boatyard.resources.hubs.ports import DEFAULT_DRIVER, OPTIONAL_PORTS, PORTS, STATEFUL_PORTS
from boatyard.resources.hubs.settings import (
    CONTEXT_SETTING,
    INSECURE_SETTING,
    LONGEST_ORDERS_NAMESPACE,
    NO_LEASE,
    OPERATOR_LEASE_SETTING,
    ORDERS_NAMESPACE_SETTING,
    SYSTEM_NAMESPACE,
    get_system_namespace,
    is_kubernetes,
)
from boatyard.resources.kind_rules import KindRules
from boatyard.resources.metadata import is_label, is_subdomain, quote_text

LONGEST_KUBECONFIG = 256 * 1024
MOST_ENTRIES = 1000
_TENANT_NAMESPACE_PREFIX = "boatyard-"  # prefix of the namespaces of tenants' orders


class HubRules(KindRules[Hub]):
    def fill_defaults(self, new: Hub) -> Hub:
        if is_kubernetes(new) and not new.spec.namespace:
            return replace(new, spec=replace(new.spec, namespace=SYSTEM_NAMESPACE))
        return new

    def admit_create(self, new: Hub, context: AdmissionContext) -> Hub:
        """Admits a new hub. It has a kubeconfig, or it is embedded and consists of its drivers alone."""
        violations = [*_violations(new), *_kubeconfig_violations(new, context.now)]
        _raise_violations([*violations, *_driver_setting_violations(new, context)])
        return new

    def admit_update(self, old: Hub, new: Hub, context: AdmissionContext) -> Hub:
        """Admits a change. Unchanged fields are not checked again: an expired certificate must not forbid a cordon."""
        violations = list(_violations(new))
        if is_kubernetes(old) != is_kubernetes(new):
            violations.append(
                Violation(
                    kubeconfigs.PATH,
                    "a hub stays embedded or Kubernetes: its orders are kept there",
                    "register another hub",
                )
            )
        elif _get_connection_fields(old) != _get_connection_fields(new):
            violations += _kubeconfig_violations(new, context.now)
        if _get_driver_fields(old) != _get_driver_fields(new):
            violations += _driver_setting_violations(new, context)
        if any(old.status.used.values()):
            violations += _move_violations(old, new)
        _raise_violations(violations)
        return new

    def fields_fixed_in_use(self, old: Hub, new: Hub) -> str:
        """The changed fields that may only change while the hub is empty; empty when there are none.

        After such a change, everything on the hub would be looked for in another place.
        """
        return ", ".join(violation.path for violation in _move_violations(old, new))

    def hub_of_work(self, doc: Hub) -> str:
        return doc.id


def _move_violations(old: Hub, new: Hub) -> Iterator[Violation]:
    """A violation for each change that moves orders or their items: what is not found would count as released."""
    remedy = "leave it as it is while the hub has clusters, or register another hub"
    if is_kubernetes(old):
        path = f"spec.settings.{ORDERS_NAMESPACE_SETTING}"
        if old.spec.settings.get(ORDERS_NAMESPACE_SETTING) != new.spec.settings.get(
            ORDERS_NAMESPACE_SETTING
        ):
            yield Violation(path, "the orders of the hub's clusters are kept there", remedy)
        if get_system_namespace(old) != get_system_namespace(new):
            what = "the claims of the hub's clusters are kept there"
            yield Violation("spec.namespace", what, remedy)
    for port in STATEFUL_PORTS:
        before, after = (hub.spec.drivers.get(port, DEFAULT_DRIVER) for hub in (old, new))
        if before != after:
            what = f"what the hub's clusters have of it is known to {quote_text(before)} alone"
            yield Violation(f"spec.drivers.{port}", what, remedy)


def _raise_violations(violations: list[Violation]) -> None:
    if violations:
        raise Refused("", *violations)


def _get_connection_fields(hub: Hub) -> tuple[bytes, str, str]:
    settings = hub.spec.settings
    return (
        hub.spec.kubeconfig,
        settings.get(CONTEXT_SETTING, ""),
        settings.get(INSECURE_SETTING, ""),
    )


def _get_driver_fields(hub: Hub) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return hub.spec.drivers, hub.spec.settings


def _driver_setting_violations(hub: Hub, context: AdmissionContext) -> Iterator[Violation]:
    """Violations of the drivers' own setting checks: otherwise a tenant's order would fail on them."""
    for port_and_driver in hub.spec.drivers.items():
        check = context.setting_checks.get(port_and_driver)
        if check is None:
            continue
        try:
            check(hub.spec.settings)
        except Refused as error:
            for violation in error.violations:
                path = f"spec.settings.{violation.path.removeprefix('settings.')}"
                yield Violation(path, violation.message, violation.remedy)


def _kubeconfig_violations(hub: Hub, now: datetime) -> Iterator[Violation]:
    spec = hub.spec
    if not spec.kubeconfig or len(spec.kubeconfig) > LONGEST_KUBECONFIG:
        return
    summary = kubeconfigs.read_summary(
        spec.kubeconfig,
        spec.settings.get(CONTEXT_SETTING, ""),
        insecure=spec.settings.get(INSECURE_SETTING) == "true",
    )
    yield from summary.violations
    if summary.expires_at is not None and summary.expires_at <= now:
        yield Violation(
            kubeconfigs.PATH,
            f"its credentials ended at {summary.expires_at:%Y-%m-%d %H:%M} UTC",
            kubeconfigs.TOKEN_REMEDY,
        )


def _violations(hub: Hub) -> Iterator[Violation]:
    spec = hub.spec
    if not spec.drivers and not spec.kubeconfig:
        yield Violation(
            "spec.kubeconfig", "is required", "or name drivers in spec.drivers for an embedded hub"
        )
    if len(spec.kubeconfig) > LONGEST_KUBECONFIG:
        yield Violation("spec.kubeconfig", "is too long", f"at most {LONGEST_KUBECONFIG} bytes")
    yield from _namespace_violations(hub)
    for name in ("labels", "drivers", "capacity", "settings", "templates"):
        if len(getattr(spec, name)) > MOST_ENTRIES:
            yield Violation(f"spec.{name}", f"at most {MOST_ENTRIES} entries are kept")
    for key, count in spec.capacity.items():
        if count < 0:
            yield Violation(f"spec.capacity.{key}", f"{count} is negative", "give 0 or more")
    yield from _driver_violations(hub)
    yield from _setting_violations(hub)


def _namespace_violations(hub: Hub) -> Iterator[Violation]:
    name = hub.spec.namespace
    if name and not is_label(name):
        yield Violation("spec.namespace", f"{quote_text(name)} is not a namespace")
    elif (
        is_kubernetes(hub)
        and name.startswith(_TENANT_NAMESPACE_PREFIX)
        and name != SYSTEM_NAMESPACE
    ):
        yield Violation(
            "spec.namespace",
            f"{quote_text(name)} may be the namespace of a tenant's orders",
            f"use {SYSTEM_NAMESPACE}, or a name that does not begin with {_TENANT_NAMESPACE_PREFIX}",
        )


def _driver_violations(hub: Hub) -> Iterator[Violation]:
    ports = {**PORTS, **OPTIONAL_PORTS}
    for port, driver in hub.spec.drivers.items():
        path = f"spec.drivers.{port}"
        if port not in ports:
            yield Violation(path, "there is no such port", f"there is {', '.join(ports)}")
        elif driver not in ports[port]:
            names = ", ".join(sorted(ports[port]))
            yield Violation(path, f"there is no driver {quote_text(driver)}", f"there is {names}")
    if hub.spec.drivers.get("automation") == "eda" and not is_kubernetes(hub):
        remedy = "give the hub a kubeconfig, or leave it out"
        yield Violation("spec.drivers.automation", "eda records its runs on the hub", remedy)


def _setting_violations(hub: Hub) -> Iterator[Violation]:
    settings = hub.spec.settings
    orders = settings.get(ORDERS_NAMESPACE_SETTING)
    if orders is not None and not (is_label(orders) and len(orders) <= LONGEST_ORDERS_NAMESPACE):
        yield Violation(
            f"spec.settings.{ORDERS_NAMESPACE_SETTING}",
            f"{quote_text(orders)} cannot hold orders",
            f"name a namespace of at most {LONGEST_ORDERS_NAMESPACE} characters",
        )
    lease = settings.get(OPERATOR_LEASE_SETTING)
    if lease is not None and not is_subdomain(lease):
        yield Violation(
            f"spec.settings.{OPERATOR_LEASE_SETTING}",
            f"{quote_text(lease)} is not the name of a Lease",
            f"name the operator's, or {NO_LEASE} when another operator carries orders out",
        )
    if settings.get(INSECURE_SETTING) not in (None, "true", "false"):
        yield Violation(f"spec.settings.{INSECURE_SETTING}", "is neither true nor false")
