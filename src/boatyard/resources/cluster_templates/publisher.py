"""Publishes roles as cluster templates and withdraws them. Called for watched folders and by the API's Publish.

The content is stored before anything refers to it; template and source change in one transaction. A process that is
killed in between leaves unused content, and the next call completes the work.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from boatyard.ledger.changes import Change, EventNote, Insert, Replace, Require
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.records import DuplicateDocument
from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Conflict, NotFound, Precondition
from boatyard.model.generated.boatyard import (
    TemplateMistake,
    TemplateSource,
    TemplateSourceState,
    TemplateSourceStatus,
)
from boatyard.model.generated.osac import (
    ClusterTemplate,
    ClusterVersion,
    HostType,
    Hub,
    Metadata,
)
from boatyard.resources.cluster_templates.template_builder import TEMPLATE_CREATOR, build_template
from boatyard.roles.content import Files, pack_files
from boatyard.roles.mistakes import Mistake, sort_mistakes
from boatyard.roles.role import InvalidRole, TemplateRole, read_role

logger = logging.getLogger(__name__)
T = TypeVar("T")

PUBLISHED_ORIGIN = "published"  # origin of roles that came through the API
MOST_MISTAKES = 100
_LIST_LIMIT = 1000
_MAX_TRIES = 5


class TemplatePublisher:
    """The published roles. Several processes may use it at once: every write is guarded by the document's version."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def list_sources(self) -> Sequence[TemplateSource]:
        return (
            await self._ledger.documents.list(TemplateSource, limit=_LIST_LIMIT, with_total=False)
        ).items

    async def publish(
        self, name: str, files: Files, *, origin: str, mistakes: Sequence[Mistake] = ()
    ) -> TemplateSource:
        """Publishes the role, or records its mistakes. Publishing the same content again changes nothing.

        A role with mistakes is not published; its last good version stays in the catalogue.
        Raises Conflict when others keep changing the same role at the same time.
        """
        role = read_role(name, files, mistakes)
        for _ in range(_MAX_TRIES - 1):
            try:
                return await self._publish_once(name, role, files, origin)
            except (Conflict, NotFound):
                continue
        return await self._publish_once(name, role, files, origin)

    async def withdraw(self, name: str) -> None:
        """Withdraws the template of a role that is gone: no new orders. Existing clusters keep its content."""
        source = await self._ledger.documents.get(TemplateSource, name)
        if source is None or source.status.state == TemplateSourceState.WITHDRAWN:
            return
        now = self._ledger.clock.now()
        note = EventNote("Withdrawn", f"The role {name} is gone")
        status = replace(
            source.status, state=TemplateSourceState.WITHDRAWN, mistakes=(), changed_at=now
        )
        changes: list[Change] = [Replace(replace(source, status=status), note)]
        template = await self._template(source.status.template)
        if template is not None and template.digest and not template.withdrawn:
            metadata = replace(template.metadata, generation=template.metadata.generation + 1)
            withdrawn_template = replace(template, withdrawn=True, metadata=metadata)
            changes.append(Replace(withdrawn_template, note))
        await self._ledger.commit(changes, now=now)
        logger.info("template withdrawn", extra={"role": name, "template": status.template})

    async def _publish_once(
        self, name: str, role: TemplateRole | InvalidRole, files: Files, origin: str
    ) -> TemplateSource:
        now = self._ledger.clock.now()
        source = await self._ledger.documents.get(TemplateSource, name)
        if isinstance(role, InvalidRole):
            return await self._record_mistakes(name, source, role.mistakes, origin, now)
        mistakes: list[Mistake] = []
        old = await self._template(role.metadata.id)
        mistakes += await self._find_conflicts(name, role, old, source, origin)
        template = build_template(
            role,
            old,
            host_types=await self._list_catalogue(HostType),
            versions=await self._list_catalogue(ClusterVersion),
            hubs=(
                await self._ledger.documents.list(Hub, limit=_LIST_LIMIT, with_total=False)
            ).items,
            now=now,
            mistakes=mistakes,
        )
        if mistakes:
            return await self._record_mistakes(name, source, sort_mistakes(mistakes), origin, now)
        status = TemplateSourceStatus(
            state=TemplateSourceState.OFFERED,
            origin=origin,
            template=template.id,
            digest=role.digest,
        )
        changes = _make_template_changes(
            template, old, EventNote("Published", f"Offered from the role {name}")
        )
        moved = source is not None and source.status.template not in ("", template.id)
        if moved and source is not None:
            changes += await self._withdraw_old_template(source.status.template, name)
        new_source, source_changes = _update_source(name, source, status, now)
        if not changes and not source_changes:
            return new_source
        await self._ledger.contents.store(role.digest, pack_files(files)[1], now)
        try:
            await self._ledger.commit(
                [*_require_references(template), *changes, *source_changes], now=now
            )
        except DuplicateDocument as error:
            if not await self._is_unchanged(template.id, old, name, source):
                raise Conflict("somebody else offers the same role") from error
            name_mistake = Mistake(
                role.file, 0, "name", f"another template is called {role.metadata.name!r}"
            )
            return await self._record_mistakes(name, source, [name_mistake], origin, now)
        except Precondition as error:  # a host type or a version was deleted just now
            raise Conflict(str(error)) from error
        logger.info(
            "template offered", extra={"role": name, "template": template.id, "digest": role.digest}
        )
        return new_source

    async def _is_unchanged(
        self, id: str, old: ClusterTemplate | None, name: str, source: TemplateSource | None
    ) -> bool:
        """Whether template and source are unchanged since they were read, so that it is the name that is taken."""
        same = await self._template(id) == old
        return same and await self._ledger.documents.get(TemplateSource, name) == source

    async def _record_mistakes(
        self,
        name: str,
        source: TemplateSource | None,
        mistakes: Sequence[Mistake],
        origin: str,
        now: datetime,
    ) -> TemplateSource:
        old_status = source.status if source is not None else TemplateSourceStatus()
        if source is not None and old_status.origin != origin and old_status.state != _WITHDRAWN:
            # Another role of the same name is published: its source must not be marked faulty.
            status = TemplateSourceStatus(
                state=TemplateSourceState.FAULTY,
                origin=origin,
                mistakes=_to_template_mistakes(mistakes),
            )
            return TemplateSource(id=name, status=status)
        status = TemplateSourceStatus(
            state=TemplateSourceState.FAULTY,
            origin=origin,
            template=old_status.template,
            digest=old_status.digest,
            mistakes=_to_template_mistakes(mistakes),
        )
        new_source, changes = _update_source(name, source, status, now)
        if changes:
            try:
                await self._ledger.commit(changes, now=now)
            except DuplicateDocument as error:
                raise Conflict("somebody else offers the same role") from error
        return new_source

    async def _find_conflicts(
        self,
        name: str,
        role: TemplateRole,
        old: ClusterTemplate | None,
        source: TemplateSource | None,
        origin: str,
    ) -> list[Mistake]:
        """Why this role may not own the template with its id."""
        if (
            source is not None
            and source.status.origin != origin
            and source.status.state != _WITHDRAWN
        ):
            words = f"a role {name!r} is offered from {source.status.origin}"
            return [Mistake("", 0, "", words, "take that one away, or name this one otherwise")]
        for other in await self.list_sources():
            if (
                other.id != name
                and other.status.template == role.metadata.id
                and other.status.state != _WITHDRAWN
            ):
                words = f"{role.metadata.id!r} is the template of the role {other.id!r}"
                return [Mistake(role.file, 0, "id", words, "choose another id")]
        if old is not None and not old.digest and old.metadata.creator != SYSTEM:
            words = f"a template {role.metadata.id!r} was made by hand"
            return [Mistake(role.file, 0, "id", words, "delete that one, or choose another id")]
        return []

    async def _withdraw_old_template(self, template_id: str, name: str) -> list[Change]:
        """Withdraws the old template of a role that has changed its id."""
        template = await self._template(template_id)
        if template is None or template.withdrawn:
            return []
        note = EventNote("Withdrawn", f"The role {name} has another id now")
        metadata = replace(template.metadata, generation=template.metadata.generation + 1)
        return [Replace(replace(template, withdrawn=True, metadata=metadata), note)]

    async def _template(self, id: str) -> ClusterTemplate | None:
        return await self._ledger.documents.get(ClusterTemplate, id) if id else None

    async def _list_catalogue(self, kind: type[T]) -> list[T]:
        """All documents of a kind in the shared catalogue."""
        page = await self._ledger.documents.list(
            kind, tenants=(SHARED,), limit=_LIST_LIMIT, with_total=False
        )
        return list(page.items)


