"""One create, get, list, delete and signal for every kind. Called by both servers; update is in updates.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from boatyard.api import admission, document_changes, fields, policy
from boatyard.api.catalogue_cache import CatalogueCache
from boatyard.api.ids import LONGEST_ID, is_valid_chosen_id, new_id
from boatyard.api.kinds import HOMES, ID_FROM_NAME, ID_GENERATED, Home, KindView, ResourceKind
from boatyard.api.permissions import Verb
from boatyard.api.references import ResolvedDocument, look_up_documents, resolve_references
from boatyard.api.requests import ListRequest, ResourceMessage
from boatyard.ledger.changes import Archive, Change, Insert, Replace, Signal, Unreserve
from boatyard.ledger.filters.compile import compile_filter, compile_order
from boatyard.ledger.filters.conditions import Predicate
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import DocumentPage, DuplicateDocument
from boatyard.model import wire
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import (
    Conflict,
    Exhausted,
    Exists,
    NotFound,
    Precondition,
    Refused,
    Violation,
)
from boatyard.model.generated.osac import Resource
from boatyard.resources.admission_context import AdmissionContext, SettingChecks
from boatyard.resources.metadata import name_from_id, quote_text

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000


@dataclass(frozen=True)
class Call:
    """The caller and the options of one API call."""

    caller: Caller
    dry_run: bool = False
    mask_from_body: bool = False  # REST: the request had no mask, it was derived from the body


# Called with every new document that its rules have admitted. Raises Refused when it could not be carried out.
Preflight = Callable[[Resource, AdmissionContext], Awaitable[None]]


class Crud:
    """The generic verbs over one ledger."""

    def __init__(
        self,
        ledger: Ledger,
        catalogue: CatalogueCache,
        preflight: Preflight | None = None,
        *,
        setting_checks: SettingChecks | None = None,
    ) -> None:
        self.ledger = ledger
        self.catalogue = catalogue
        self._preflight = preflight
        self._setting_checks = setting_checks or {}

    async def get(self, view: KindView, id: str, call: Call) -> Resource:
        policy.check(call.caller, Verb.GET, view.kind.name, private=view.private)
        return await self.find(view.kind, id, call.caller, sealed=True)

    async def find(self, kind: ResourceKind, id: str, caller: Caller, *, sealed: bool) -> Resource:
        """Returns the document. NotFound, in the same words, when it does not exist or the caller may not see it."""
        check_id(id)
        doc = await self.ledger.documents.get(kind.struct, id, sealed=sealed)
        if doc is None or not can_see(caller, doc):
            raise make_not_found(kind, id)
        return doc

    async def list(
        self, view: KindView, request: ListRequest, call: Call
    ) -> DocumentPage[Resource]:
        """Returns a page of the documents that the caller may see. `request` is the List request of any kind."""
        kind = view.kind
        policy.check(call.caller, Verb.LIST, kind.name, private=view.private)
        limit = request.limit if request.HasField("limit") else DEFAULT_LIMIT
        if limit < 0:
            raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
        where = _build_predicate(view, request.filter)
        if not call.caller.is_operator:
            _check_filter_fields(kind, where, request.order)
        return await self.ledger.documents.list(
            kind.struct,
            where=where,
            tenants=call.caller.visible_tenants,
            order=compile_order(request.order, view.descriptor) if request.order else (),
            offset=max(request.offset, 0),
            limit=min(limit, LARGEST_LIMIT),
            sealed=True,
        )

    async def create(self, view: KindView, message: ResourceMessage, call: Call) -> Resource:
        """Stores a new document and returns it, secrets hidden. A dry run stores nothing and returns no id."""
        kind, caller = view.kind, call.caller
        policy.check(caller, Verb.CREATE, kind.name, private=view.private)
        now = self.ledger.clock.now()
        prepared = _prepare_document(view, message, caller, now)
        chosen_id = prepared.metadata.name if kind.id_source == ID_FROM_NAME else message.id
        if chosen_id and (kind.finalizers or kind.id_source == ID_FROM_NAME):
            await self._check_never_used(kind, chosen_id)
        for is_last_try in document_changes.iterate_tries():
            doc, world = await self._admit(view, prepared, caller, now)
            if call.dry_run:
                return fields.redact(replace(doc, id=""), kind.sensitive)
            changes: list[Change] = [
                Insert(doc, document_changes.make_note("Created", caller, "Created"))
            ]
            changes += document_changes.make_requirements(kind, doc, world.documents)
            changes += document_changes.make_side_changes(kind, None, doc, world)
            changes += document_changes.make_due_changes(kind, doc, now)
            try:
                await self.commit(kind, changes, now)
            except DuplicateDocument as error:
                raise document_changes.make_exists_error(kind, doc, error) from error
            except (Conflict, Precondition):
                # A cached document of the catalogue has changed: the rules decide again on fresh ones.
                if is_last_try:
                    raise
                self.catalogue.clear()
                continue
            return fields.redact(doc, kind.sensitive)
        raise AssertionError("the last try returns or raises")

    async def _admit(
        self, view: KindView, doc: Resource, caller: Caller, now: datetime
    ) -> tuple[Resource, AdmissionContext]:
        """Returns the document as its rules complete it, and the world that the rules were given."""
        kind, rules = view.kind, view.kind.rules
        violations = list(admission.metadata_violations(kind, doc, new=True))
        violations += admission.text_violations(doc)
        violations += admission.hidden_violations(kind, doc)
        resolved = await resolve_references(doc, kind, self.catalogue)
        await look_up_documents(resolved, kind, None, caller, self.ledger)
        violations += resolved.violations
        violations += await self._owner_violations(kind, resolved)
        world = await self.read_rule_inputs(view, resolved, caller, now=now)
        admitted: Resource = document_changes.run_rule(
            violations, lambda: rules.admit_create(resolved.doc, world)
        )
        if self._preflight is not None:
            await self._preflight(admitted, world)
        return admitted, world

    async def _check_never_used(self, kind: ResourceKind, id: str) -> None:
        """Exists when a deleted document had this id: its tokens, receipts and things outside outlive it."""
        if await self.ledger.documents.get_archived(kind.struct, id, sealed=True) is not None:
            raise Exists(f"a {kind.english_name} {quote_text(id)} was deleted; choose another")

    async def _owner_violations(
        self, kind: ResourceKind, resolved: ResolvedDocument
    ) -> Sequence[Violation]:
        """A violation when the document belongs to one that does not exist."""
        if not kind.owned:
            return ()
        for owner_kind, home in HOMES:
            violation = await self._home_violation(owner_kind, home, resolved)
            if violation is not None:
                return [violation]
        return ()

    async def _home_violation(
        self, kind: ResourceKind, home: Home, resolved: ResolvedDocument
    ) -> Violation | None:
        metadata = resolved.doc.metadata
        value: str = getattr(metadata, home.field)
        if home.by_name and not value:
            return None
        tenants = (metadata.tenant,)
        if home.by_name:
            docs = await self.catalogue.find_by_name(kind.struct, value, tenants)
            owner, place = (docs[0] if docs else None), " in the tenant"
        else:
            owner, place = await self.catalogue.get_by_id(kind.struct, value, tenants), ""
        if owner is None:
            problem = f"there is no {kind.english_name} {quote_text(value)}{place}"
            return Violation(f"metadata.{home.field}", problem, home.remedy)
        resolved.referenced_docs[kind.name, owner.id] = owner
        return None

    async def read_rule_inputs(
        self,
        view: KindView,
        resolved: ResolvedDocument,
        caller: Caller,
        *,
        now: datetime,
        old: Resource | None = None,
    ) -> AdmissionContext:
        """Returns what the kind's rules may read: the documents referred to, and the kinds that the rules ask for."""
        tenants = (resolved.doc.metadata.tenant, SHARED)
        for want in view.kind.rules.list_wants(old, resolved.doc):
            for doc in await self.catalogue.list_all(want.kind):
                if doc.metadata.tenant in tenants:
                    resolved.referenced_docs[want.kind.__name__, doc.id] = doc
        return AdmissionContext(
            now=now,
            caller=caller,
            documents=resolved.referenced_docs,
            private=view.private,
            setting_checks=self._setting_checks,
        )

    async def commit(self, kind: ResourceKind, changes: Sequence[Change], now: datetime) -> None:
        try:
            await self.ledger.commit(changes, now=now)
        except Exhausted as error:
            raise Exists(f"taken by another {kind.english_name}: {error}") from error
        finally:
            self.catalogue.invalidate_kind(kind.name)

    async def delete(self, view: KindView, id: str, call: Call) -> None:
        """Deletes a document: at once, or when its last finalizer is removed. May be called again."""
        kind, caller = view.kind, call.caller
        policy.check(caller, Verb.DELETE, kind.name, private=view.private)
        refuse_unsupported_dry_run(call)
        for is_last_try in document_changes.iterate_tries():
            old = await self.find(kind, id, caller, sealed=False)
            policy.check_owner(caller, Verb.DELETE, old.metadata.tenant)
            if old.metadata.deletion_timestamp is not None:
                return
            now = self.ledger.clock.now()
            try:
                await self.commit(kind, _make_deletion_changes(view, old, caller, now), now)
            except Conflict:
                if is_last_try:
                    raise
                continue
            return

    async def signal(self, view: KindView, id: str, call: Call) -> None:
        """Records a signal event on the document and makes its reconciler run now."""
        kind = view.kind
        policy.check(call.caller, Verb.SIGNAL, kind.name, private=view.private)
        doc = await self.find(kind, id, call.caller, sealed=True)
        now = self.ledger.clock.now()
        note = document_changes.make_note("Signaled", call.caller, "Signaled")
        changes: list[Change] = [Signal(kind.name, id, doc.metadata.tenant, note)]
        changes += document_changes.make_due_changes(kind, doc, now)
        await self.ledger.commit(changes, now=now)


