"""One update for every kind. Called by the gRPC and REST servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from boatyard.api import admission, fields, masks, policy, writing
from boatyard.api.crud import Call, Crud, check_id, check_wet
from boatyard.api.kinds import Kind, View
from boatyard.api.policy import Verb
from boatyard.api.references import resolve, seek
from boatyard.ledger.changes import Archive, Change, Replace, Unreserve
from boatyard.model.errors import Conflict, Precondition, Refused, Violation
from boatyard.resources.metadata import shown


async def update(crud: Crud, view: View, request: Any, call: Call) -> Any:
    """Applies the update and returns the resulting document, secrets hidden. Stores nothing when nothing changes.

    Without a lock the change is applied to the latest stored version; with a lock, Conflict unless the
    version in the request is the stored one.
    """
    kind = view.kind
    policy.check(call.caller, Verb.UPDATE, kind.name, private=view.private)
    check_wet(call)
    desired = admission.read(view, request.object)
    check_id(desired.id)
    tree = _tree(view, request, call)
    for is_last_try in writing.tries():
        old = await crud.find(kind, desired.id, call.caller, sealed=False)
        policy.check_owner(call.caller, Verb.UPDATE, old.metadata.tenant)
        if request.lock and desired.metadata.version != old.metadata.version:
            raise Conflict(
                f"object with identifier {shown(old.id)} has been modified: requested version is"
                f" {desired.metadata.version} but current version is {old.metadata.version}"
            )
        new = old if tree is None else _merged(view, old, desired, tree)
        if new == old:
            return fields.redact(old, kind.sensitive)
        try:
            stored = await _store(crud, view, old, new, call)
        except Conflict:
            if is_last_try or request.lock:
                raise
            crud.catalogue.clear()
            continue
        return fields.redact(stored, kind.sensitive)
    raise AssertionError("the last try returns or raises")


async def _store(crud: Crud, view: View, old: Any, new: Any, call: Call) -> Any:
    kind, rules, caller = view.kind, view.kind.rules, call.caller
    assert rules is not None
    now = crud.ledger.clock.now()
    violations = list(_immutable_violations(kind, old, new))
    violations += admission.metadata_violations(kind, new, new=False)
    violations += admission.text_violations(new)
    violations += admission.hidden_violations(kind, new)
    resolved = await resolve(new, kind, crud.catalogue)
    await seek(resolved, kind, old, caller, crud.ledger)
    violations += resolved.violations
    world = await crud.world(view, resolved, caller, now=now, old=old)
    new = writing.ask(violations, lambda: rules.admit_update(old, resolved.doc, world))
    if new == old:
        return old
    changed_fields = _changed(old, new)
    if any(name not in ("metadata", "status") for name in changed_fields):
        metadata = replace(new.metadata, generation=old.metadata.generation + 1)
        new = replace(new, metadata=metadata)
    message = f"{', '.join(changed_fields)} changed"
    changes: list[Change] = [Replace(new, writing.note("Changed", caller, message.capitalize()))]
    changes += writing.requirements(kind, new, world.found, previous=old)
    changes += writing.beside(kind, old, new, world)
    moved_field = writing.maybe(rules, "moves", old, new)
    if moved_field:
        changes += writing.unused(kind, new)
    if new.metadata.deletion_timestamp is not None and not new.metadata.finalizers:
        changes += _end(kind, new, call)
    else:
        changes += writing.due(kind, new, now)
    try:
        await crud.commit(kind, changes, now)
    except Precondition as error:
        if not moved_field:
            raise
        message = f"{moved_field} cannot change: {error}; leave it as it is, or register another {kind.words}"
        raise Precondition(message) from error
    return _next(new)


def _next(doc: Any) -> Any:
    """The document with the version that the ledger gives it when it is stored."""
    return replace(doc, metadata=replace(doc.metadata, version=doc.metadata.version + 1))


def _end(kind: Kind, new: Any, call: Call) -> list[Change]:
    """The changes that archive a document whose last finalizer was removed by this update."""
    final_doc = _next(new)
    note = writing.note("Deleted", call.caller, "Last finalizer removed")
    changes = writing.unused(kind, final_doc)
    return [*changes, Archive(final_doc, note), Unreserve(writing.owner(kind, final_doc.id))]


def _tree(view: View, request: Any, call: Call) -> masks.Tree | None:
    """The tree of fields that the request changes; {} is everything its package shows, None is nothing."""
    if not request.HasField("update_mask") or not request.update_mask.paths:
        return {}
    tree = masks.parse(tuple(request.update_mask.paths), view.descriptor)
    violations = []
    for path in view.server_owned:
        if not masks.names(tree, path):
            continue
        # A body that was read and written back names every field; a mask was written on purpose.
        if not call.mask_from_body:
            violations.append(
                Violation(
                    "update_mask",
                    f"{shown(path)} is written by the service",
                    "take it out of the mask",
                )
            )
        tree = masks.without(tree, path)
    if violations:
        raise Refused("", *violations)
    return tree or None


def _merged(view: View, old: Any, desired: Any, tree: masks.Tree) -> Any:
    """The stored document with the requested changes, except to fields that this caller cannot write."""
    new = masks.merge(old, desired, tree, view.descriptor)
    if not tree and desired.metadata.version != old.metadata.version and hasattr(old, "status"):
        # The whole object was read, edited and written back: its status may be stale, so the stored one
        # stays. An old status without a hub would have the cluster placed a second time.
        new = replace(new, status=old.status)
    for path in view.server_owned:
        if fields.read(new, path) != fields.read(old, path):
            new = fields.put(new, path, fields.read(old, path))
    for path in view.kind.immutable:
        # A field that is left out is not changed: sending a part of the object must not empty it.
        if not fields.read(new, path) and not masks.names(tree, path):
            new = fields.put(new, path, fields.read(old, path))
    for path in view.kind.sensitive:
        if fields.is_hidden(fields.read(new, path)) and fields.read(old, path):
            new = fields.put(new, path, fields.read(old, path))
    if view.private:
        finalizers = tuple(sorted(set(new.metadata.finalizers)))
        new = replace(new, metadata=replace(new.metadata, finalizers=finalizers))
    return new


def _immutable_violations(kind: Kind, old: Any, new: Any) -> Iterator[Violation]:
    for path in kind.immutable:
        if fields.read(new, path) != fields.read(old, path):
            yield Violation(path, "is immutable", "leave it as it is")


def _changed(old: Any, new: Any) -> list[str]:
    return [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
