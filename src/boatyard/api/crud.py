"""One create, get, list, delete and signal for every kind. Called by both servers; update is in updates.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from boatyard.api import admission, fields, policy, writing
from boatyard.api.catalogue import Catalogue
from boatyard.api.ids import LONGEST_ID, is_choosable, new_id
from boatyard.api.kinds import MADE, NAME, Kind, View
from boatyard.api.policy import Verb
from boatyard.api.references import Resolved, resolve, seek
from boatyard.ledger.changes import Archive, Change, Insert, Replace, Signal, Unreserve
from boatyard.ledger.filters.compile import compile_filter, compile_order
from boatyard.ledger.filters.conditions import Predicate
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import Page, Taken
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
from boatyard.model.generated.osac import Project, Tenant
from boatyard.resources.metadata import name_from_id, shown
from boatyard.resources.world import SettingChecks, Want, World

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000

# Filters on what tenants list, unless their own filter mentions the field.
_PUBLIC_DEFAULTS = {
    "ClusterVersion": (
        ("spec.state", "this.spec.state in [1, 2]"),
        ("spec.enabled", "this.spec.enabled == true"),
    ),
    "ClusterTemplate": (("withdrawn", "this.withdrawn == false"),),
}


@dataclass(frozen=True)
class Call:
    """The caller and the options of one API call."""

    caller: Caller
    dry_run: bool = False
    mask_from_body: bool = False  # REST: the request had no mask, it was derived from the body


# Called with every new document that its rules have admitted. Raises Refused when it could not be carried out.
Consult = Callable[[Any, World], Awaitable[None]]


class Crud:
    """The generic verbs over one ledger."""

    def __init__(
        self,
        ledger: Ledger,
        catalogue: Catalogue,
        consult: Consult | None = None,
        *,
        setting_checks: SettingChecks | None = None,
    ) -> None:
        self.ledger = ledger
        self.catalogue = catalogue
        self._consult = consult
        self._setting_checks = setting_checks or {}

    async def get(self, view: View, id: str, call: Call) -> Any:
        policy.check(call.caller, Verb.GET, view.kind.name, private=view.private)
        return await self.find(view.kind, id, call.caller, sealed=True)

    async def find(self, kind: Kind, id: str, caller: Caller, *, sealed: bool) -> Any:
        """Returns the document. NotFound, in the same words, when it does not exist or the caller may not see it."""
        check_id(id)
        doc = await self.ledger.documents.get(kind.struct, id, sealed=sealed)
        if doc is None or not sees(caller, doc):
            raise missing(kind, id)
        return doc

    async def list(self, view: View, request: Any, call: Call) -> Page[Any]:
        """Returns a page of the documents that the caller may see. `request` is the List request of any kind."""
        kind = view.kind
        policy.check(call.caller, Verb.LIST, kind.name, private=view.private)
        limit = request.limit if request.HasField("limit") else DEFAULT_LIMIT
        if limit < 0:
            raise Refused("", Violation("limit", f"{limit} is negative", "give 0 or more"))
        where = _predicate(view, request.filter)
        if not call.caller.is_operator:
            _check_open(kind, where, request.order)
        return await self.ledger.documents.list(
            kind.struct,
            where=where,
            tenants=call.caller.visible_tenants,
            order=compile_order(request.order, view.descriptor) if request.order else (),
            offset=max(request.offset, 0),
            limit=min(limit, LARGEST_LIMIT),
            sealed=True,
        )

    async def create(self, view: View, message: Any, call: Call) -> Any:
        """Stores a new document and returns it, secrets hidden. A dry run stores nothing and returns no id."""
        kind, caller = view.kind, call.caller
        policy.check(caller, Verb.CREATE, kind.name, private=view.private)
        now = self.ledger.clock.now()
        prepared = _prepare(view, message, caller, now)
        chosen_id = prepared.metadata.name if kind.ids == NAME else message.id
        if chosen_id and (kind.finalizers or kind.ids == NAME):
            await self._check_never_used(kind, chosen_id)
        for is_last_try in writing.tries():
            doc, world = await self._admit(view, prepared, caller)
            if call.dry_run:
                return fields.redact(replace(doc, id=""), kind.sensitive)
            changes: list[Change] = [Insert(doc, writing.note("Created", caller, "Created"))]
            changes += writing.requirements(kind, doc, world.found)
            changes += writing.beside(kind, None, doc, world)
            changes += writing.due(kind, doc, now)
            try:
                await self.commit(kind, changes, now)
            except Taken as error:
                raise writing.taken(kind, doc, error) from error
            except (Conflict, Precondition):
                # A cached document of the catalogue has changed: the rules decide again on fresh ones.
                if is_last_try:
                    raise
                self.catalogue.clear()
                continue
            return fields.redact(doc, kind.sensitive)
        raise AssertionError("the last try returns or raises")

    async def _admit(self, view: View, doc: Any, caller: Caller) -> tuple[Any, World]:
        """Returns the document as its rules complete it, and the world that the rules were given."""
        kind, rules = view.kind, view.kind.rules
        assert rules is not None
        violations = list(admission.metadata_violations(kind, doc, new=True))
        violations += admission.text_violations(doc)
        violations += admission.hidden_violations(kind, doc)
        resolved = await resolve(doc, kind, self.catalogue)
        await seek(resolved, kind, None, caller, self.ledger)
        violations += resolved.violations
        violations += await self._home_violations(kind, resolved)
        world = await self.world(view, resolved, caller, now=doc.metadata.creation_timestamp)
        admitted = writing.ask(violations, lambda: rules.admit_create(resolved.doc, world))
        if self._consult is not None:
            await self._consult(admitted, world)
        return admitted, world

    async def _check_never_used(self, kind: Kind, id: str) -> None:
        """Exists when a deleted document had this id: its tokens, receipts and things outside outlive it."""
        if await self.ledger.documents.archived(kind.struct, id, sealed=True) is not None:
            raise Exists(f"a {kind.words} {shown(id)} was deleted; choose another")

    async def _home_violations(self, kind: Kind, resolved: Resolved) -> Sequence[Violation]:
        """Violations when the tenant or the project of the document does not exist."""
        metadata = resolved.doc.metadata
        if kind.struct is Tenant:
            return ()
        tenant = await self.catalogue.by_id(Tenant, metadata.tenant, (metadata.tenant,))
        if tenant is None:
            return [Violation("metadata.tenant", f"there is no tenant {shown(metadata.tenant)}")]
        resolved.found["Tenant", tenant.id] = tenant
        if not metadata.project:
            return ()
        projects = await self.catalogue.by_name(Project, metadata.project, (metadata.tenant,))
        if projects:
            resolved.found["Project", projects[0].id] = projects[0]
            return ()
        return [
            Violation(
                "metadata.project",
                f"there is no project {shown(metadata.project)} in the tenant",
                "create it first",
            )
        ]

    async def world(
        self, view: View, resolved: Resolved, caller: Caller, *, now: datetime, old: Any = None
    ) -> World:
        """Returns what the kind's rules may read: the documents referred to, and the kinds that the rules ask for."""
        tenants = (resolved.doc.metadata.tenant, SHARED)
        for want in _wants(view.kind, old, resolved.doc):
            for doc in await self.catalogue.all(want.kind):
                if doc.metadata.tenant in tenants:
                    resolved.found[want.kind.__name__, doc.id] = doc
        return World(
            now=now,
            caller=caller,
            found=resolved.found,
            private=view.private,
            setting_checks=self._setting_checks,
        )

    async def commit(self, kind: Kind, changes: Sequence[Change], now: datetime) -> None:
        try:
            await self.ledger.commit(changes, now=now)
        except Exhausted as error:
            raise Exists(f"taken by another {kind.words}: {error}") from error
        finally:
            self.catalogue.forget(kind.name)

    async def delete(self, view: View, id: str, call: Call) -> None:
        """Deletes a document: at once, or when its last finalizer is removed. May be called again."""
        kind, caller = view.kind, call.caller
        policy.check(caller, Verb.DELETE, kind.name, private=view.private)
        check_wet(call)
        for is_last_try in writing.tries():
            old = await self.find(kind, id, caller, sealed=False)
            policy.check_owner(caller, Verb.DELETE, old.metadata.tenant)
            if old.metadata.deletion_timestamp is not None:
                return
            now = self.ledger.clock.now()
            try:
                await self.commit(kind, _deletion(view, old, caller, now), now)
            except Conflict:
                if is_last_try:
                    raise
                continue
            return

    async def signal(self, view: View, id: str, call: Call) -> None:
        """Records a signal event on the document and makes its reconciler run now."""
        kind = view.kind
        policy.check(call.caller, Verb.SIGNAL, kind.name, private=view.private)
        doc = await self.find(kind, id, call.caller, sealed=True)
        now = self.ledger.clock.now()
        note = writing.note("Signaled", call.caller, "Signaled")
        changes: list[Change] = [Signal(kind.name, id, doc.metadata.tenant, note)]
        changes += writing.due(kind, doc, now)
        await self.ledger.commit(changes, now=now)