def can_see(caller: Caller, doc: Resource) -> bool:
    return caller.is_operator or doc.metadata.tenant in (caller.tenant, SHARED)


def make_not_found(kind: ResourceKind, id: str) -> NotFound:
    return NotFound(f"there is no {kind.english_name} with id {quote_text(id)}")


def check_id(id: str) -> None:
    if not id:
        raise Refused("", Violation("id", "is required"))
    if len(id) > LONGEST_ID or "\0" in id:
        raise Refused("", Violation("id", f"{quote_text(id)} is not a valid id"))


def refuse_unsupported_dry_run(call: Call) -> None:
    """Rejects dry_run on calls that cannot do one."""
    if call.dry_run:
        raise Refused("only Create has dry runs; leave X-Dry-Run out")


def _prepare_document(
    view: KindView, message: ResourceMessage, caller: Caller, now: datetime
) -> Resource:
    """Returns the document with its id and with the metadata that the service writes for every kind."""
    kind = view.kind
    doc = admission.read_document(view, message)
    if doc.id and not caller.is_operator:
        raise Refused("", Violation("id", "is chosen by the service", "leave it out"))
    if doc.id and not is_valid_chosen_id(doc.id):
        raise Refused("", Violation("id", f"{quote_text(doc.id)} is not a valid id"))
    name = doc.metadata.name
    if kind.names_from_ids and doc.id and not message.HasField("metadata"):
        name = name_from_id(doc.id)
    sent_metadata = doc.metadata
    metadata = replace(
        sent_metadata,
        name=name,
        tenant=document_changes.choose_tenant(kind, sent_metadata.tenant, caller),
        creator=caller.user,
        creation_timestamp=now,
        deletion_timestamp=None,
        version=0,
        generation=1,
        finalizers=document_changes.merge_finalizers(
            kind, sent_metadata.finalizers if view.private else ()
        ),
    )
    id = doc.id if kind.id_source != ID_GENERATED else ""
    doc = replace(
        doc, metadata=metadata, id=id or (new_id(now) if kind.id_source != ID_FROM_NAME else "")
    )
    if not view.private and hasattr(doc, "status"):
        doc = replace(doc, status=type(doc.status)())
    completed: Resource = kind.rules.fill_defaults(doc)
    return completed


