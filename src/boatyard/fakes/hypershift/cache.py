"""Local copies of the API server's objects, by kind: filled by list and watch, and by the answers to our own writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from boatyard.fakes.hypershift.api_client import ApiError, ApiServerClient
from boatyard.fakes.hypershift.kinds import ObjectKind
from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    deleted_at,
    finalizers_of,
    name_of,
    namespace_of,
    resource_version_of,
)

logger = logging.getLogger(__name__)

OnObjectChange = Callable[[Object], None]

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0


@dataclass
class ObjectCache:
    """All objects of one kind that match `query`. `told` is called with each one that is added, changed or deleted."""

    kind: ObjectKind
    on_change: OnObjectChange
    query: Mapping[str, str] = field(default_factory=dict)
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    _objects: dict[str, dict[str, Object]] = field(default_factory=dict)

    def get(self, namespace: str, name: str) -> Object | None:
        return self._objects.get(namespace, {}).get(name)

    def list_namespace(self, namespace: str) -> list[Object]:
        return list(self._objects.get(namespace, {}).values())

    def list_all(self) -> list[Object]:
        return [thing for things in self._objects.values() for thing in things.values()]

    def put(self, thing: Object) -> None:
        """Stores an object unless the stored one is newer. Also called with the answers to writes."""
        current = self.get(namespace_of(thing), name_of(thing))
        if current is not None and _version_number(thing) < _version_number(current):
            return
        if current is not None and resource_version_of(current) == resource_version_of(thing):
            return
        if deleted_at(thing) is not None and not finalizers_of(thing) and self.kind.namespaced:
            # The last finalizer is removed, so the object is deleted: this is its last state.
            self.remove(thing)
            return
        self._objects.setdefault(namespace_of(thing), {})[name_of(thing)] = thing
        self.on_change(thing)

    def remove(self, thing: Object) -> None:
        """Removes an object, unless the stored one is newer: then it is another object of that name."""
        current = self.get(namespace_of(thing), name_of(thing))
        if current is None or _version_number(current) > _version_number(thing):
            return
        siblings = self._objects[namespace_of(thing)]
        del siblings[name_of(thing)]
        if not siblings:
            del self._objects[namespace_of(thing)]
        self.on_change(thing)

    def replace(self, things: Iterable[Object], version: str) -> None:
        """Takes in a list that was read at that version: objects that are not in it and not newer are removed."""
        listed = {(namespace_of(thing), name_of(thing)): thing for thing in things}
        for current in self.list_all():
            if (namespace_of(current), name_of(current)) not in listed and _version_number(
                current
            ) <= int(version):
                self.remove(current)
        for thing in listed.values():
            self.put(thing)

    async def run(self, api: ApiServerClient) -> None:
        """Lists and watches, and resumes after errors, until cancelled."""
        pause = FIRST_PAUSE_SECONDS
        version = ""
        while True:
            try:
                if not version:
                    things, version = await api.list(self.kind, self.query)
                    self.replace(things, version)
                    self.listed.set()
                async for event, thing in api.watch(self.kind, version, self.query):
                    pause = FIRST_PAUSE_SECONDS
                    version = resource_version_of(thing)
                    self._apply_event(event, thing)
                continue
            except ApiError as error:
                if error.is_expired:
                    version = ""
                    continue
                if error.is_not_found:
                    # The kind is not installed (yet). The other kinds do not wait for it.
                    version = ""
                    self.replace((), str(2**63))
                    self.listed.set()
                logger.warning(
                    "watch interrupted", extra={"kind": self.kind.name, "why": str(error)}
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _apply_event(self, event: str, thing: Object) -> None:
        if event in ("ADDED", "MODIFIED"):
            self.put(thing)
        elif event == "DELETED":
            self.remove(thing)


def _version_number(thing: Object) -> int:
    version = resource_version_of(thing)
    return int(version) if version.isdecimal() else 0
