"""What is left after a run, in a form that is the same for every run: read from outside and from the event log alone.

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
# How often something was tried or written is the one thing that may differ.
_UNSTABLE = frozenset({"tries", "next_look"})
# What a cluster shows on its way depends on how often it happened to look.
_PASSING = frozenset({"", "Progressing"})


@dataclass(frozen=True)
class EndState:
    """Keys are without the order's id; names that are drawn from a pool are left out."""

    held: Mapping[str, int] = field(default_factory=dict)  # hub, kind and key → how many
    effects: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # → made, taken away
    documents: Mapping[str, Any] = field(default_factory=dict)  # kind → its last state in the log
    story: Mapping[str, Sequence[str]] = field(default_factory=dict)  # kind → what happened
    kept: Mapping[str, Any] = field(default_factory=dict)  # real clusters: records, processes, …
    strays: Sequence[str] = ()  # what belongs to no cluster


async def end_state(
    ledger: Ledger, twin: TwinCalls, cluster_id: str, name: str, kept: Kept | None = None
) -> EndState:
    """What is outside and has been done there for one cluster, and what the log says of it."""
    await ledger.events.publish()
    held: dict[str, int] = {}
    for one in (*await truth(twin, f"{cluster_id}/"), *(kept.held if kept else ())):
        place = f"{one.hub} {one.kind} {_rest(one.key)}"
        held[place] = held.get(place, 0) + 1
    counts = {
        f"{effect.kind} {_rest(effect.key)}": (effect.applied, effect.removed)
        for effect in await effects(twin, f"{cluster_id}/")
        if effect.applied or effect.removed
    }
    masked = _Mask(cluster_id, name)
    documents: dict[str, Any] = {}
    story: dict[str, list[str]] = {}
    kinds = [(kind, cluster_id) for kind in ("Cluster", "Order", "Leftover")]
    for event in await ledger.events.happenings(kinds, 100_000):
        document = masked.of(msgspec.json.decode(event.doc or b"{}"))
        if event.kind == "Cluster" and event.type == _DELETED:
            # It showed last what it happened to see of its order's end; that is no end state.
            document.pop("status", None)
        documents[event.kind] = document
        told = story.setdefault(event.kind, [])
        again = event.kind == "Cluster" and told[-1:] == [event.reason]
        if event.reason not in _PASSING and not again:
            told.append(event.reason)
    clusters = kept.clusters if kept else {}
    return EndState(
        held=held,
        effects=counts,
        documents=documents,
        story=story,
        kept={key.replace(cluster_id, "ID"): one for key, one in clusters.items()},
        strays=kept.strays if kept else (),
    )


def differences(expected: EndState, found: EndState) -> list[str]:
    """Every place where the two differ, in words. Empty when they are equal."""
    return list(_differ("", _plain(expected), _plain(found)))


def _plain(state: EndState) -> Any:
    return msgspec.to_builtins(state)


def _differ(place: str, expected: Any, found: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            yield from _differ(f"{place}/{key}", expected.get(key), found.get(key))
    elif expected != found:
        yield f"{place.lstrip('/')}: {_words(found)} instead of {_words(expected)}"


def _words(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def _rest(key: str) -> str:
    return key.partition("/")[2]


class _Mask:
    """Takes out of a document what is allowed to differ: ids, moments, and which of a pool's things it was."""

    def __init__(self, cluster_id: str, name: str) -> None:
        self._words = {
            cluster_id: "ID",
            hashlib.sha256(cluster_id.encode()).hexdigest()[:6]: "ID",
            name: "NAME",
        }

    def of(self, value: Any, under: str = "") -> Any:
        match value:
            case dict():
                kept = {key: one for key, one in value.items() if key not in _UNSTABLE}
                if under == "metadata":
                    kept.pop("version", None)
                return self._table(kept, under)
            case list():
                return self._rows([self.of(one, under) for one in value])
            case str() if _MOMENT.match(value):
                return "MOMENT"
            case str():
                return self._text(value)
        return value

    def _table(self, value: dict[str, Any], under: str) -> dict[str, Any]:
        if under == "facts":
            return dict.fromkeys(value, "FACT")
        found = {key: self.of(one, key) for key, one in value.items()}
        if under in ("gone", "left"):
            found["name"] = "THING"
        return found

    def _rows(self, rows: list[Any]) -> Any:
        """Rows that have a name or key are compared by it, wherever they stand."""
        for field_name in ("key", "type", "name", "hub"):
            if rows and all(isinstance(row, dict) and field_name in row for row in rows):
                return {str(row[field_name]): row for row in rows}
        return rows

    def _text(self, text: str) -> str:
        for word, instead in self._words.items():
            text = text.replace(word, instead)
        return _ADDRESS.sub("ADDRESS", text)
