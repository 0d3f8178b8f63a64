"""What the simulated platform hands over to the twin, and what the twin has stored afterwards."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from boatyard.model.outcome import Done
from boatyard.platforms.drivers.sim import SimPlatform, digest_secret
from boatyard.platforms.port import DesiredCluster, DesiredNode, DesiredRestore, RestMode
from boatyard.twin.calls import LocalTwin
from boatyard.twin.journal import Journal
from boatyard.twin.layout import demo_layout
from boatyard.twin.world import TwinWorld

HUB = "boston-1"
KEY = "order-1/cluster"
SECRET, PARAMETER = "the-pull-secret", "the-value-of-a-parameter"
WANTED = DesiredCluster(
    name="web",
    version="4.17.9",
    release_image="release.invalid/image:4.17.9",
    api_name="api.web.example",
    api_address="198.51.100.11",
    ingress_name="*.apps.web.example",
    ingress_address="198.51.100.12",
    pod_cidr="10.201.0.0/16",
    service_cidr="10.202.0.0/16",
    machine_cidr="10.203.0.0/24",
    gateway="10.203.0.1",
    ssh_public_key="ssh-ed25519 key",
    pull_secret=SECRET,
    parameters={"size": 5, "mode": PARAMETER},
    settings={"b": "2", "a": "1"},
    host_types=("bm-large", "bm-small"),
)
# Under what name the twin keeps a field, and what of it.
STORED: dict[str, tuple[str, str]] = {
    "name": ("name", "web"),
    "version": ("target", "4.17.9"),
    "release_image": ("release_image", "release.invalid/image:4.17.9"),
    "api_name": ("api_name", "api.web.example"),
    "api_address": ("api_address", "198.51.100.11"),
    "ingress_name": ("ingress_name", "*.apps.web.example"),
    "ingress_address": ("ingress_address", "198.51.100.12"),
    "pod_cidr": ("pod_cidr", "10.201.0.0/16"),
    "service_cidr": ("service_cidr", "10.202.0.0/16"),
    "machine_cidr": ("machine_cidr", "10.203.0.0/24"),
    "gateway": ("gateway", "10.203.0.1"),
    "ssh_public_key": ("ssh_public_key", "ssh-ed25519 key"),
    "pull_secret": ("pull_secret", digest_secret(KEY, SECRET)),
    "parameters": (
        "parameters",
        msgspec.json.encode(
            {"mode": digest_secret(KEY, f'"{PARAMETER}"'), "size": digest_secret(KEY, "5")}
        ).decode(),
    ),
    "settings": ("settings", '{"a":"1","b":"2"}'),
    "host_types": ("host_types", '["bm-large","bm-small"]'),
    "rest": ("rest", ""),
    "restore": ("restored", ""),
}
CHANGES: dict[str, tuple[Any, str]] = {
    "name": ("shop", "shop"),
    "version": ("4.17.10", "4.17.10"),
    "pull_secret": ("another-secret", digest_secret(KEY, "another-secret")),
    "parameters": ({"size": 6}, msgspec.json.encode({"size": digest_secret(KEY, "6")}).decode()),
    "settings": ({}, ""),
    "host_types": (("bm-tiny",), '["bm-tiny"]'),
    "rest": (RestMode.STOPPED, "stopped"),
    "restore": (DesiredRestore("request-1", "backup-1/backup"), "request-1"),
}
for plain in {*STORED} - {*CHANGES}:
    CHANGES[plain] = (f"changed {plain}", f"changed {plain}")


class PlatformClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing takes time here")


class SimPlatformSetup:
    """A twin in which nothing takes time, the platform driver on it, and how to ask the twin itself."""

    def __init__(self) -> None:
        self.world = TwinWorld(demo_layout())
        self.twin = LocalTwin(self.world, PlatformClock())
        self.platform = SimPlatform(self.twin, HUB)

    async def wishes(self) -> dict[str, Any]:
        wishes: dict[str, Any] = await self.twin.call("twin.wishes", hub=HUB, cluster_key=KEY)
        return wishes


def test_every_field_of_a_request_is_compared_below() -> None:
    assert {entry.name for entry in fields(DesiredCluster)} == set(STORED)


async def test_the_twin_stores_everything_it_is_asked_for() -> None:
    room = SimPlatformSetup()

    assert isinstance(await room.platform.ensure_cluster(KEY, WANTED), Done)

    wishes = await room.wishes()
    assert {name: wishes[name] for name, _ in STORED.values()} == dict(STORED.values())


@pytest.mark.parametrize("name", sorted(STORED))
async def test_a_changed_wish_is_stored_again_and_no_other_changes(name: str) -> None:
    room = SimPlatformSetup()
    await room.platform.ensure_cluster(KEY, WANTED)
    await room.platform.ensure_backup("backup-1/backup", KEY)
    value, expected = CHANGES[name]

    change: dict[str, Any] = {name: value}
    assert isinstance(await room.platform.ensure_cluster(KEY, replace(WANTED, **change)), Done)

    wishes = await room.wishes()
    after = dict(STORED.values()) | {STORED[name][0]: expected}
    assert {stored: wishes[stored] for stored, _ in STORED.values()} == after


async def test_the_twin_stores_everything_a_node_is_asked_to_be() -> None:
    room = SimPlatformSetup()
    await room.platform.ensure_cluster(KEY, WANTED)
    node = DesiredNode("gpus-4", "gpus", "r1-n1", "10.203.0.48", "bm-small")

    for host_type in ("bm-small", "bm-large"):
        node = replace(node, host_type=host_type)
        await room.platform.ensure_node("order-1/node/gpus-4", KEY, node)

        stored = {entry.name: getattr(node, entry.name) for entry in fields(DesiredNode)}
        assert (await room.wishes())["nodes"] == {"gpus-4": stored}


@pytest.mark.parametrize("drain", [True, False])
async def test_the_twin_is_told_whether_a_node_is_drained(drain: bool) -> None:
    room = SimPlatformSetup()
    await room.platform.ensure_cluster(KEY, WANTED)
    node = DesiredNode("gpus-4", "gpus", "r1-n1", "10.203.0.48", "bm-small")
    await room.platform.ensure_node("order-1/node/gpus-4", KEY, node)
    await room.twin.call("twin.set_delays", profile="instant", overrides={"-node": 9.0})

    outcome = await room.platform.release_node("order-1/node/gpus-4", KEY, "gpus-4", drain=drain)

    assert isinstance(outcome, Done) is not drain


def contents_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir())


async def test_no_secret_is_in_the_twin_or_in_its_journal(tmp_path: Path) -> None:
    world = TwinWorld(demo_layout())
    twin = LocalTwin(world, PlatformClock())
    calls: list[dict[str, Any]] = []

    class RecordingLocalTwin(LocalTwin):
        async def call(self, verb: str, /, **args: Any) -> Any:
            calls.append(args)
            return await twin.call(verb, **args)

    await SimPlatform(RecordingLocalTwin(world, PlatformClock()), HUB).ensure_cluster(KEY, WANTED)
    journal = Journal(tmp_path)
    journal.replay(lambda entry: None)
    journal.append(list(world.state.snapshot()))
    journal.close()

    written = contents_of(tmp_path)
    assert digest_secret(KEY, SECRET).encode() in written, "this is where it would be"
    for secret in (SECRET, PARAMETER):
        assert secret.encode() not in written
        assert secret not in repr(calls)


def test_a_digest_is_of_one_cluster_and_of_nothing_there_is_none() -> None:
    digests = {
        digest_secret(KEY, "a"),
        digest_secret(KEY, "b"),
        digest_secret("order-2/cluster", "a"),
    }

    assert len(digests) == 3
    assert digest_secret(KEY, "") == ""


async def test_a_journal_from_before_these_wishes_were_stored_can_be_read() -> None:
    room = SimPlatformSetup()
    await room.platform.ensure_cluster(KEY, WANTED)
    cluster = room.world.state.hubs[HUB].things["cluster"][KEY]
    room.world.state.change("set", msgspec.structs.replace(cluster, extra=cluster.extra[:10]))

    assert (await room.wishes())["pull_secret"] == ""
    assert isinstance(await room.platform.ensure_cluster(KEY, WANTED), Done)
    assert (await room.wishes())["pull_secret"] == digest_secret(KEY, SECRET)
