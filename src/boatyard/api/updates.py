"""One update for every kind. Called by the gRPC and REST servers."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from boatyard.api import admission, document_changes, fields, masks, policy
from boatyard.api.crud import Call, Crud, check_id, refuse_unsupported_dry_run
from boatyard.api.kinds import KindView, ResourceKind
from boatyard.api.permissions import Verb
from boatyard.api.references import look_up_documents, resolve_references
from boatyard.api.requests import UpdateRequest
from boatyard.ledger.changes import Archive, Change, Replace, Unreserve
from boatyard.model.errors import Conflict, Precondition, Refused, Violation
from boatyard.model.generated.osac import Resource
from boatyard.resources.metadata import quote_text


async def update_document(
    crud: Crud, view: KindView, request: UpdateRequest, call: Call
) -> Resource:
    """Applies the update and returns the resulting document, secrets hidden. Stores nothing when nothing changes.

    Without a lock the change is applied to the latest stored version; with a lock, Conflict unless the
    version in the request is the stored one.
    """
    kind = view.kind
    policy.check(call.caller, Verb.UPDATE, kind.name, private=view.private)
    refuse_unsupported_dry_run(call)
    desired = admission.read_document(view, request.object)
    check_id(desired.id)
    tree = _parse_mask(view, request, call)
    for is_last_try in document_changes.iterate_tries():
        old = await crud.find(kind, desired.id, call.caller, sealed=False)
        policy.check_owner(call.caller, Verb.UPDATE, old.metadata.tenant)
        if request.lock and desired.metadata.version != old.metadata.version:
            raise Conflict(
                f"object with identifier {quote_text(old.id)} has been modified: requested version is"
                f" {desired.metadata.version} but current version is {old.metadata.version}"
            )
        new = old if tree is None else _merge_update(view, old, desired, tree)
        if new == old:
            return fields.redact(old, kind.sensitive)
        try:
            stored = await _store_update(crud, view, old, new, call)
        except Conflict:
            if is_last_try or request.lock:
                raise
            crud.catalogue.clear()
            continue
        return fields.redact(stored, kind.sensitive)
    raise AssertionError("the last try returns or raises")


async def _store_update(
    crud: Crud, view: KindView, old: Resource, new: Resource, call: Call
) -> Resource:
    kind, rules, caller = view.kind, view.kind.rules, call.caller
    now = crud.ledger.clock.now()
    violations = list(_immutable_violations(kind, old, new))
    violations += admission.metadata_violations(kind, new, new=False)
    violations += admission.text_violations(new)
    violations += admission.hidden_violations(kind, new)
    resolved = await resolve_references(new, kind, crud.catalogue)
    await look_up_documents(resolved, kind, old, caller, crud.ledger)
    violations += resolved.violations
    world = await crud.read_rule_inputs(view, resolved, caller, now=now, old=old)
    new = document_changes.run_rule(
        violations, lambda: rules.admit_update(old, resolved.doc, world)
    )
    if new == old:
        return old
    changed_fields = _list_changed_fields(old, new)
    if any(name not in ("metadata", "status") for name in changed_fields):
        metadata = replace(new.metadata, generation=old.metadata.generation + 1)
        new = replace(new, metadata=metadata)
    message = f"{', '.join(changed_fields)} changed"
    changes: list[Change] = [
        Replace(new, document_changes.make_note("Changed", caller, message.capitalize()))
    ]
    changes += document_changes.make_requirements(kind, new, world.documents, previous=old)
    changes += document_changes.make_side_changes(kind, old, new, world)
    moved_field = rules.fields_fixed_in_use(old, new)
    if moved_field:
        changes += document_changes.require_unreferenced(kind, new)
    if new.metadata.deletion_timestamp is not None and not new.metadata.finalizers:
        changes += _make_archive_changes(kind, new, call)
    else:
        changes += document_changes.make_due_changes(kind, new, now)
    try:
        await crud.commit(kind, changes, now)
    except Precondition as error:
        if not moved_field:
            raise
        message = f"{moved_field} cannot change: {error}; leave it as it is, or register another {kind.english_name}"
        raise Precondition(message) from error
    return _with_next_version(new)


def _with_next_version(doc: Resource) -> Resource:
    """The document with the version that the ledger gives it when it is stored."""
    return replace(doc, metadata=replace(doc.metadata, version=doc.metadata.version + 1))


def _make_archive_changes(kind: ResourceKind, new: Resource, call: Call) -> list[Change]:
    """The changes that archive a document whose last finalizer was removed by this update."""
    final_doc = _with_next_version(new)
    note = document_changes.make_note("Deleted", call.caller, "Last finalizer removed")
    changes = document_changes.require_unreferenced(kind, final_doc)
    return [
        *changes,
        Archive(final_doc, note),
        Unreserve(document_changes.format_owner(kind, final_doc.id)),
    ]


def _parse_mask(view: KindView, request: UpdateRequest, call: Call) -> masks.MaskTree | None:
    """The tree of fields that the request changes; {} is everything its package shows, None is nothing."""
    if not request.HasField("update_mask") or not request.update_mask.paths:
        return {}
    tree = masks.parse_paths(tuple(request.update_mask.paths), view.descriptor)
    violations = []
    for path in view.server_owned:
        if not masks.contains_path(tree, path):
            continue
        # A body that was read and written back names every field; a mask was written on purpose.
        if not call.mask_from_body:
            violations.append(
                Violation(
                    "update_mask",
                    f"{quote_text(path)} is written by the service",
                    "take it out of the mask",
                )
            )
        tree = masks.remove_path(tree, path)
    if violations:
        raise Refused("", *violations)
    return tree or None


def _merge_update(
    view: KindView, old: Resource, desired: Resource, tree: masks.MaskTree
) -> Resource:
    """The stored document with the requested changes, except to fields that this caller cannot write."""
    new = masks.merge(old, desired, tree, view.descriptor)
    if not tree and desired.metadata.version != old.metadata.version and hasattr(old, "status"):
        # The whole object was read, edited and written back: its status may be stale, so the stored one
        # stays. An old status without a hub would have the cluster placed a second time.
        new = replace(new, status=old.status)
    for path in view.server_owned:
        if fields.read(new, path) != fields.read(old, path):
            new = fields.replace_field(new, path, fields.read(old, path))
    for path in view.kind.immutable:
        # A field that is left out is not changed: sending a part of the object must not empty it.
        if not fields.read(new, path) and not masks.contains_path(tree, path):
            new = fields.replace_field(new, path, fields.read(old, path))
    for path in view.kind.sensitive:
        if fields.is_hidden(fields.read(new, path)) and fields.read(old, path):
            new = fields.replace_field(new, path, fields.read(old, path))
    if view.private:
        finalizers = tuple(sorted(set(new.metadata.finalizers)))
        new = replace(new, metadata=replace(new.metadata, finalizers=finalizers))
    return new


def _immutable_violations(kind: ResourceKind, old: Resource, new: Resource) -> Iterator[Violation]:
    for path in kind.immutable:
        if fields.read(new, path) != fields.read(old, path):
            yield Violation(path, "is immutable", "leave it as it is")


def _list_changed_fields(old: Resource, new: Resource) -> list[str]:
    return [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
