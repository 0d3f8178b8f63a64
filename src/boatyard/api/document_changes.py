"""The changes committed together with a document: references, unique keys, due work, event notes. Called by crud."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from boatyard.api import fields
from boatyard.api.kinds import CATALOGUE_STRUCTS, HOMES, KINDS, ResourceKind
from boatyard.ledger.changes import (
    Change,
    Due,
    EventNote,
    Replace,
    Require,
    Reserve,
    Unreferenced,
    Unreserve,
)
from boatyard.ledger.records import DuplicateDocument
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Denied, Exists, Refused, Violation
from boatyard.model.generated.osac import Resource
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.metadata import quote_text

DocumentsByKey = Mapping[tuple[str, str], Resource]
T = TypeVar("T")

MOST_TRIES = 8  # how often a change is tried when concurrent writers win


def iterate_tries() -> Iterator[bool]:
    """Yields once per try; True for the last one."""
    for attempt in range(MOST_TRIES):
        yield attempt == MOST_TRIES - 1


def make_note(reason: str, caller: Caller, action: str) -> EventNote:
    actor = "an operator" if caller.is_operator else caller.user
    return EventNote(reason, f"{action} by {actor}")


def choose_tenant(kind: ResourceKind, requested_tenant: str, caller: Caller) -> str:
    """The tenant of a new document. Denied for another tenant's name, in the same words whether it exists or not."""
    if caller.is_operator:
        return requested_tenant or (kind.tenant if caller.tenant == SHARED else caller.tenant)
    if requested_tenant not in ("", caller.tenant):
        raise Denied(f"the tenant {quote_text(requested_tenant)} cannot be assigned")
    return caller.tenant


def merge_finalizers(kind: ResourceKind, requested: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*kind.finalizers, *requested}))


def make_requirements(
    kind: ResourceKind,
    doc: Resource,
    referenced_docs: DocumentsByKey,
    *,
    previous: Resource | None = None,
) -> list[Change]:
    """Requires that the documents referred to and those it belongs to still have the version that was read.

    References that the document already had in its `previous` version are left out.
    """
    required_keys = _list_references(kind, doc)
    if previous is not None:
        required_keys -= _list_references(kind, previous)
    elif kind.owned:
        for owner_kind, home in HOMES:
            value: str = getattr(doc.metadata, home.field)
            if value and home.by_name:
                required_keys |= {key for key in referenced_docs if key[0] == owner_kind.name}
            elif value:
                required_keys.add((owner_kind.name, value))
    return [
        Require(*key, version=_version_of(referenced_docs.get(key)))
        for key in sorted(required_keys)
    ]


def _version_of(doc: Resource | None) -> int | None:
    return None if doc is None else doc.metadata.version


def make_due_changes(kind: ResourceKind, doc: Resource, now: datetime) -> list[Change]:
    """Makes the document's reconciler run now, for kinds that have one."""
    if not kind.reconciled:
        return []
    hub = kind.rules.hub_of_work(doc)
    return [Due(kind.name, doc.id, now, tenant=doc.metadata.tenant, hub=hub)]


def require_unreferenced(kind: ResourceKind, doc: Resource) -> list[Change]:
    """Requires that no document refers to this one, and that none begins to before the commit."""
    home = kind.home
    if home is None or not home.by_name:
        return [Unreferenced(kind.name, doc.id, kind.referrers)] if kind.referrers else []
    # Documents refer to this one by name, so there are two checks: the first waits for writers that
    # are about to, the second looks for referrers. The ledger checks in the order of these kinds' names.
    path = f'$.metadata ? (@.tenant == "{doc.metadata.tenant}").{home.field}'
    # What only operators see keeps no tenant's document: the refusal would name it to the tenant.
    owners = [
        (other.name, path)
        for other in KINDS.values()
        if other.owned and (other.public or other.written_by_service)
    ]
    return [
        Unreferenced(kind.name, doc.id, ()),
        Unreferenced(f"{kind.name} named", doc.metadata.name, owners),
    ]


def make_side_changes(
    kind: ResourceKind, old: Resource | None, new: Resource, context: AdmissionContext
) -> list[Change]:
    """Changes to other documents that the rules ask for, and reservations of keys that only one document may hold."""
    rules = kind.rules
    others = rules.companion_changes(new, context)
    changes: list[Change] = [
        Replace(other, EventNote("Changed", f"Gave way to {new.metadata.name}")) for other in others
    ]
    old_keys = set(rules.unique_keys(old)) if old is not None else set()
    new_keys = set(rules.unique_keys(new))
    if not old_keys and not new_keys and not others:
        return changes
    freed_keys = {key: other for other in others for key in _freed_keys(context, kind, other)}
    for key in sorted(new_keys - old_keys):
        # The document that gives the key up does so in this transaction, guarded by its version.
        room = 2 if key in freed_keys else 1
        changes.append(Reserve(key, format_owner(kind, new.id), 1, room))
    changes += [Unreserve(format_owner(kind, new.id), key) for key in sorted(old_keys - new_keys)]
    changes += [
        Unreserve(format_owner(kind, other.id), key) for key, other in sorted(freed_keys.items())
    ]
    return changes


def _freed_keys(context: AdmissionContext, kind: ResourceKind, other: Resource) -> set[str]:
    """The keys that another document held before its change and gives up by it."""
    unique_keys = kind.rules.unique_keys
    return set(unique_keys(context.documents[kind.name, other.id])) - set(unique_keys(other))


def format_owner(kind: ResourceKind, id: str) -> str:
    return f"{kind.name}/{id}"


def make_exists_error(kind: ResourceKind, doc: Resource, error: DuplicateDocument) -> Exists:
    value = doc.id if error.field == "id" else doc.metadata.name
    return Exists(f"{kind.english_name} with {error.field} {quote_text(value)} already exists")


def run_rule(violations: list[Violation], rule: Callable[[], T]) -> T:
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


def _list_references(kind: ResourceKind, doc: Resource) -> set[tuple[str, str]]:
    return {
        (target, reference.id)
        for path, target in kind.references.items()
        if target in CATALOGUE_STRUCTS and not path.startswith("status.")
        for _, reference in fields.list_values(doc, fields.split_path(path))
        if reference.id
    } | set(kind.rules.required_documents(doc))
