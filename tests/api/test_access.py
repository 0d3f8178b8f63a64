"""Who is given which credentials, when, and in which words they are told that there are none."""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from boatyard.api import access
from boatyard.ledger.changes import Insert
from boatyard.model.generated.boatyard import Credentials, Order, OrderStatus
from boatyard.model.generated.osac import Metadata
from boatyard.pki.authority import Authority
from tests.api.doors import OURS, ApiEnvironment, Door, Failed
from tests.api.roles import CLUSTERS, As

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCESS = f"{OURS}.Access"


def config_for(port: int) -> str:
    """An admin's kubeconfig of a cluster at a port of this machine."""
    authority = Authority.create("test", now=datetime(2026, 1, 1, tzinfo=UTC))
    ca = b64encode(authority.pem.certificate).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": ca}
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "admin-secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


async def ordered(environment: ApiEnvironment, who: As, **credentials: Any) -> str:
    """A cluster whose order has come this far."""
    made = await who.cluster()
    now = environment.ledger.clock.now()
    order = Order(
        id=made["id"],
        metadata=Metadata(name=f"order-{made['id']}", tenant="acme", creation_timestamp=now),
        status=OrderStatus(credentials=Credentials(**credentials)),
    )
    await environment.ledger.commit([Insert(order)], now=now)
    return str(made["id"])


async def events(environment: ApiEnvironment, who: As, id: str) -> list[str]:
    """The words of the history that are about access."""
    await environment.ledger.events.publish()
    history = await who(f"{OURS}.Orders", "History", cluster=id)
    return [item["message"] for item in history["items"] if item["reason"].startswith("Access")]


async def test_a_password_that_never_comes_is_told_apart_from_one_that_is_not_there_yet(
    environment: ApiEnvironment, member: As
) -> None:
    never = await ordered(environment, member, kubeconfig="kube: config")
    soon = await ordered(environment, member)
    failed = await member.refused(CLUSTERS, "GetPasswordViaHttp", id=never)
    assert (failed.code, failed.message) == (
        "NOT_FOUND",
        "clusters of this platform have no password; use the kubeconfig",
    )
    failed = await member.refused(CLUSTERS, "GetPasswordViaHttp", id=soon)
    assert failed.code == "NOT_FOUND"
    assert "yet" in failed.message
    assert await member(CLUSTERS, "GetKubeconfigViaHttp", id=never) == "kube: config"
    at_once = As(environment, environment.grpc, "member")
    assert (await at_once.refused(CLUSTERS, "GetPassword", id=never)).code == "NOT_FOUND"


async def test_a_kubeconfig_is_there_before_the_cluster_is_ready(
    environment: ApiEnvironment, member: As
) -> None:
    id = await ordered(environment, member, kubeconfig="kube: config", password="secret")
    state = (await member(CLUSTERS, "Get", id=id))["status"]["state"]
    assert state == "CLUSTER_STATE_PROGRESSING"
    assert await member(CLUSTERS, "GetKubeconfigViaHttp", id=id) == "kube: config"


async def test_a_simulated_cluster_issues_none(environment: ApiEnvironment, member: As) -> None:
    id = await ordered(environment, member, kubeconfig="kube: config", simulated=True)
    failed = await member.refused(ACCESS, "Issue", cluster=id, user="bob")
    assert failed.code == "FAILED_PRECONDITION"
    assert "a simulated cluster issues none" in failed.message


async def test_before_there_is_an_api_none_is_issued(
    environment: ApiEnvironment, member: As
) -> None:
    made = await member.cluster()
    for id in (made["id"], await ordered(environment, member)):
        failed = await member.refused(ACCESS, "Issue", cluster=id, user="bob")
        assert failed.code == "FAILED_PRECONDITION"
        assert "no credentials yet" in failed.message


async def test_a_cluster_that_goes_issues_none(environment: ApiEnvironment, member: As) -> None:
    id = await ordered(environment, member, kubeconfig=config_for(1))
    await member(CLUSTERS, "Delete", id=id)
    failed = await member.refused(ACCESS, "Issue", cluster=id, user="bob")
    assert (failed.code, await events(environment, member, id)) == ("FAILED_PRECONDITION", [])


