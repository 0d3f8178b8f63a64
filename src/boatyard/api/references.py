"""Resolves references by id or name. Called by the generic create and update.

Documents of the referring document's tenant come before those of `shared`; documents of other
tenants cannot be referred to, not even by operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from boatyard.api import fields
from boatyard.api.catalogue_cache import CatalogueCache
from boatyard.api.ids import LONGEST_ID
from boatyard.api.kinds import CATALOGUE_STRUCTS, ResourceKind
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Violation
from boatyard.model.generated.osac import Reference, Resource
from boatyard.resources.admission_context import DocumentLookup
from boatyard.resources.metadata import quote_text

T = TypeVar("T")


@dataclass
class ResolvedDocument:
    """A document with its references resolved, the documents they refer to, and the violations."""

    doc: Resource
    referenced_docs: dict[tuple[str, str], Resource] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)


async def resolve_references(
    doc: Resource, kind: ResourceKind, catalogue: CatalogueCache
) -> ResolvedDocument:
    """Fills in id and name of every reference; a reference to nothing becomes a violation."""
    resolved = ResolvedDocument(doc)
    for path, target in kind.references.items():
        if path.startswith("status."):
            continue
        steps = fields.split_path(path)
        filled: dict[str, Reference] = {}
        for at, reference in fields.list_values(doc, steps):
            if reference.id or reference.name:
                filled[at] = await _resolve_reference(at, reference, target, resolved, catalogue)
            elif target not in CATALOGUE_STRUCTS and reference != type(reference)():
                filled[at] = reference
        if filled:
            resolved.doc = fields.rewrite(resolved.doc, steps, _make_filler(filled))
    return resolved


async def look_up_documents(
    resolved: ResolvedDocument,
    kind: ResourceKind,
    old: Resource | None,
    caller: Caller,
    ledger: Ledger,
) -> None:
    """Finds the documents that the kind's rules ask for by id or name; one that is missing becomes a violation."""
    for lookup in kind.rules.list_lookups(old, resolved.doc, caller):
        matches = await _look_up(lookup, ledger)
        if len(matches) == 1:
            kind_name = lookup.kind.__name__
            resolved.referenced_docs[kind_name, lookup.key] = resolved.referenced_docs[
                kind_name, matches[0].id
            ] = matches[0]
            continue
        problem = "is ambiguous" if matches else "not found"
        remedy = "give the id" if matches else "give the id or name of one you see"
        resolved.violations.append(
            Violation(
                lookup.path, f"{lookup.kind.__name__} {quote_text(lookup.key)} {problem}", remedy
            )
        )


async def _look_up(lookup: DocumentLookup, ledger: Ledger) -> Sequence[Resource]:
    if "\0" in lookup.key or len(lookup.key) > LONGEST_ID:
        return ()
    doc = await ledger.documents.get(lookup.kind, lookup.key, sealed=True)
    if doc is not None and (lookup.tenants is None or doc.metadata.tenant in lookup.tenants):
        return (doc,)
    return await ledger.documents.find(
        lookup.kind, name=lookup.key, tenants=lookup.tenants, sealed=True
    )


def _make_filler(filled: Mapping[str, T]) -> Callable[[str, T], T]:
    return lambda at, old: filled.get(at, old)


async def _resolve_reference(
    at: str,
    reference: Reference,
    target: str,
    resolved: ResolvedDocument,
    catalogue: CatalogueCache,
) -> Reference:
    kind = CATALOGUE_STRUCTS.get(target)
    if kind is None:
        resolved.violations.append(
            Violation(at, "this server does not offer it yet", "leave it out")
        )
        return reference
    metadata = resolved.doc.metadata
    tenants = _allowed_tenants(metadata.tenant, shared=getattr(reference, "shared", False))
    if reference.id:
        doc = await catalogue.get_by_id(kind.struct, reference.id, tenants)
        candidates = [doc] if doc is not None else []
    else:
        candidates = list(await catalogue.find_by_name(kind.struct, reference.name, tenants))
    chosen = _choose_candidate(
        candidates, tenants, metadata.project, getattr(reference, "project", "")
    )
    if chosen is None:
        key = reference.id or reference.name
        resolved.violations.append(
            Violation(
                at, f"{target} {quote_text(key)} not found", "give the id or name of one you see"
            )
        )
        return reference
    if reference.id and reference.name not in ("", chosen.metadata.name):
        resolved.violations.append(
            Violation(
                at,
                f"id {quote_text(reference.id)} and name {quote_text(reference.name)}"
                " do not refer to the same resource",
                "give one of them",
            )
        )
        return reference
    resolved.referenced_docs[target, chosen.id] = chosen
    return replace(reference, id=chosen.id, name=chosen.metadata.name)


def _allowed_tenants(own: str, *, shared: bool) -> tuple[str, ...]:
    return (SHARED,) if shared or own == SHARED else (own, SHARED)


def _choose_candidate(
    candidates: Sequence[Resource], tenants: Sequence[str], own_project: str, requested_project: str
) -> Resource | None:
    """The best candidate: own tenant before shared; then the requested project, else the document's own, else none."""

    def rank(candidate: Resource) -> tuple[int, bool, bool, str]:
        metadata = candidate.metadata
        return (
            tenants.index(metadata.tenant),
            metadata.project != own_project,
            metadata.project != "",
            candidate.id,
        )

    allowed = [
        candidate
        for candidate in candidates
        if candidate.metadata.tenant in tenants
        and candidate.metadata.deletion_timestamp is None
        and (not requested_project or candidate.metadata.project == requested_project)
    ]
    return min(allowed, key=rank, default=None)
