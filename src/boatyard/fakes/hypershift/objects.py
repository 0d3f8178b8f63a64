"""Reads Kubernetes objects: metadata, times, conditions. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from boatyard.fakes.hypershift.names import Object


def name_of(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def namespace_of(thing: Object) -> str:
    return str(thing["metadata"].get("namespace") or "")


def uid_of(thing: Object) -> str:
    return str(thing["metadata"].get("uid") or "")


def resource_version_of(thing: Object) -> str:
    return str(thing["metadata"].get("resourceVersion") or "")


def generation_of(thing: Object) -> int:
    return int(thing["metadata"].get("generation") or 0)


def annotations_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


def labels_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("labels") or {}


def finalizers_of(thing: Object) -> list[str]:
    return thing["metadata"].get("finalizers") or []


def spec_of(thing: Object) -> Object:
    return thing.get("spec") or {}


def status_of(thing: Object) -> Object:
    return thing.get("status") or {}


def created_at(thing: Object) -> float:
    return parse_time(thing["metadata"].get("creationTimestamp")) or 0.0


def deleted_at(thing: Object) -> float | None:
    """When its deletion was requested; None when it was not."""
    return parse_time(thing["metadata"].get("deletionTimestamp"))


def get_nested(thing: Any, *path: str) -> Any:
    """A nested field; None when any part of the path is missing."""
    for part in path:
        if not isinstance(thing, dict):
            return None
        thing = thing.get(part)
    return thing


def parse_time(text: Any) -> float | None:
    """Seconds since the epoch of a time in text form; None when the text is missing or no time."""
    if not isinstance(text, str) or not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def format_time(at: float) -> str:
    """A time as Kubernetes writes it: whole seconds."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def short_hash(*words: object) -> str:
    """Five letters and digits that depend only on the words."""
    number = int.from_bytes(
        hashlib.sha256("\0".join(str(word) for word in words).encode()).digest()[:8]
    )
    letters = "bcdfghjklmnpqrstvwxz2456789"  # as in the suffixes of Kubernetes: no vowels, so no words by chance
    text = ""
    for _ in range(5):
        number, index = divmod(number, len(letters))
        text += letters[index]
    return text


@dataclass(frozen=True)
class StatusCondition:
    """A condition to write."""

    type: str
    status: str  # True, False, Unknown
    reason: str
    message: str = ""
    severity: str = ""

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def find_condition(conditions: Iterable[Object], kind: str) -> Object | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def conditions_of(thing: Object) -> list[Object]:
    return status_of(thing).get("conditions") or []


def is_true(thing: Object, kind: str) -> bool:
    condition = find_condition(conditions_of(thing), kind)
    return condition is not None and condition.get("status") == "True"


def true_since(thing: Object, kind: str) -> float | None:
    """Since when a condition is True; None when it is not."""
    condition = find_condition(conditions_of(thing), kind)
    if condition is None or condition.get("status") != "True":
        return None
    return parse_time(condition.get("lastTransitionTime")) or 0.0


def write_conditions(
    old: Sequence[Object],
    conditions: Iterable[StatusCondition],
    now: float,
    generation: int | None = None,
) -> list[Object]:
    """The conditions in the form of the API. One whose status is unchanged keeps its lastTransitionTime."""
    written = []
    for condition in conditions:
        previous = find_condition(old, condition.type)
        is_unchanged = previous is not None and previous.get("status") == condition.status
        since = (
            previous.get("lastTransitionTime") if previous is not None and is_unchanged else None
        )
        entry: Object = {
            "type": condition.type,
            "status": condition.status,
            "lastTransitionTime": since or format_time(now),
            "reason": condition.reason,
        }
        if condition.message or generation is not None:
            entry["message"] = condition.message
        if condition.severity:
            entry["severity"] = condition.severity
        if generation is not None:
            entry["observedGeneration"] = generation
        written.append(entry)
    return written