def _wants(kind: Kind, old: Any | None, new: Any) -> Sequence[Want]:
    rules = kind.rules
    if old is not None and hasattr(rules, "wants_for_update"):
        return writing.maybe(rules, "wants_for_update", old, new) or ()
    return writing.maybe(rules, "wants", new) or ()


def sees(caller: Caller, doc: Any) -> bool:
    return caller.is_operator or doc.metadata.tenant in (caller.tenant, SHARED)


def missing(kind: Kind, id: str) -> NotFound:
    return NotFound(f"there is no {kind.words} with id {shown(id)}")


def check_id(id: str) -> None:
    if not id:
        raise Refused("", Violation("id", "is required"))
    if len(id) > LONGEST_ID or "\0" in id:
        raise Refused("", Violation("id", f"{shown(id)} is not a valid id"))


def check_wet(call: Call) -> None:
    """Rejects dry_run on calls that cannot do one."""
    if call.dry_run:
        raise Refused("only Create has dry runs; leave X-Dry-Run out")


def _prepare(view: View, message: Any, caller: Caller, now: datetime) -> Any:
    """Returns the document with its id and with the metadata that the service writes for every kind."""
    kind = view.kind
    doc = admission.read(view, message)
    if doc.id and not caller.is_operator:
        raise Refused("", Violation("id", "is chosen by the service", "leave it out"))
    if doc.id and not is_choosable(doc.id):
        raise Refused("", Violation("id", f"{shown(doc.id)} is not a valid id"))
    name = doc.metadata.name
    if kind.names_from_ids and doc.id and not message.HasField("metadata"):
        name = name_from_id(doc.id)
    sent_metadata = doc.metadata
    metadata = replace(
        sent_metadata,
        name=name,
        tenant=writing.tenant_of_new(kind, sent_metadata.tenant, caller),
        creator=caller.user,
        creation_timestamp=now,
        deletion_timestamp=None,
        version=0,
        generation=1,
        finalizers=writing.finalizers(kind, sent_metadata.finalizers if view.private else ()),
    )
    id = doc.id if kind.ids != MADE else ""
    doc = replace(doc, metadata=metadata, id=id or (new_id(now) if kind.ids != NAME else ""))
    if not view.private and hasattr(doc, "status"):
        doc = replace(doc, status=type(doc.status)())
    return writing.maybe(kind.rules, "complete", doc) or doc


