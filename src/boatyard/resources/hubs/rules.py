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
from boatyard.resources.hubs import kubeconfigs
from boatyard.resources.hubs.ports import DEFAULT_DRIVER, HOLDING, OPTIONAL_PORTS, PORTS
from boatyard.resources.hubs.settings import (
    CONTEXT,
    INSECURE,
    LONGEST_ORDERS_NAMESPACE,
    NO_LEASE,
    OPERATOR_LEASE,
    ORDERS_NAMESPACE,
    SYSTEM_NAMESPACE,
    is_kubernetes,
    system_namespace,
)
from boatyard.resources.metadata import is_label, is_subdomain, shown
from boatyard.resources.world import World

LONGEST_KUBECONFIG = 256 * 1024
MOST_ENTRIES = 1000
_TENANTS = "boatyard-"  # prefix of the namespaces of tenants' orders


def complete(new: Hub) -> Hub:
    if is_kubernetes(new) and not new.spec.namespace:
        return replace(new, spec=replace(new.spec, namespace=SYSTEM_NAMESPACE))
    return new


def admit_create(new: Hub, world: World) -> Hub:
    """Admits a new hub. It has a kubeconfig, or it is embedded and consists of its drivers alone."""
    violations = [*_violations(new), *_kubeconfig_violations(new, world.now)]
    _refuse([*violations, *_unworkable(new, world)])
    return new


def admit_update(old: Hub, new: Hub, world: World) -> Hub:
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
    elif _access(old) != _access(new):
        violations += _kubeconfig_violations(new, world.now)
    if _told_drivers(old) != _told_drivers(new):
        violations += _unworkable(new, world)
    if any(old.status.used.values()):
        violations += _moved(old, new)
    _refuse(violations)
    return new


def moves(old: Hub, new: Hub) -> str:
    """The changed fields that may only change while the hub is empty; empty when there are none.

    After such a change, everything on the hub would be looked for in another place.
    """
    return ", ".join(violation.path for violation in _moved(old, new))


def _moved(old: Hub, new: Hub) -> Iterator[Violation]:
    """A violation for each change that moves orders or their items: what is not found would count as released."""
    remedy = "leave it as it is while the hub has clusters, or register another hub"
    if is_kubernetes(old):
        path = f"spec.settings.{ORDERS_NAMESPACE}"
        if old.spec.settings.get(ORDERS_NAMESPACE) != new.spec.settings.get(ORDERS_NAMESPACE):
            yield Violation(path, "the orders of the hub's clusters are kept there", remedy)
        if system_namespace(old) != system_namespace(new):
            what = "the claims of the hub's clusters are kept there"
            yield Violation("spec.namespace", what, remedy)
    for port in HOLDING:
        before, after = (hub.spec.drivers.get(port, DEFAULT_DRIVER) for hub in (old, new))
        if before != after:
            what = f"what the hub's clusters have of it is known to {shown(before)} alone"
            yield Violation(f"spec.drivers.{port}", what, remedy)


def _refuse(violations: list[Violation]) -> None:
    if violations:
        raise Refused("", *violations)


def _access(hub: Hub) -> tuple[bytes, str, str]:
    settings = hub.spec.settings
    return hub.spec.kubeconfig, settings.get(CONTEXT, ""), settings.get(INSECURE, "")


def _told_drivers(hub: Hub) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return hub.spec.drivers, hub.spec.settings


def _unworkable(hub: Hub, world: World) -> Iterator[Violation]:
    """Violations of the drivers' own setting checks: otherwise a tenant's order would fail on them."""
    for port_and_driver in hub.spec.drivers.items():
        check = world.setting_checks.get(port_and_driver)
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
    summary = kubeconfigs.read(
        spec.kubeconfig,
        spec.settings.get(CONTEXT, ""),
        insecure=spec.settings.get(INSECURE) == "true",
    )
    yield from summary.violations
    if summary.ends_at is not None and summary.ends_at <= now:
        yield Violation(
            kubeconfigs.PATH,
            f"its credentials ended at {summary.ends_at:%Y-%m-%d %H:%M} UTC",
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
        yield Violation("spec.namespace", f"{shown(name)} is not a namespace")
    elif is_kubernetes(hub) and name.startswith(_TENANTS) and name != SYSTEM_NAMESPACE:
        yield Violation(
            "spec.namespace",
            f"{shown(name)} may be the namespace of a tenant's orders",
            f"use {SYSTEM_NAMESPACE}, or a name that does not begin with {_TENANTS}",
        )


def _driver_violations(hub: Hub) -> Iterator[Violation]:
    ports = {**PORTS, **OPTIONAL_PORTS}
    for port, driver in hub.spec.drivers.items():
        path = f"spec.drivers.{port}"
        if port not in ports:
            yield Violation(path, "there is no such port", f"there is {', '.join(ports)}")
        elif driver not in ports[port]:
            names = ", ".join(sorted(ports[port]))
            yield Violation(path, f"there is no driver {shown(driver)}", f"there is {names}")
    if hub.spec.drivers.get("automation") == "eda" and not is_kubernetes(hub):
        remedy = "give the hub a kubeconfig, or leave it out"
        yield Violation("spec.drivers.automation", "eda records its runs on the hub", remedy)


def _setting_violations(hub: Hub) -> Iterator[Violation]:
    settings = hub.spec.settings
    orders = settings.get(ORDERS_NAMESPACE)
    if orders is not None and not (is_label(orders) and len(orders) <= LONGEST_ORDERS_NAMESPACE):
        yield Violation(
            f"spec.settings.{ORDERS_NAMESPACE}",
            f"{shown(orders)} cannot hold orders",
            f"name a namespace of at most {LONGEST_ORDERS_NAMESPACE} characters",
        )
    lease = settings.get(OPERATOR_LEASE)
    if lease is not None and not is_subdomain(lease):
        yield Violation(
            f"spec.settings.{OPERATOR_LEASE}",
            f"{shown(lease)} is not the name of a Lease",
            f"name the operator's, or {NO_LEASE} when another operator carries orders out",
        )
    if settings.get(INSECURE) not in (None, "true", "false"):
        yield Violation(f"spec.settings.{INSECURE}", "is neither true nor false")
