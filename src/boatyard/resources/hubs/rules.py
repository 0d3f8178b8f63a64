"""What a hub must be like. Called by the API before a hub is stored."""

from __future__ import annotations

from collections.abc import Iterator

from boatyard.model.errors import Refused, Violation
from boatyard.model.generated.osac import Hub
from boatyard.resources.metadata import is_label, shown
from boatyard.resources.world import World

LONGEST_KUBECONFIG = 256 * 1024
MOST_ENTRIES = 1000


def admit_create(new: Hub, world: World) -> Hub:
    """A hub is reached by its kubeconfig, or by the drivers it names."""
    _check(new)
    return new


def admit_update(old: Hub, new: Hub, world: World) -> Hub:
    _check(new)
    return new


def _check(hub: Hub) -> None:
    violations = list(_violations(hub))
    if violations:
        raise Refused("", *violations)


def _violations(hub: Hub) -> Iterator[Violation]:
    spec = hub.spec
    if not spec.drivers and not spec.kubeconfig:
        yield Violation("spec.kubeconfig", "is required", "or name drivers in spec.drivers")
    if spec.kubeconfig and not spec.namespace:
        yield Violation("spec.namespace", "is required", "name the namespace for orders")
    if len(spec.kubeconfig) > LONGEST_KUBECONFIG:
        yield Violation("spec.kubeconfig", "is too long", f"at most {LONGEST_KUBECONFIG} bytes")
    if spec.namespace and not is_label(spec.namespace):
        yield Violation("spec.namespace", f"{shown(spec.namespace)} is not a namespace")
    for name in ("labels", "drivers", "capacity", "settings", "templates"):
        if len(getattr(spec, name)) > MOST_ENTRIES:
            yield Violation(f"spec.{name}", f"at most {MOST_ENTRIES} entries are kept")
    for key, count in spec.capacity.items():
        if count < 0:
            yield Violation(f"spec.capacity.{key}", f"{count} is negative", "give 0 or more")
