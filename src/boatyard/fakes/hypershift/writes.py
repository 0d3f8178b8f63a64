"""The writes of a decision. Each may be carried out twice, or too late, without harm. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boatyard.fakes.hypershift.kinds import ObjectKind
from boatyard.fakes.hypershift.names import Object
from boatyard.fakes.hypershift.objects import (
    finalizers_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)


@dataclass(frozen=True)
class CreateObject:
    """Creates an object. An existing one of that name is accepted; `adopt` is then merged into it."""

    kind: ObjectKind
    body: Object
    merge_if_exists: Object | None = None


@dataclass(frozen=True)
class PatchObject:
    """Merges a patch into an object, if the object is unchanged."""

    kind: ObjectKind
    current: Object
    patch: Object


@dataclass(frozen=True)
class UpdateStatus:
    """Writes the whole status of an object, if the object is unchanged. Fields that are left out are removed."""

    kind: ObjectKind
    current: Object
    status: Object


@dataclass(frozen=True)
class DeleteObject:
    """Requests the deletion of this object, by uid. An object that is deleted already is accepted."""

    kind: ObjectKind
    current: Object

    @property
    def uid(self) -> str:
        return uid_of(self.current)


Write = CreateObject | PatchObject | UpdateStatus | DeleteObject


@dataclass(frozen=True)
class Decision:
    """What to write now, in this order, and when to decide again even if nothing changes."""

    writes: tuple[Write, ...] = ()
    next_check: float | None = None
    wants_agents: bool = False  # a machine waits for a free agent


def with_resource_version(thing: Object, patch: Object) -> Object:
    """The patch with the resource version to which it may be applied."""
    metadata: dict[str, Any] = {
        **patch.get("metadata", {}),
        "resourceVersion": resource_version_of(thing),
    }
    return {**patch, "metadata": metadata}


def add_finalizer(
    kind: ObjectKind, thing: Object, finalizer: str, **more: Any
) -> PatchObject | None:
    """Adds a finalizer, with `more` in the same patch; None when there is nothing to change."""
    patch: Object = dict(more)
    if finalizer not in finalizers_of(thing):
        metadata = patch.setdefault("metadata", {})
        metadata["finalizers"] = [*finalizers_of(thing), finalizer]
    return PatchObject(kind, thing, patch) if patch else None


def remove_finalizer(kind: ObjectKind, thing: Object, finalizer: str) -> PatchObject | None:
    if finalizer not in finalizers_of(thing):
        return None
    finalizers = [name for name in finalizers_of(thing) if name != finalizer]
    return PatchObject(kind, thing, {"metadata": {"finalizers": finalizers}})


def target_of(write: Write) -> tuple[ObjectKind, str, str]:
    """Kind, namespace and name of what is written."""
    thing = write.body if isinstance(write, CreateObject) else write.current
    return write.kind, namespace_of(thing), name_of(thing)


def earliest(*moments: float | None) -> float | None:
    """The earliest of several times; None stands for never."""
    return min((moment for moment in moments if moment is not None), default=None)
