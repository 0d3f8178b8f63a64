"""Access that ends by itself, from a real API server and signer, used by the real kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from cryptography import x509

from boatyard.api import access
from boatyard.api.authentication import TokenIssuer
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CLUSTER_ROLE_BINDINGS, CSRS, NAMESPACES, SECRETS
from boatyard.ledger.changes import Insert
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.model.errors import NotFound, Refused
from boatyard.model.generated.boatyard import Credentials, Order, OrderStatus
from boatyard.model.generated.osac import Metadata
from tests.api import samples
from tests.api.doors import OURS, ApiEnvironment, Failed, running
from tests.api.roles import As
from tests.support.control_plane import ControlPlane, control_plane
from tests.support.postgres import KEY, migrated

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCESS = f"{OURS}.Access"
# What signs, what fills the role `view`, and what removes requests that a killed process left.
CONTROLLERS = (
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-cleaner-controller",
    "clusterrole-aggregation-controller",
)


@pytest.fixture(scope="module")
def signing() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        plane.start_controller_manager(f"--controllers={','.join(CONTROLLERS)}")
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ApiEnvironment]:
    issuer = TokenIssuer.load_or_create(tmp_path_factory.mktemp("keys") / "tokens.pem")
    async with migrated(postgres) as url:
        ledger = await Ledger.open(url, seal=Seal.from_bytes(KEY), application="test")
        async with running(ledger, issuer) as environment:
            await samples.stock(environment)
            yield environment
        await ledger.close()


@pytest_asyncio.fixture(loop_scope="module")
async def admin(signing: ControlPlane) -> AsyncIterator[KubeClient]:
    client = KubeClient(read_kubeconfig(signing.kubeconfig()), timeout=30)
    yield client
    await client.close()


@dataclass(frozen=True)
class Web:
    """A cluster of tenant acme whose control plane is the real one."""

    environment: ApiEnvironment
    id: str

    def who(self, role: str, tenant: str = "acme") -> As:
        return As(self.environment, self.environment.grpc, role, tenant)

    async def issue(self, role: str = "member", **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await self.who(role)(ACCESS, "Issue", cluster=self.id, **body)
        return answer

    async def events(self) -> list[str]:
        await self.environment.ledger.events.publish()
        found = await self.who("member")(f"{OURS}.Orders", "History", cluster=self.id)
        return [one["message"] for one in found["items"] if one["reason"].startswith("Access")]


@pytest_asyncio.fixture(loop_scope="module")
async def web(environment: ApiEnvironment, signing: ControlPlane) -> Web:
    made = await As(environment, environment.grpc, "member").cluster()
    now = environment.ledger.clock.now()
    order = Order(
        id=made["id"],
        metadata=Metadata(name=f"order-{made['id']}", tenant="acme", creation_timestamp=now),
        status=OrderStatus(credentials=Credentials(kubeconfig=json.dumps(signing.kubeconfig()))),
    )
    await environment.ledger.commit([Insert(order)], now=now)
    return Web(environment, made["id"])


async def kubectl(plane: ControlPlane, config: Path, *words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        plane.programs / "kubectl",
        *(f"--kubeconfig={config}", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def as_bearer(issued: dict[str, Any]) -> KubeClient:
    return KubeClient(read_kubeconfig(issued["kubeconfig"]), timeout=30)


async def test_kubectl_is_who_the_certificate_says(
    web: Web, signing: ControlPlane, admin: KubeClient, tmp_path: Path
) -> None:
    before = datetime.now(UTC)
    issued = await web.issue(user="bob@example.com", ttl_seconds=600)
    assert issued["user"] == "boatyard:bob@example.com"
    assert issued["groups"] == ["boatyard:admins", "boatyard:issued-by:member-of-acme"]
    config = tmp_path / "bob"
    config.write_text(issued["kubeconfig"])
    code, said = await kubectl(signing, config, "auth", "whoami", "-o", "json")
    assert code == 0, said
    user = json.loads(said)["status"]["userInfo"]
    assert user["username"] == "boatyard:bob@example.com"
    assert set(issued["groups"]) < set(user["groups"])
    assert (await kubectl(signing, config, "create", "namespace", "of-bob"))[0] == 0

    certificate = x509.load_pem_x509_certificate(read_kubeconfig(issued["kubeconfig"]).certificate)
    ends = datetime.fromisoformat(issued["expires_at"])
    assert certificate.not_valid_after_utc == ends
    assert abs(ends - before - timedelta(minutes=10)) < timedelta(seconds=30)
    assert (await admin.list(CSRS)).items == [], "no request stays in the cluster"


async def test_it_is_on_record_before_it_is_handed_out(web: Web) -> None:
    issued = await web.issue(user="bob", ttl_seconds=1200)
    ends = datetime.fromisoformat(issued["expires_at"])
    assert await web.events() == [
        "A kubeconfig for bob, good for 20 minutes, was asked for by member-of-acme",
        f"Issued a kubeconfig for bob, valid until {ends:%Y-%m-%d %H:%M:%S} UTC, by member-of-acme",
    ]
    await web.issue("operator", user="ann")
    assert (await web.events())[-1].endswith("by an operator"), "of whom tenants know no names"


async def test_without_a_record_there_is_no_certificate(
    web: Web, admin: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    create = KubeClient.create

    async def told(self: KubeClient, kind: Any, *rest: Any) -> Any:
        asked.append(kind.kind)
        return await create(self, kind, *rest)

    async def lost(*_: Any) -> None:
        raise NotFound("the ledger is away")

    monkeypatch.setattr(KubeClient, "create", told)
    monkeypatch.setattr(access.AccessService, "_record_event", lost)
    with pytest.raises(Failed):
        await web.issue(user="bob")
    assert asked == []


async def test_without_the_second_record_nothing_is_handed_out(
    web: Web, admin: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = access.AccessService._record_event
    notes: list[str] = []

    async def lost(self: access.AccessService, cluster: Any, note: Any) -> None:
        notes.append(note.reason)
        if len(notes) > 1:
            raise NotFound("the ledger is away")
        await record(self, cluster, note)

    monkeypatch.setattr(access.AccessService, "_record_event", lost)
    with pytest.raises(Failed):
        await web.issue(user="bob")
    assert notes == ["AccessRequested", "AccessIssued"]
    assert len(await web.events()) == 1
    assert (await admin.list(CSRS)).items == []


async def test_nobody_is_given_more_than_their_own_role(
    web: Web, signing: ControlPlane, tmp_path: Path
) -> None:
    issued = await web.issue("viewer")
    assert issued["user"] == "boatyard:viewer-of-acme"
    assert issued["groups"] == ["boatyard:viewers", "boatyard:issued-by:viewer-of-acme"]
    client = await as_bearer(issued)
    try:
        for _ in range(100):  # the role `view` is filled by a controller when a cluster is new
            try:
                await client.list(NAMESPACES)
                break
            except Refused:
                await asyncio.sleep(0.1)
        assert (await client.list(NAMESPACES)).items
        with pytest.raises(Refused):
            await client.create(NAMESPACES, {"metadata": {"name": "of-a-viewer"}})
        with pytest.raises(Refused):
            await client.list(SECRETS)
        with pytest.raises(Refused):
            await client.list(CSRS)
    finally:
        await client.close()
    for role in ("member", "admin", "operator"):
        issued = await web.issue(role, user="bob")
        client = await as_bearer(issued)
        await client.list(SECRETS)
        await client.close()


async def test_strangers_are_told_that_there_is_no_such_cluster(web: Web) -> None:
    for role in ("viewer", "member", "admin"):
        stranger = web.who(role, "globex")
        failed = await stranger.refused(ACCESS, "Issue", cluster=web.id, user="bob")
        assert failed.code == "NOT_FOUND"
    assert await web.events() == []


async def test_a_binding_that_was_changed_is_corrected(web: Web, admin: KubeClient) -> None:
    await web.issue(user="bob")
    nobody = {"subjects": []}
    await admin.merge_patch(CLUSTER_ROLE_BINDINGS, "boatyard:admins", nobody)
    client = await as_bearer(await web.issue(user="bob"))
    await client.list(SECRETS)
    await client.close()
    await admin.delete(CLUSTER_ROLE_BINDINGS, "boatyard:admins")
    client = await as_bearer(await web.issue(user="bob"))
    await client.list(SECRETS)
    await client.close()


async def test_a_certificate_of_the_past_is_worth_nothing(signing: ControlPlane) -> None:
    """What the bearer of one sees when its time is over."""
    certificate, key = signing.ca.issue(
        "boatyard:bob", groups=["boatyard:admins"], days=-0.001, began=1
    )
    over = signing.kubeconfig()
    user = over["users"][0]["user"]
    user["client-certificate-data"], user["client-key-data"] = (
        b64encode(part).decode() for part in (certificate, key)
    )
    client = KubeClient(read_kubeconfig(over), timeout=30)
    with pytest.raises(Refused):
        await client.list(NAMESPACES)
    await client.close()


async def test_many_at_once_get_one_each(web: Web, admin: KubeClient) -> None:
    issued = await asyncio.gather(*(web.issue(user=f"user-{n}") for n in range(8)))
    assert {one["user"] for one in issued} == {f"boatyard:user-{n}" for n in range(8)}
    assert (await admin.list(CSRS)).items == []
    assert len(await web.events()) == 16


async def test_a_frozen_cluster_is_told_in_time(
    web: Web, signing: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ISSUE_SECONDS", 1.0)
    signing.signal("kube-apiserver", signal.SIGSTOP)
    try:
        async with asyncio.timeout(10):
            failed = await web.who("member").refused(ACCESS, "Issue", cluster=web.id, user="bob")
    finally:
        signing.signal("kube-apiserver", signal.SIGCONT)
    assert (failed.code, await web.events()) == ("UNAVAILABLE", [])
    assert "does not answer" in failed.message


async def test_without_a_signer_it_ends_and_only_the_asking_is_on_record(
    web: Web, signing: ControlPlane, admin: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ISSUE_SECONDS", 1.0)
    with signing.without("kube-controller-manager"):
        failed = await web.who("member").refused(ACCESS, "Issue", cluster=web.id, user="bob")
    assert failed.code == "UNAVAILABLE"
    assert len(await web.events()) == 1
    assert (await admin.list(CSRS)).items == []


async def test_from_the_command_line_into_ones_kubeconfig(
    web: Web, signing: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump(signing.kubeconfig()))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "KUBECONFIG": str(config),
        "BOATYARD_ADDRESS": f"127.0.0.1:{web.environment.server.grpc_port}",
        "BOATYARD_TOKEN": web.environment.token("member"),
    }

    async def boatyard(*words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "boatyard.app.main", "kubeconfig", web.id, *words),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        return said.decode()

    assert "PRIVATE" not in await boatyard("--for", "bob", "--ttl", "10m", "--context", "bob")
    await boatyard("--context", "admin", "--switch")
    who = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert await kubectl(signing, config, "--context=bob", *who) == (0, "boatyard:bob")
    assert await kubectl(signing, config, *who) == (0, "admin")
    assert await kubectl(signing, config, "--context=test", *who) == (0, "admin")

    # kubectl writes the file anew by its own lights: what is ours must be known afterwards.
    words = ("config", "set-context", "bob", "--namespace=default")
    assert (await kubectl(signing, config, *words))[0] == 0
    await boatyard("--remove")
    assert (await kubectl(signing, config, "config", "get-contexts", "-o", "name")) == (0, "test\n")
    left = yaml.safe_load(config.read_text())
    assert [one["name"] for one in left["users"]] == ["test"]
