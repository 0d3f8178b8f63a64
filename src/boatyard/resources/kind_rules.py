"""The rules a kind of resource can have, as a base class with defaults. The generic API calls them for every kind.

`resources/<noun>/rules.py` subclasses `KindRules` and overrides what its kind needs. Rules are pure: they decide from
their arguments, and raise `Refused` (all violations at once) or `Precondition`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from boatyard.model.caller import Caller
from boatyard.model.errors import Violation
from boatyard.model.generated.osac import Resource
from boatyard.resources import metadata
from boatyard.resources.admission_context import AdmissionContext, DocumentLookup, KindLookup

Doc = TypeVar("Doc", bound=Resource)


class KindRules(Generic[Doc]):
    """The rules of a kind without rules of its own: everything is admitted as it is."""

    # Fields that tenants can neither read nor filter by, in a package that tenants and operators share.
    operators_only: ClassVar[tuple[str, ...]] = ()
    # Fields and the filter that tenants' lists get on each, unless their own filter mentions the field.
    public_filters: ClassVar[tuple[tuple[str, str], ...]] = ()

    def fill_defaults(self, new: Doc) -> Doc:
        """The new document with what must be filled in before its references are resolved."""
        return new

    def name_violations(self, name: str) -> Iterable[Violation]:
        """Violations of the name of a new document; by default it must be one RFC 1123 label."""
        return metadata.name_violations(name)

    def list_wants(self, old: Doc | None, new: Doc) -> Sequence[KindLookup]:
        """Kinds of the catalogue that admission reads whole (`world.all`); `old` is None for a new document."""
        return ()

    def list_lookups(self, old: Doc | None, new: Doc, caller: Caller) -> Sequence[DocumentLookup]:
        """Single documents, by id or name, that admission reads; one that is missing is a violation."""
        return ()

    def admit_create(self, new: Doc, context: AdmissionContext) -> Doc:
        """The new document as it is stored, completed. Refused with all its violations."""
        return new

    def admit_update(self, old: Doc, new: Doc, context: AdmissionContext) -> Doc:
        """The changed document as it is stored; `new` is merged and its references are resolved."""
        return new

    def admit_delete(self, old: Doc, context: AdmissionContext) -> None:
        """Raises Precondition when the document must stay."""

    def mark_deleted(self, doc: Doc, context: AdmissionContext) -> Doc:
        """The document as it is shown from the request to delete it until its last finalizer is removed."""
        return doc

    def required_documents(self, doc: Doc) -> Collection[tuple[str, str]]:
        """Kind and id of documents that must exist when this one is stored, besides those it refers to."""
        return ()

    def companion_changes(self, new: Doc, context: AdmissionContext) -> Sequence[Doc]:
        """Other documents of the kind, as they are changed in the same transaction."""
        return ()

    def unique_keys(self, doc: Doc) -> Sequence[str]:
        """Keys that only one document may hold at a time."""
        return ()

    def fields_fixed_in_use(self, old: Doc, new: Doc) -> str:
        """The changed fields that may only change while no document refers to this one; empty when there are none."""
        return ""

    def hub_of_work(self, doc: Doc) -> str:
        """The id of the hub whose workers reconcile the document; empty when any worker does."""
        return ""
