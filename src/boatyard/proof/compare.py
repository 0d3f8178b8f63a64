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
from boatyard.proof.evidence import effects, truth
from boatyard.proof.keeper_state import Kept
from boatyard.twin.calls import TwinCalls

_MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+([/:]\d+)?")
_DELETED = 3
# Only how often something was tried or written may differ.
_UNSTABLE = frozenset({"tries", "next_look"})
# Which states a cluster shows in between depends on how often it was reconciled.
_PASSING = frozenset({"", "Progressing"})


@dataclass(frozen=True)
class EndState:
    """What exists after a run. Keys are without the order's id; names drawn from a pool are left out."""

    held: Mapping[str, int] = field(default_factory=dict)  # hub, kind and key → how many
    effects: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # → made, taken away
    documents: Mapping[str, Any] = field(default_factory=dict)  # kind → its last state in the log
    story: Mapping[str, Sequence[str]] = field(default_factory=dict)  # kind → reasons of its events
    kept: Mapping[str, Any] = field(default_factory=dict)  # records, processes, runs, hub objects
    strays: Sequence[str] = ()  # what belongs to no cluster


async def end_state(
    ledger: Ledger, twin: TwinCalls, cluster_id: str, name: str, keeper_state: Kept | None = None
) -> EndState:
    """What exists outside for one cluster, the effects there, and its documents and events in the log."""
    await ledger.events.publish()
    item_counts: dict[str, int] = {}
    for item in (
        *await truth(twin, f"{cluster_id}/"),
        *(keeper_state.held if keeper_state else ()),
    ):
        place = f"{item.hub} {item.kind} {_rest(item.key)}"
        item_counts[place] = item_counts.get(place, 0) + 1
    effect_counts = {
        f"{effect.kind} {_rest(effect.key)}": (effect.applied, effect.removed)
        for effect in await effects(twin, f"{cluster_id}/")
        if effect.applied or effect.removed
    }
    mask = _Mask(cluster_id, name)
    documents: dict[str, Any] = {}
    story: dict[str, list[str]] = {}
    kinds = [(kind, cluster_id) for kind in ("Cluster", "Order", "Leftover")]
    for event in await ledger.events.happenings(kinds, 100_000):
        document = mask.of(msgspec.json.decode(event.doc or b"{}"))
        if event.kind == "Cluster" and event.type == _DELETED:
            # Its last status is what it happened to see of its order's deletion; that is no end state.
            document.pop("status", None)
        documents[event.kind] = document
        reasons = story.setdefault(event.kind, [])
        is_repeated = event.kind == "Cluster" and reasons[-1:] == [event.reason]
        if event.reason not in _PASSING and not is_repeated:
            reasons.append(event.reason)
    clusters = keeper_state.clusters if keeper_state else {}
    return EndState(
        held=item_counts,
        effects=effect_counts,
        documents=documents,
        story=story,
        kept={key.replace(cluster_id, "ID"): cluster for key, cluster in clusters.items()},
        strays=keeper_state.strays if keeper_state else (),
    )


def differences(expected: EndState, actual: EndState) -> list[str]:
    """Every difference between the two, in words. Empty when they are equal."""
    return list(_differ("", _plain(expected), _plain(actual)))


def _plain(state: EndState) -> Any:
    return msgspec.to_builtins(state)


def _differ(place: str, expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from _differ(f"{place}/{key}", expected.get(key), actual.get(key))
    elif expected != actual:
        yield f"{place.lstrip('/')}: {_words(actual)} instead of {_words(expected)}"


def _words(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def _rest(key: str) -> str:
    return key.partition("/")[2]


class _Mask:
    """Replaces in a document what may differ between runs: ids, times, and names drawn from a pool."""

    def __init__(self, cluster_id: str, name: str) -> None:
        self._words = {
            cluster_id: "ID",
            hashlib.sha256(cluster_id.encode()).hexdigest()[:6]: "ID",
            name: "NAME",
        }

    def of(self, value: Any, field_name: str = "") -> Any:
        match value:
            case dict():
                stable_fields = {key: item for key, item in value.items() if key not in _UNSTABLE}
                if field_name == "metadata":
                    stable_fields.pop("version", None)
                return self._table(stable_fields, field_name)
            case list():
                return self._rows([self.of(item, field_name) for item in value])
            case str() if _MOMENT.match(value):
                return "MOMENT"
            case str():
                return self._text(value)
        return value

    def _table(self, value: dict[str, Any], field_name: str) -> dict[str, Any]:
        if field_name == "facts":
            return dict.fromkeys(value, "FACT")
        fields = {key: self.of(item, key) for key, item in value.items()}
        if field_name in ("gone", "left"):
            fields["name"] = "THING"
        return fields

    def _rows(self, rows: list[Any]) -> Any:
        """Rows that have a name or key become a dict by it, so that their order does not matter."""
        for field_name in ("key", "type", "name", "hub"):
            if rows and all(isinstance(row, dict) and field_name in row for row in rows):
                return {str(row[field_name]): row for row in rows}
        return rows

    def _text(self, text: str) -> str:
        for word, replacement in self._words.items():
            text = text.replace(word, replacement)
        return _ADDRESS.sub("ADDRESS", text)
