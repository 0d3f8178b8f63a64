"""The changes committed together with a document: references, unique keys, due work, event notes. Called by crud."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from boatyard.api import fields
from boatyard.api.kinds import KINDS, Kind
from boatyard.api.references import CLASSES
from boatyard.ledger.changes import (
    Change,
    Due,
    Note,
    Replace,
    Require,
    Reserve,
    Unreferenced,
    Unreserve,
)
from boatyard.ledger.records import Taken
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Denied, Exists, Refused, Violation
from boatyard.resources.metadata import shown
from boatyard.resources.world import World

Found = Mapping[tuple[str, str], Any]

TRIES = 8  # how often a change is tried when concurrent writers win


def tries() -> Iterator[bool]:
    """Yields once per try; True for the last one."""
    for attempt in range(TRIES):
        yield attempt == TRIES - 1


def note(reason: str, caller: Caller, action: str) -> Note:
    actor = "an operator" if caller.is_operator else caller.user
    return Note(reason, f"{action} by {actor}")


def tenant_of_new(kind: Kind, requested_tenant: str, caller: Caller) -> str:
    """The tenant of a new document. Denied for another tenant's name, in the same words whether it exists or not."""
    if caller.is_operator:
        return requested_tenant or (kind.tenant if caller.tenant == SHARED else caller.tenant)
    if requested_tenant not in ("", caller.tenant):
        raise Denied(f"the tenant {shown(requested_tenant)} cannot be assigned")
    return caller.tenant


def finalizers(kind: Kind, requested: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*kind.finalizers, *requested}))


def requirements(
    kind: Kind, doc: Any, referenced_docs: Found, *, previous: Any = None
) -> list[Change]:
    """Requires that the documents referred to, the tenant and the project still have the version that was read.

    References that the document already had in its `previous` version are left out.
    """
    required_keys = _referred(kind, doc)
    if previous is not None:
        required_keys -= _referred(kind, previous)
    elif kind.name != "Tenant":
        required_keys.add(("Tenant", doc.metadata.tenant))
        if doc.metadata.project:
            required_keys |= {key for key in referenced_docs if key[0] == "Project"}
    return [
        Require(*key, version=_version(referenced_docs.get(key))) for key in sorted(required_keys)
    ]


def _version(doc: Any | None) -> int | None:
    return None if doc is None else doc.metadata.version


def due(kind: Kind, doc: Any, now: datetime) -> list[Change]:
    """Makes the document's reconciler run now, for kinds that have one."""
    if not kind.reconciled:
        return []
    hub = doc.id if kind.name == "Hub" else ""
    return [Due(kind.name, doc.id, now, tenant=doc.metadata.tenant, hub=hub)]


def unused(kind: Kind, doc: Any) -> list[Change]:
    """Requires that no document refers to this one, and that none begins to before the commit."""
    if kind.name != "Project":
        return [Unreferenced(kind.name, doc.id, kind.referrers)] if kind.referrers else []
    # Documents refer to their project by name, so there are two checks: the first waits for writers that
    # are about to, the second looks for referrers. The ledger checks in the order of these kinds' names.
    path = f'$.metadata ? (@.tenant == "{doc.metadata.tenant}").project'
    owners = [(name, path) for name in KINDS if name not in ("Tenant", "Hub")]
    return [
        Unreferenced("Project", doc.id, ()),
        Unreferenced("Project named", doc.metadata.name, owners),
    ]


def beside(kind: Kind, old: Any | None, new: Any, world: World) -> list[Change]:
    """Changes to other documents that the rules ask for, and reservations of keys that only one document may hold."""
    also = getattr(kind.rules, "also", None)
    others = also(new, world) if also is not None else ()
    changes: list[Change] = [
        Replace(other, Note("Changed", f"Gave way to {new.metadata.name}")) for other in others
    ]
    holds = getattr(kind.rules, "holds", None)
    if holds is None:
        return changes
    old_keys = set(holds(old)) if old is not None else set()
    freed_keys = {key: other for other in others for key in holds_before(world, kind, other, holds)}
    for key in sorted(set(holds(new)) - old_keys):
        # The document that gives the key up does so in this transaction, guarded by its version.
        room = 2 if key in freed_keys else 1
        changes.append(Reserve(key, owner(kind, new.id), 1, room))
    changes += [Unreserve(owner(kind, new.id), key) for key in sorted(old_keys - set(holds(new)))]
    changes += [Unreserve(owner(kind, other.id), key) for key, other in sorted(freed_keys.items())]
    return changes


def holds_before(
    world: World, kind: Kind, other: Any, holds: Callable[[Any], tuple[str, ...]]
) -> set[str]:
    """The keys that another document held before its change and gives up by it."""
    return set(holds(world.found[kind.name, other.id])) - set(holds(other))


def owner(kind: Kind, id: str) -> str:
    return f"{kind.name}/{id}"


def taken(kind: Kind, doc: Any, error: Taken) -> Exists:
    value = doc.id if error.field == "id" else doc.metadata.name
    return Exists(f"{kind.words} with {error.field} {shown(value)} already exists")


def ask(violations: list[Violation], rule: Callable[[], Any]) -> Any:
    """Returns the rule's result. Refused with its violations and the earlier ones together, one per path."""
    try:
        admitted = rule()
    except Refused as error:
        if type(error) is not Refused or not error.violations:
            raise
        reported_paths = {violation.path for violation in violations}
        new_violations = [
            violation for violation in error.violations if violation.path not in reported_paths
        ]
        raise Refused("", *violations, *new_violations) from error
    if violations:
        raise Refused("", *violations)
    return admitted


def maybe(rules: Any, name: str, *arguments: Any) -> Any:
    """Calls an optional rule; None when the kind does not have it."""
    rule = getattr(rules, name, None)
    return rule(*arguments) if rule is not None else None


def _referred(kind: Kind, doc: Any) -> set[tuple[str, str]]:
    extra_keys: set[tuple[str, str]] = maybe(kind.rules, "requires", doc) or set()
    return extra_keys | {
        (target, reference.id)
        for path, target in kind.references.items()
        if target in CLASSES and not path.startswith("status.")
        for _, reference in fields.walk(doc, fields.split(path))
        if reference.id
    }