def _deletion(view: View, old: Any, caller: Caller, now: datetime) -> list[Change]:
    kind = view.kind
    world = World(now=now, caller=caller, private=view.private)
    writing.maybe(kind.rules, "admit_delete", old, world)
    doc = replace(old, metadata=replace(old.metadata, deletion_timestamp=now))
    changes = writing.unused(kind, old)
    if doc.metadata.finalizers:
        doc = writing.maybe(kind.rules, "deleting", doc, world) or doc
        changes.append(
            Replace(doc, writing.note("DeletionRequested", caller, "Deletion requested"))
        )
    else:
        changes.append(Archive(doc, writing.note("Deleted", caller, "Deleted")))
        changes.append(Unreserve(writing.owner(kind, doc.id)))
    return changes + writing.due(kind, doc, now)


def _predicate(view: View, text: str) -> Predicate | None:
    """The caller's filter, combined with the public defaults for fields that it does not mention."""
    predicate = compiled(text, view.message) if text else None
    if view.private:
        return predicate
    for field, default in _PUBLIC_DEFAULTS.get(view.kind.name, ()):
        if predicate is None or field not in predicate.fields:
            default_predicate = compiled(default, view.message)
            predicate = default_predicate if predicate is None else predicate & default_predicate
    return predicate


def _check_open(kind: Kind, where: Predicate | None, order: str) -> None:
    """Refuses filters and orders on fields that tenants are not shown: the result would reveal their values."""
    queried_paths = set(where.fields) if where is not None else set()
    queried_paths |= {
        key.split()[0].removeprefix("this.") for key in order.split(",") if key.strip()
    }
    for hidden_path in kind.operators_only:
        if any(
            queried_path == hidden_path or queried_path.startswith(f"{hidden_path}.")
            for queried_path in queried_paths
        ):
            raise Refused(f"only operators may ask about {hidden_path}", reason="BadFilter")


def compiled(text: str, message: str, variable: str = "this") -> Predicate:
    return compile_filter(text, wire.message(message).DESCRIPTOR, variable=variable)