@pytest.mark.parametrize("body, paths", [
    pytest.param({"user": "system:masters"}, {"user"}, id="a name of the cluster's own"),
    pytest.param({"user": "System:x"}, {"user"}, id="the same in disguise"),
    pytest.param({"user": "a b"}, {"user"}, id="a space"),
    pytest.param({"user": "a/b"}, {"user"}, id="a slash"),
    pytest.param({"user": "a\nb"}, {"user"}, id="a line break"),
    pytest.param({"user": "a\x1b[2J"}, {"user"}, id="an escape"),
    pytest.param({"user": "a\u202eb"}, {"user"}, id="writing turned round"),
    pytest.param({"user": "x" * 56}, {"user"}, id="too long"),
    pytest.param({"user": "é" * 28}, {"user"}, id="too long in bytes"),
    pytest.param({"user": "bob", "ttl_seconds": 599}, {"ttl_seconds"}, id="too short a time"),
    pytest.param({"user": "bob", "ttl_seconds": 86401}, {"ttl_seconds"}, id="too long a time"),
    pytest.param({"user": "bob", "ttl_seconds": 0}, {"ttl_seconds"}, id="no time"),
    pytest.param({"user": "bob", "ttl_seconds": -1}, {"ttl_seconds"}, id="less than no time"),
    pytest.param({"user": "/", "ttl_seconds": 1}, {"user", "ttl_seconds"}, id="both at once"),
])  # fmt: skip
async def test_what_is_wrong_is_told_by_field(
    environment: ApiEnvironment, member: As, body: dict[str, Any], paths: set[str]
) -> None:
    id = await ordered(environment, member, kubeconfig=config_for(1))
    failed = await member.refused(ACCESS, "Issue", cluster=id, **body)
    assert (failed.code, set(failed.violations)) == ("INVALID_ARGUMENT", paths)
    if "ttl_seconds" in paths:
        assert "600" in failed.violations["ttl_seconds"]
        assert "86400" in failed.violations["ttl_seconds"]


async def test_viewers_are_issued_their_own_only(environment: ApiEnvironment, door: Door) -> None:
    """In the cluster another's name may have more rights than a viewer."""
    id = await ordered(environment, As(environment, door, "member"), kubeconfig=config_for(1))
    viewer = As(environment, door, "viewer")
    failed = await viewer.refused(ACCESS, "Issue", cluster=id, user="bob")
    assert set(failed.violations) == {"user"}
    for own in ({}, {"user": "viewer-of-acme"}):
        failed = await viewer.refused(ACCESS, "Issue", cluster=id, **own)
        assert failed.code == "UNAVAILABLE", "asked of the cluster, where nothing answers"


async def test_a_dry_run_is_refused_rather_than_done(
    environment: ApiEnvironment, door: Door
) -> None:
    member = As(environment, door, "member")
    id = await ordered(environment, member, kubeconfig=config_for(1))
    with pytest.raises(Failed) as failed:
        await door.call(
            ACCESS, "Issue", {"cluster": id}, token=environment.token("member"), x_dry_run="true"
        )
    assert failed.value.code == "INVALID_ARGUMENT"


@pytest.fixture
def frozen() -> Iterator[int]:
    """A port that takes connections and never says anything, as a frozen API server does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_cluster_that_does_not_answer_is_told_in_time_and_leaves_no_event(
    environment: ApiEnvironment, member: As, frozen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ISSUE_SECONDS", 0.3)
    for port in (frozen, 1):
        id = await ordered(environment, member, kubeconfig=config_for(port))
        async with asyncio.timeout(10):
            failed = await member.refused(ACCESS, "Issue", cluster=id, user="bob")
        assert failed.code == "UNAVAILABLE"
        assert "does not answer" in failed.message
        assert "database" not in failed.message
        assert "admin-secret" not in failed.message
        assert await events(environment, member, id) == []


async def test_a_server_that_is_not_the_clusters_own_is_not_spoken_to(
    environment: ApiEnvironment, member: As, impostor: int
) -> None:
    id = await ordered(environment, member, kubeconfig=config_for(impostor))
    failed = await member.refused(ACCESS, "Issue", cluster=id, user="bob")
    assert failed.code == "UNAVAILABLE"
    assert "is not what is known as such" in failed.message


@pytest_asyncio.fixture(loop_scope="module")
async def impostor(tmp_path: Path) -> AsyncIterator[int]:
    """A TLS server of another authority; it fails the test when anything is sent to it."""
    authority = Authority.create("other", now=datetime(2026, 1, 1, tzinfo=UTC))
    pair = authority.issue("x", addresses=["127.0.0.1"], server=True, now=datetime.now(UTC))
    path = tmp_path / "pair.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    yield server.sockets[0].getsockname()[1]
    server.close()
    assert not any(heard)
