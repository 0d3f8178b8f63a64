"""The end state of a run, in a form that is equal for equal runs. Read from outside and from the event log only.

Outside is the twin, and where clusters are real the keeper's directory and its processes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from boatyard.ledger.ledger import Ledger
from boatyard.proof.evidence import list_effects, list_held_items
from boatyard.proof.keeper_state import KeeperState
from boatyard.twin.calls import TwinCalls

_TIME_PATTERN = re.compile(r"^\d{4}-\d\d-\d\dT")
_ADDRESS_PATTERN = re.compile(r"\d+\.\d+\.\d+\.\d+([/:]\d+)?")
_DELETED_EVENT = 3
# Only how often something was tried or written may differ.
_UNSTABLE_FIELDS = frozenset({"tries", "next_look"})
# Which states a cluster shows in between depends on how often it was reconciled.
_TRANSIENT_REASONS = frozenset({"", "Progressing"})


@dataclass(frozen=True)
class EndState:
    """What exists after a run. Keys are without the order's id; names drawn from a pool are left out."""

    held: Mapping[str, int] = field(default_factory=dict)  # hub, kind and key → how many
    effects: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # → made, taken away
    documents: Mapping[str, Any] = field(default_factory=dict)  # kind → its last state in the log
    story: Mapping[str, Sequence[str]] = field(default_factory=dict)  # kind → reasons of its events
    kept: Mapping[str, Any] = field(default_factory=dict)  # records, processes, runs, hub objects
    strays: Sequence[str] = ()  # what belongs to no cluster


async def read_end_state(
    ledger: Ledger,
    twin: TwinCalls,
    cluster_id: str,
    name: str,
    keeper_state: KeeperState | None = None,
) -> EndState:
    """What exists outside for one cluster, the effects there, and its documents and events in the log."""
    await ledger.events.publish()
    item_counts: dict[str, int] = {}
    for item in (
        *await list_held_items(twin, f"{cluster_id}/"),
        *(keeper_state.held if keeper_state else ()),
    ):
        place = f"{item.hub} {item.kind} {_without_order_id(item.key)}"
        item_counts[place] = item_counts.get(place, 0) + 1
    effect_counts = {
        f"{effect.kind} {_without_order_id(effect.key)}": (effect.applied, effect.removed)
        for effect in await list_effects(twin, f"{cluster_id}/")
        if effect.applied or effect.removed
    }
    mask = _Mask(cluster_id, name)
    documents: dict[str, Any] = {}
    story: dict[str, list[str]] = {}
    kinds = [(kind, cluster_id) for kind in ("Cluster", "Order", "Leftover")]
    for event in await ledger.events.list_history(kinds, 100_000):
        document = mask.mask(msgspec.json.decode(event.doc or b"{}"))
        if event.kind == "Cluster" and event.type == _DELETED_EVENT:
            # Its last status is what it happened to see of its order's deletion; that is no end state.
            document.pop("status", None)
        documents[event.kind] = document
        reasons = story.setdefault(event.kind, [])
        is_repeated = event.kind == "Cluster" and reasons[-1:] == [event.reason]
        if event.reason not in _TRANSIENT_REASONS and not is_repeated:
            reasons.append(event.reason)
    clusters = keeper_state.clusters if keeper_state else {}
    return EndState(
        held=item_counts,
        effects=effect_counts,
        documents=documents,
        story=story,
        kept={key.replace(cluster_id, "ID"): cluster for key, cluster in clusters.items()},
        strays=keeper_state.orphans if keeper_state else (),
    )


def find_differences(expected: EndState, actual: EndState) -> list[str]:
    """Every difference between the two, in words. Empty when they are equal."""
    return list(_iter_differences("", _to_builtins(expected), _to_builtins(actual)))


def _to_builtins(state: EndState) -> Any:
    return msgspec.to_builtins(state)


def _iter_differences(place: str, expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from _iter_differences(f"{place}/{key}", expected.get(key), actual.get(key))
    elif expected != actual:
        yield f"{place.lstrip('/')}: {_format_value(actual)} instead of {_format_value(expected)}"


def _format_value(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def _without_order_id(key: str) -> str:
    return key.partition("/")[2]


class _Mask:
    """Replaces in a document what may differ between runs: ids, times, and names drawn from a pool."""

    def __init__(self, cluster_id: str, name: str) -> None:
        self._replacements = {
            cluster_id: "ID",
            hashlib.sha256(cluster_id.encode()).hexdigest()[:6]: "ID",
            name: "NAME",
        }

    def mask(self, value: Any, field_name: str = "") -> Any:
        match value:
            case dict():
                stable_fields = {
                    key: item for key, item in value.items() if key not in _UNSTABLE_FIELDS
                }
                if field_name == "metadata":
                    stable_fields.pop("version", None)
                return self._mask_fields(stable_fields, field_name)
            case list():
                return self._index_rows([self.mask(item, field_name) for item in value])
            case str() if _TIME_PATTERN.match(value):
                return "MOMENT"
            case str():
                return self._mask_text(value)
        return value

    def _mask_fields(self, value: dict[str, Any], field_name: str) -> dict[str, Any]:
        if field_name == "facts":
            return dict.fromkeys(value, "FACT")
        fields = {key: self.mask(item, key) for key, item in value.items()}
        if field_name in ("gone", "left"):
            fields["name"] = "THING"
        return fields

    def _index_rows(self, rows: list[Any]) -> Any:
        """Rows that have a name or key become a dict by it, so that their order does not matter."""
        for field_name in ("key", "type", "name", "hub"):
            if rows and all(isinstance(row, dict) and field_name in row for row in rows):
                return {str(row[field_name]): row for row in rows}
        return rows

    def _mask_text(self, text: str) -> str:
        for word, replacement in self._replacements.items():
            text = text.replace(word, replacement)
        return _ADDRESS_PATTERN.sub("ADDRESS", text)
