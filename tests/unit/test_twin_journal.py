"""The twin on disk: what was confirmed comes back, what was torn does not, damage is refused."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boatyard.model.errors import Refused
from boatyard.twin.journal import Journal
from boatyard.twin.layout import HubLayout, Layout
from boatyard.twin.state import TwinState
from boatyard.twin.world import TwinWorld

HUB = "boston-1"


def replayed(directory: Path) -> list[Any]:
    found: list[Any] = []
    journal = Journal(directory)
    try:
        journal.replay(found.append)
    finally:
        journal.close()
    return found


def written(directory: Path, *records: list[Any]) -> Path:
    journal = Journal(directory)
    journal.replay(lambda entry: None)
    for record in records:
        journal.append(record)
    journal.close()
    return directory / "journal-0"


def test_what_was_appended_comes_back_in_order(tmp_path: Path) -> None:
    written(tmp_path, [("a", 1), ("b", 2)], [("c", 3)])

    assert replayed(tmp_path) == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.parametrize("cut", range(1, 17))
def test_a_torn_tail_is_dropped_and_written_over(cut: int, tmp_path: Path) -> None:
    path = written(tmp_path, [("a", 1)], [("b", "0123456")])
    os.truncate(path, path.stat().st_size - cut)

    assert replayed(tmp_path) == [("a", 1)]
    written(tmp_path, [("c", 3)])
    assert replayed(tmp_path) == [("a", 1), ("c", 3)]


def test_a_tail_of_zeros_is_dropped(tmp_path: Path) -> None:
    path = written(tmp_path, [("a", 1)])
    with path.open("ab") as file:
        file.write(bytes(4096))

    assert replayed(tmp_path) == [("a", 1)]


def test_damage_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [("a", 1)], [("b", 2)])
    content = bytearray(path.read_bytes())
    content[10] ^= 0xFF
    path.write_bytes(content)

    with pytest.raises(Refused, match="byte 0"):
        replayed(tmp_path)


def test_a_snapshot_replaces_what_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.replay(lambda entry: None)
    journal.append([("a", 1)])
    journal.replace_by_snapshot([("sum", 1)])
    journal.append([("b", 2)])
    journal.close()

    assert replayed(tmp_path) == [("sum", 1), ("b", 2)]
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "snapshot-1", "journal-1"}


def test_a_snapshot_that_was_not_finished_counts_for_nothing(tmp_path: Path) -> None:
    written(tmp_path, [("a", 1)])
    (tmp_path / "snapshot.unfinished").write_bytes(b"half")
    (tmp_path / "journal-1").write_bytes(b"")

    assert replayed(tmp_path) == [("a", 1)]
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "journal-0"}


def test_two_twins_do_not_share_a_directory(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    with pytest.raises(Refused, match="another twin"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()


def test_a_disk_that_is_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.replay(lambda entry: None)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(OSError, match="no space"):
            journal.append([("a", 1)])
    journal.close()


keys = st.sampled_from(["o/a", "o/b", "p/a"])
hosts = st.sampled_from(["r1-n1", "r1-n2"])
networks = st.sampled_from(["o/l2", "p/l2"])
steps = st.one_of(
    st.tuples(
        st.just("inventory.ensure_held"), st.fixed_dictionaries({"key": keys, "host": hosts})
    ),
    st.tuples(
        st.just("inventory.release_held"), st.fixed_dictionaries({"key": keys, "host": hosts})
    ),
    st.tuples(
        st.just("l2.ensure_network"),
        st.fixed_dictionaries({"key": networks, "vlan": st.integers(100, 101)}),
    ),
    st.tuples(st.just("l2.release_network"), st.fixed_dictionaries({"key": networks})),
    st.tuples(
        st.just("l2.ensure_port"),
        st.fixed_dictionaries({"key": keys, "network_key": networks, "host": hosts}),
    ),
    st.tuples(st.just("l2.release_port"), st.fixed_dictionaries({"key": keys, "host": hosts})),
    st.tuples(
        st.just("dns.ensure_record"),
        st.fixed_dictionaries(
            {
                "key": keys,
                "name": st.sampled_from(["x.boston.example", "y.boston.example"]),
                "address": st.sampled_from(["192.0.2.1", "192.0.2.2"]),
            }
        ),
    ),
    st.tuples(st.just("dns.release_record"), st.fixed_dictionaries({"key": keys})),
)


@settings(max_examples=60)
@given(calls=st.lists(st.tuples(steps, st.floats(0, 3)), max_size=40), profile=st.booleans())
def test_replaying_the_changes_gives_the_same_world(calls: list[Any], profile: bool) -> None:
    layout = HubLayout(hosts={"bm-small": 2}, zone="boston.example")
    world = TwinWorld(Layout(hubs={HUB: layout}))
    world.call("twin.set_delays", {"profile": "demo" if profile else "instant"}, 0)
    now, copy = 1_000_000.0, TwinWorld()
    for (verb, args), passed in calls:
        now += passed
        world.call(verb, {"hub": HUB, **args}, now)
        if verb == "l2.ensure_port":
            world.call("twin.power_off", {"hub": HUB, "host": args["host"]}, now)
        if verb == "l2.release_port":
            on = {"hub": HUB, "host": args["host"], "on": True}
            world.call("twin.power_off", on, now)
    for entry in through_the_disk(world.take_changes()):
        copy.state.apply(entry)

    again = TwinWorld()
    for entry in through_the_disk(copy.state.snapshot()):
        again.state.apply(entry)

    assert facts(copy.state) == facts(world.state)
    assert facts(again.state) == facts(world.state)
    for later in (0.0, 1.0, 5.0):
        for each in (copy, again, world):
            each.state.finish_removals(now + later)
        assert facts(copy.state) == facts(again.state) == facts(world.state)


def through_the_disk(entries: Iterable[Any]) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(list(entries)))


def facts(state: TwinState) -> Any:
    """Everything of a state that may be compared, without the calls, which are not kept."""
    hub = state.hubs[HUB]
    things = sorted(
        (t.kind, t.key, t.name, t.ref, t.extra, t.made_at, t.ready_at, t.gone_at)
        for t in state.things()
    )
    counts = {
        key: (counts.applied, counts.removed)
        for kinds in state.counts_by_order.values()
        for key, counts in kinds.items()
        if counts.applied
    }
    flags = {host.name: (host.flags, host.started_at) for host in hub.hosts.values()}
    standing = {
        kind: {key: sorted(ids) for key, ids in by.items()}
        for kind, by in hub.dependents_by_kind.items()
    }
    taken = {
        kind: {name: t.key for name, t in by.items()} for kind, by in hub.things_by_name.items()
    }
    return (
        things,
        counts,
        flags,
        standing,
        taken,
        hub.free_hosts,
        hub.usable_counts,
        list(state.history),
    )
