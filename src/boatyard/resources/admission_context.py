"""What admission rules may know besides the object itself. Built by the API for each create or update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from boatyard.model.caller import Caller
from boatyard.model.generated.osac import Resource

T = TypeVar("T")

# By port and driver: a check that refuses settings of a hub with which that driver could not work.
SettingChecks = Mapping[tuple[str, str], Callable[[Mapping[str, str]], object]]


@dataclass(frozen=True)
class KindLookup:
    """A rule's request for all documents of a catalogue kind that the object may refer to."""

    kind: type[Resource]


@dataclass(frozen=True)
class DocumentLookup:
    """A rule's request for one document by id or name, among those of `tenants`; None means of all tenants.

    A missing document is a violation at `path`, in the same words as a document of another tenant.
    """

    path: str
    kind: type[Resource]
    key: str
    tenants: tuple[str, ...] | None


@dataclass(frozen=True)
class AdmissionContext:
    """The moment, the caller, and the documents found for the object's references and wants."""

    now: datetime
    caller: Caller
    documents: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    private: bool = False  # the request came through the private API
    setting_checks: SettingChecks = field(default_factory=dict)

    def get(self, kind: type[T], id: str) -> T | None:
        return self.documents.get((kind.__name__, id))

    def get_all(self, kind: type[T]) -> Sequence[T]:
        return [doc for (name, _), doc in self.documents.items() if name == kind.__name__]