_WITHDRAWN = TemplateSourceState.WITHDRAWN


def _make_template_changes(
    template: ClusterTemplate, old: ClusterTemplate | None, note: EventNote
) -> list[Change]:
    if old is None:
        return [Insert(template, note)]
    return [Replace(template, note)] if template != old else []


def _require_references(template: ClusterTemplate) -> list[Change]:
    """Requires that the documents it refers to still exist in the same transaction."""
    references = {("HostType", node_set.host_type.id) for node_set in template.node_sets.values()}
    if template.spec_defaults.version.id:
        references.add(("ClusterVersion", template.spec_defaults.version.id))
    return [Require(kind, id) for kind, id in sorted(references)]


def _update_source(
    name: str, old: TemplateSource | None, status: TemplateSourceStatus, now: datetime
) -> tuple[TemplateSource, list[Change]]:
    """The source with the new status, and the change that stores it, if it changed."""
    note = EventNote("Looked", f"The role {name} is {status.state.name.lower()}")
    if old is None:
        metadata = Metadata(
            name=name, tenant=SYSTEM, creator=TEMPLATE_CREATOR, creation_timestamp=now, generation=1
        )
        source = TemplateSource(id=name, metadata=metadata, status=replace(status, changed_at=now))
        return source, [Insert(source, note)]
    if replace(old.status, changed_at=None) == status:
        return old, []
    changed_source = replace(old, status=replace(status, changed_at=now))
    return changed_source, [Replace(changed_source, note)]


def _to_template_mistakes(mistakes: Sequence[Mistake]) -> tuple[TemplateMistake, ...]:
    return tuple(
        TemplateMistake(
            file=mistake.file,
            line=mistake.line,
            path=mistake.path,
            message=mistake.message,
            remedy=mistake.remedy,
        )
        for mistake in mistakes[:MOST_MISTAKES]
    )