def _make_deletion_changes(
    view: KindView, old: Resource, caller: Caller, now: datetime
) -> list[Change]:
    kind = view.kind
    world = AdmissionContext(now=now, caller=caller, private=view.private)
    kind.rules.admit_delete(old, world)
    doc = replace(old, metadata=replace(old.metadata, deletion_timestamp=now))
    changes = document_changes.require_unreferenced(kind, old)
    if doc.metadata.finalizers:
        doc = kind.rules.mark_deleted(doc, world)
        changes.append(
            Replace(
                doc, document_changes.make_note("DeletionRequested", caller, "Deletion requested")
            )
        )
    else:
        changes.append(Archive(doc, document_changes.make_note("Deleted", caller, "Deleted")))
        changes.append(Unreserve(document_changes.format_owner(kind, doc.id)))
    return changes + document_changes.make_due_changes(kind, doc, now)


def _build_predicate(view: KindView, text: str) -> Predicate | None:
    """The caller's filter, combined with the public defaults for fields that it does not mention."""
    predicate = compile_predicate(text, view.message) if text else None
    if view.private:
        return predicate
    for field, default in view.kind.rules.public_filters:
        if predicate is None or field not in predicate.fields:
            default_predicate = compile_predicate(default, view.message)
            predicate = default_predicate if predicate is None else predicate & default_predicate
    return predicate


def _check_filter_fields(kind: ResourceKind, where: Predicate | None, order: str) -> None:
    """Refuses filters and orders on fields that tenants are not shown: the result would reveal their values."""
    queried_paths = set(where.fields) if where is not None else set()
    queried_paths |= {
        key.split()[0].removeprefix("this.") for key in order.split(",") if key.strip()
    }
    for hidden_path in kind.operator_only_fields:
        if any(
            queried_path == hidden_path or queried_path.startswith(f"{hidden_path}.")
            for queried_path in queried_paths
        ):
            raise Refused(f"only operators may ask about {hidden_path}", reason="BadFilter")


def compile_predicate(text: str, message: str, variable: str = "this") -> Predicate:
    return compile_filter(text, wire.message(message).DESCRIPTOR, variable=variable)
