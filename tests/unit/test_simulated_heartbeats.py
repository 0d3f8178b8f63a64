"""The short way for heartbeats: a success is told as one number, everything else as None."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from boatyard.kube.config import KubeConfig
from boatyard.platforms.drivers.local.nodes.heartbeat_client import HeartbeatClient
from tests.support.control_plane import Authority
from tests.support.scripted_kube import Says, ScriptedKube, Silence, failure, scripted_kube, thing

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
AUTHORITY = Authority("cluster")


@pytest.fixture
async def kube(tmp_path: Path) -> AsyncIterator[ScriptedKube]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = tmp_path / "pair.pem"
    pair.write_bytes(b"".join(AUTHORITY.issue("api", names=["127.0.0.1"])))
    tls.load_cert_chain(pair)
    tls.load_verify_locations(cadata=AUTHORITY.pem.decode())
    tls.verify_mode = ssl.CERT_REQUIRED
    async with scripted_kube(tls) as kube:
        yield kube


@pytest.fixture
async def wire(kube: ScriptedKube) -> AsyncIterator[HeartbeatClient]:
    wire = HeartbeatClient(config(kube), agent="boatyard", timeout=2.0)
    yield wire
    wire.close()


def config(kube: ScriptedKube) -> KubeConfig:
    certificate, key = AUTHORITY.issue("agent")
    return KubeConfig(kube.url, ca=AUTHORITY.pem, certificate=certificate, key=key)


async def test_the_version_comes_back_and_the_connection_is_kept(
    kube: ScriptedKube, wire: HeartbeatClient
) -> None:
    kube.tell(*(Says(thing("n", version)) for version in (7, 8, 9)))

    versions = [await wire.put(PATH, b'{"x":1}') for _ in range(3)]

    assert versions == ["7", "8", "9"]
    assert [(one.method, one.path, one.body) for one in kube.asked] == [
        ("PUT", PATH, b'{"x":1}')
    ] * 3
    assert kube.asked[0].headers["User-Agent"] == "boatyard"
    assert len({one.connection for one in kube.asked}) == 1


async def test_a_connection_of_somebody_not_known_any_more_is_not_used_again(
    kube: ScriptedKube, wire: HeartbeatClient
) -> None:
    """It was opened with a certificate that has ended; the next is opened with the one of the day."""
    kube.tell(failure(401, "Unauthorized"), Says(thing("n", 7)))

    assert [await wire.put(PATH, b"{}") for _ in range(2)] == [None, "7"]
    assert len({one.connection for one in kube.asked}) == 2


async def test_what_is_no_plain_success_is_left_to_the_client(
    kube: ScriptedKube, wire: HeartbeatClient
) -> None:
    kube.tell(
        failure(409, "Conflict"),
        failure(404, "NotFound"),
        Says(b"no object"),
        Silence(cut=True),
        Says(thing("n", 10)),
    )

    versions = [await wire.put(PATH, b"{}") for _ in range(5)]

    assert versions == [None, None, None, None, "10"]


async def test_a_server_that_stands_still_is_given_up_and_its_late_answer_is_nobody_s(
    kube: ScriptedKube,
) -> None:
    wire = HeartbeatClient(config(kube), agent="boatyard", timeout=0.3)
    kube.tell(Says(thing("n", 6)), Silence(), Says(thing("n", 7)))

    assert [await wire.put(PATH, b"{}") for _ in range(3)] == ["6", None, "7"]
    assert kube.asked[0].connection == kube.asked[1].connection != kube.asked[2].connection
    wire.close()


async def test_nobody_there_is_none(kube: ScriptedKube) -> None:
    nowhere = replace(config(kube), server="https://127.0.0.1:1")

    assert await HeartbeatClient(nowhere, agent="boatyard").put(PATH, b"{}") is None


@pytest.mark.parametrize(
    "change",
    [
        {"token": "t"},
        {"impersonate_user": "u"},
        {"certificate": b""},
        {"server": "http://127.0.0.1:1"},
        {"server": "https://127.0.0.1:1/prefix"},
    ],
)
async def test_other_users_and_servers_are_the_client_s_business(
    kube: ScriptedKube, change: dict[str, object]
) -> None:
    wire = HeartbeatClient(replace(config(kube), **change), agent="boatyard")  # type: ignore[arg-type]

    assert await wire.put(PATH, b"{}") is None
    assert kube.asked == []
