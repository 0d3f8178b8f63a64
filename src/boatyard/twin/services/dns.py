"""Names: the records of one zone per hub."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused
from boatyard.model.outcome import Outcome
from boatyard.twin.services.at import At, Verb, list_owned, look, ping

KINDS = ("record",)


def zone(context: At) -> str:
    return context.hub.layout.zone


def ensure_record(context: At, key: str, name: str, address: str) -> Outcome:
    context.called("record", key)
    context.refuse_in_mood("record", key, name)
    if not name.endswith(f".{context.hub.layout.zone}"):
        raise Refused(f"{name} is not in the zone {context.hub.layout.zone}")
    holder = context.hub.taken["record"].get(name)
    if holder is not None and holder.key != key:
        raise Refused("the name has a record of another key", reason="HeldByAnother")
    record = context.find("record", key)
    if record is None:
        record = context.make("record", key, name, extra=(address,))
    elif (record.name, record.extra) != (name, (address,)):
        ready_at = context.due("record", key)
        record = context.set(record, name=name, extra=(address,), ready_at=ready_at)
    why = "The zone does not show the name yet."
    return context.answer(record, why, {"name": name}, named=name)


def release_record(context: At, key: str) -> Outcome:
    context.called("record", key)
    record = context.find("record", key)
    why = "The zone still shows the name."
    return context.release(record, why, named=record.name if record else "")


def resolve(context: At, name: str) -> str:
    """The address the zone answers for the name; empty when it does not know it."""
    record = context.hub.taken["record"].get(name)
    if record is None or record.ready_at > context.now or record.gone_at:
        return ""
    return record.extra[0]


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": list_owned(KINDS),
    "look": look(KINDS),
    "zone": zone,
    "ensure_record": ensure_record,
    "release_record": release_record,
    "resolve": resolve,
}
