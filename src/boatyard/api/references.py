"""Resolves references by id or name. Called by the generic create and update.

Documents of the referring document's tenant come before those of `shared`; documents of other
tenants cannot be referred to, not even by operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from boatyard.api import fields
from boatyard.api.catalogue import Catalogue
from boatyard.api.ids import LONGEST_ID
from boatyard.api.kinds import CATALOGUE, Kind
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Violation
from boatyard.resources.metadata import shown
from boatyard.resources.world import Sought

CLASSES = {cls.__name__: cls for cls in CATALOGUE}


@dataclass
class Resolved:
    """A document with its references resolved, the documents they refer to, and the violations."""

    doc: Any
    found: dict[tuple[str, str], Any] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)


async def resolve(doc: Any, kind: Kind, catalogue: Catalogue) -> Resolved:
    """Fills in id and name of every reference; a reference to nothing becomes a violation."""
    resolved = Resolved(doc)
    for path, target in kind.references.items():
        if path.startswith("status."):
            continue
        steps = fields.split(path)
        filled: dict[str, Any] = {}
        for at, reference in fields.walk(doc, steps):
            if reference.id or reference.name:
                filled[at] = await _lookup(at, reference, target, resolved, catalogue)
            elif target not in CLASSES and reference != type(reference)():
                filled[at] = reference
        if filled:
            resolved.doc = fields.rewrite(resolved.doc, steps, _filler(filled))
    return resolved


async def seek(
    resolved: Resolved, kind: Kind, old: Any | None, caller: Caller, ledger: Ledger
) -> None:
    """Finds the documents that the kind's rules ask for by id or name; one that is missing becomes a violation."""
    list_lookups = getattr(kind.rules, "sought", None)
    for lookup in list_lookups(old, resolved.doc, caller) if list_lookups is not None else ():
        matches = await _seek(lookup, ledger)
        if len(matches) == 1:
            kind_name = lookup.kind.__name__
            resolved.found[kind_name, lookup.key] = resolved.found[kind_name, matches[0].id] = (
                matches[0]
            )
            continue
        problem = "is ambiguous" if matches else "not found"
        remedy = "give the id" if matches else "give the id or name of one you see"
        resolved.violations.append(
            Violation(lookup.path, f"{lookup.kind.__name__} {shown(lookup.key)} {problem}", remedy)
        )


async def _seek(lookup: Sought, ledger: Ledger) -> Sequence[Any]:
    if "\0" in lookup.key or len(lookup.key) > LONGEST_ID:
        return ()
    doc = await ledger.documents.get(lookup.kind, lookup.key, sealed=True)
    if doc is not None and (lookup.tenants is None or doc.metadata.tenant in lookup.tenants):
        return (doc,)
    return await ledger.documents.find(
        lookup.kind, name=lookup.key, tenants=lookup.tenants, sealed=True
    )


def _filler(filled: Mapping[str, Any]) -> Callable[[str, Any], Any]:
    return lambda at, old: filled.get(at, old)


async def _lookup(
    at: str, reference: Any, target: str, resolved: Resolved, catalogue: Catalogue
) -> Any:
    cls = CLASSES.get(target)
    if cls is None:
        resolved.violations.append(
            Violation(at, "this server does not offer it yet", "leave it out")
        )
        return reference
    metadata = resolved.doc.metadata
    tenants = _tenants(metadata.tenant, shared=getattr(reference, "shared", False))
    if reference.id:
        doc = await catalogue.by_id(cls, reference.id, tenants)
        candidates = [doc] if doc is not None else []
    else:
        candidates = list(await catalogue.by_name(cls, reference.name, tenants))
    chosen = _choose(candidates, tenants, metadata.project, getattr(reference, "project", ""))
    if chosen is None:
        key = reference.id or reference.name
        resolved.violations.append(
            Violation(at, f"{target} {shown(key)} not found", "give the id or name of one you see")
        )
        return reference
    if reference.id and reference.name not in ("", chosen.metadata.name):
        resolved.violations.append(
            Violation(
                at,
                f"id {shown(reference.id)} and name {shown(reference.name)}"
                " do not refer to the same resource",
                "give one of them",
            )
        )
        return reference
    resolved.found[target, chosen.id] = chosen
    return msgspec.structs.replace(reference, id=chosen.id, name=chosen.metadata.name)


def _tenants(own: str, *, shared: bool) -> tuple[str, ...]:
    return (SHARED,) if shared or own == SHARED else (own, SHARED)


def _choose(
    candidates: Sequence[Any], tenants: Sequence[str], own_project: str, requested_project: str
) -> Any | None:
    """The best candidate: own tenant before shared; then the requested project, else the document's own, else none."""

    def rank(candidate: Any) -> tuple[int, bool, bool, str]:
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
