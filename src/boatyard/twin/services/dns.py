"""Names: the records of one zone per hub."""

from __future__ import annotations

from collections.abc import Mapping

from boatyard.model.errors import Refused
from boatyard.model.outcome import Outcome
from boatyard.twin.services.verb_context import (
    Verb,
    VerbContext,
    make_list_owned_verb,
    make_look_verb,
    ping,
)

KINDS = ("record",)


def get_zone(context: VerbContext) -> str:
    return context.hub.layout.zone


def ensure_record(context: VerbContext, key: str, name: str, address: str) -> Outcome:
    context.count_call("record", key)
    context.refuse_by_behaviour("record", key, name)
    if not name.endswith(f".{context.hub.layout.zone}"):
        raise Refused(f"{name} is not in the zone {context.hub.layout.zone}")
    holder = context.hub.things_by_name["record"].get(name)
    if holder is not None and holder.key != key:
        raise Refused("the name has a record of another key", reason="HeldByAnother")
    record = context.find("record", key)
    if record is None:
        record = context.make("record", key, name, extra=(address,))
    elif (record.name, record.extra) != (name, (address,)):
        ready_at = context.finish_time("record", key)
        record = context.replace(record, name=name, extra=(address,), ready_at=ready_at)
    why = "The zone does not show the name yet."
    return context.to_outcome(record, why, {"name": name}, named=name)


def release_record(context: VerbContext, key: str) -> Outcome:
    context.count_call("record", key)
    record = context.find("record", key)
    why = "The zone still shows the name."
    return context.release(record, why, named=record.name if record else "")


def resolve(context: VerbContext, name: str) -> str:
    """The address the zone answers for the name; empty when it does not know it."""
    record = context.hub.things_by_name["record"].get(name)
    if record is None or record.ready_at > context.now or record.gone_at:
        return ""
    return record.extra[0]


VERBS: Mapping[str, Verb] = {
    "ping": ping,
    "list_owned": make_list_owned_verb(KINDS),
    "look": make_look_verb(KINDS),
    "zone": get_zone,
    "ensure_record": ensure_record,
    "release_record": release_record,
    "resolve": resolve,
}
