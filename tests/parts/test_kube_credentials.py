"""Credentials are renewed when they change, expire or are refused, and are never shown."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import ExecPlugin, KubeConfig
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.kube.transport import Transport
from boatyard.model.errors import Refused, Unavailable
from tests.support.control_plane import Authority
from tests.support.scripted_kube import (
    Says,
    ScriptedKube,
    Watches,
    bookmark,
    failure,
    scripted_kube,
    thing,
    until,
)

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
SECRET = "s3cret-t0ken"
ANSWER = Says(thing("a", 1))


@asynccontextmanager
async def client_of(told: ScriptedKube, **config: Any) -> AsyncIterator[KubeClient]:
    client = KubeClient(KubeConfig(told.url, **config))
    try:
        yield client
    finally:
        await client.close()


async def get(client: KubeClient) -> None:
    await client.get(CONFIG_MAPS, "a", "ns")


def tokens(told: ScriptedKube) -> list[str | None]:
    return [asked.headers.get("Authorization") for asked in told.asked]


def plugin(folder: Path, program: str, **more: Any) -> ExecPlugin:
    """A plugin that counts its runs in a file and then does what the program says."""
    script = folder / "plugin.py"
    runs = folder / "runs"
    runs.touch()
    script.write_text(
        f"import json, os, sys, time\nwith open({str(runs)!r}, 'a') as f: f.write('.')\n"
        f"runs = os.path.getsize({str(runs)!r})\n"
        "def say(version, **status):\n"
        "    print(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))\n"
        f"{program}\n"
    )
    return ExecPlugin(sys.executable, (str(script),), **more)


def runs(folder: Path) -> int:
    return (folder / "runs").stat().st_size


# --- tokens -----------------------------------------------------------------------------------


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    # As Kubernetes mounts it: a link that is made to point at another folder.
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(f"{name}\n")
    (tmp_path / "data").symlink_to("one")
    async with (
        scripted_kube() as told,
        client_of(told, token_file=str(tmp_path / "data/token")) as client,
    ):
        told.tell(*[ANSWER] * 3)
        await get(client)
        await get(client)
        (tmp_path / "next").symlink_to("two")
        os.replace(tmp_path / "next", tmp_path / "data")
        await get(client)

        assert tokens(told) == ["Bearer one", "Bearer one", "Bearer two"]


async def test_a_missing_token_file_is_refused(tmp_path: Path) -> None:
    async with (
        scripted_kube() as told,
        client_of(told, token_file=str(tmp_path / "none")) as client,
    ):
        with pytest.raises(Refused, match="none"):
            await get(client)
        assert told.asked == []


async def test_whose_token_is_refused_and_cannot_be_renewed_is_refused_at_once() -> None:
    async with scripted_kube() as told, client_of(told, token=SECRET) as client:
        told.tell(failure(401, "Unauthorized"), ANSWER)

        with pytest.raises(Refused) as refused:
            await get(client)

        assert refused.value.reason == "Unauthorized"
        assert len(told.asked) == 1


# --- exec plugins -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_is_run_once_while_what_it_printed_is_good(
    tmp_path: Path, version: str
) -> None:
    login = plugin(tmp_path, f"say({version!r}, token=f'{{runs}}')", api_version=version)
    async with scripted_kube() as told, client_of(told, plugin=login) as client:
        told.tell(*[ANSWER] * 5)

        await asyncio.gather(*[get(client) for _ in range(5)])

        assert runs(tmp_path) == 1
        assert set(tokens(told)) == {"Bearer 1"}


async def test_a_plugin_is_run_again_shortly_before_its_token_expires(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    until = now + timedelta(minutes=10)
    expires = until.isoformat().replace("+00:00", "Z")
    login = plugin(tmp_path, f"say({V1!r}, token=f'{{runs}}', expirationTimestamp={expires!r})")
    async with scripted_kube() as told:
        told.tell(*[ANSWER] * 3)
        client = KubeClient(KubeConfig(told.url, plugin=login), now=lambda: now)
        await get(client)
        now += timedelta(minutes=8)
        await get(client)
        now += timedelta(minutes=1, seconds=1)
        await get(client)
        await client.close()

        assert tokens(told) == ["Bearer 1", "Bearer 1", "Bearer 2"]


async def test_after_401_a_plugin_is_run_again_once(tmp_path: Path) -> None:
    login = plugin(tmp_path, f"say({V1!r}, token=f'{{runs}}')")
    async with scripted_kube() as told, client_of(told, plugin=login) as client:
        told.tell(failure(401), ANSWER)
        await get(client)
        assert tokens(told) == ["Bearer 1", "Bearer 2"]

        told.tell(failure(401), failure(401), ANSWER)
        with pytest.raises(Refused):
            await get(client)
        assert runs(tmp_path) == 3


async def test_after_401_a_watch_is_opened_anew(tmp_path: Path) -> None:
    login = plugin(tmp_path, f"say({V1!r}, token=f'{{runs}}')")
    async with scripted_kube() as told, client_of(told, plugin=login) as client:
        told.tell(failure(401), Watches((bookmark(6),)))

        events = [event async for event in client.watch(CONFIG_MAPS, resource_version="5")]

        assert len(events) == 1
        assert tokens(told) == ["Bearer 1", "Bearer 2"]


async def test_of_many_with_the_same_refused_token_one_runs_the_plugin(tmp_path: Path) -> None:
    login = plugin(tmp_path, f"say({V1!r}, token=f'{{runs}}')")
    async with scripted_kube() as told, client_of(told, plugin=login) as client:
        told.tell(*[failure(401)] * 4, *[ANSWER] * 4)

        await asyncio.gather(*[get(client) for _ in range(4)])

        assert runs(tmp_path) == 2


async def test_a_plugin_is_told_about_the_cluster_when_it_wants_to_know(tmp_path: Path) -> None:
    program = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"say({V1!r}, token=info['spec']['cluster']['server'] + os.environ['MORE'])"
    )
    login = plugin(tmp_path, program, provide_cluster=True, env={"MORE": "!"})
    async with scripted_kube() as told, client_of(told, plugin=login) as client:
        told.tell(ANSWER)

        await get(client)

        assert tokens(told) == [f"Bearer {told.url}!"]


@pytest.mark.parametrize(
    "program, kind",
    [
        pytest.param(f"print({SECRET!r})", Refused, id="no JSON"),
        pytest.param(f"print(json.dumps([{SECRET!r}]))", Refused, id="no ExecCredential"),
        pytest.param(f"say({V1BETA1!r}, token={SECRET!r})", Refused, id="another version"),
        pytest.param(f"say({V1!r}, clientKeyData={SECRET!r})", Refused, id="half a certificate"),
        pytest.param(
            f"say({V1!r}, token={SECRET!r}, expirationTimestamp={SECRET!r})", Refused, id="no time"
        ),
        pytest.param(f"sys.exit({SECRET!r})", Unavailable, id="fails"),
        pytest.param(f"print({SECRET!r}, flush=True); time.sleep(60)", Unavailable, id="hangs"),
    ],
)
async def test_a_plugin_that_does_not_work_is_said_without_what_it_printed(
    tmp_path: Path, program: str, kind: type[Exception]
) -> None:
    async with scripted_kube() as told:
        config = KubeConfig(told.url, plugin=plugin(tmp_path, program))
        client = KubeClient(config, plugin_seconds=0.5 if "sleep" in program else 30)

        async with asyncio.timeout(20):
            with pytest.raises(kind) as raised:
                await get(client)
        await client.close()

        seen: BaseException | None = raised.value
        while seen is not None:
            assert SECRET not in repr(seen)
            seen = seen.__cause__


async def test_a_plugin_that_is_not_there_comes_with_its_hint() -> None:
    missing = ExecPlugin("no-such-login", install_hint="Install it with: get-login")
    async with scripted_kube() as told, client_of(told, plugin=missing) as client:
        with pytest.raises(Refused, match="get-login"):
            await get(client)


@pytest.mark.parametrize("then", ["p.wait()", "sys.exit(0)"], ids=["waits", "leaves it behind"])
async def test_a_plugin_that_is_given_up_ends_with_its_children(tmp_path: Path, then: str) -> None:
    program = (
        "import subprocess; p = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid))\n{then}"
    )
    async with scripted_kube() as told:
        config = KubeConfig(told.url, plugin=plugin(tmp_path, program))
        client = KubeClient(config, plugin_seconds=1)
        with pytest.raises(Unavailable):
            await get(client)
        await client.close()

    await until(lambda: not runs_now(int((tmp_path / "pid").read_text())))


def runs_now(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().split()[2] not in "ZX"


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours() -> Authority:
    return Authority("ours")


@asynccontextmanager
async def answered_by_tls(
    tmp_path: Path, ours: Authority, *names: str, mutual: bool = False
) -> AsyncIterator[ScriptedKube]:
    certificate, key = ours.issue("api", names=names)
    pair = tmp_path / "server.pem"
    pair.write_bytes(certificate + key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair)
    if mutual:
        tls.load_verify_locations(cadata=ours.pem.decode())
        tls.verify_mode = ssl.CERT_REQUIRED
    async with scripted_kube(tls) as told:
        told.tell(*[ANSWER] * 5)
        yield told


async def test_a_server_is_trusted_by_the_kubeconfigs_authority_alone(
    tmp_path: Path, ours: Authority
) -> None:
    async with answered_by_tls(tmp_path, ours, "127.0.0.1") as told:
        async with client_of(told, ca=ours.pem) as client:
            await get(client)
        for other in (Authority("theirs").pem, b""):
            async with client_of(told, ca=other) as client:
                with pytest.raises(Unavailable) as raised:
                    await get(client)
                assert raised.value.reason == "CertificateNotTrusted"
        async with client_of(told, insecure=True) as client:
            await get(client)
        assert len(told.asked) == 2


async def test_the_name_in_the_certificate_must_fit_or_be_named(
    tmp_path: Path, ours: Authority
) -> None:
    async with answered_by_tls(tmp_path, ours, "api.example") as told:
        async with client_of(told, ca=ours.pem) as client:
            with pytest.raises(Unavailable, match="not trusted"):
                await get(client)
        async with client_of(told, ca=ours.pem, tls_server_name="api.example") as client:
            await get(client)


@pytest.mark.parametrize("way", ["inline", "files", "one file", "plugin"])
async def test_a_client_certificate_is_shown(tmp_path: Path, ours: Authority, way: str) -> None:
    certificate, key = ours.issue("me")
    (tmp_path / "me.crt").write_bytes(certificate)
    (tmp_path / "me.key").write_bytes(key)
    (tmp_path / "me.pem").write_bytes(certificate + key)
    printed = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    config: dict[str, Any] = {
        "inline": {"certificate": certificate, "key": key},
        "files": {"certificate_file": f"{tmp_path}/me.crt", "key_file": f"{tmp_path}/me.key"},
        "one file": {"certificate_file": f"{tmp_path}/me.pem", "key_file": f"{tmp_path}/me.pem"},
        "plugin": {"plugin": plugin(tmp_path, f"say({V1!r}, **{printed!r})")},
    }[way]
    async with answered_by_tls(tmp_path, ours, "127.0.0.1", mutual=True) as told:
        async with client_of(told, ca=ours.pem, **config) as client:
            await get(client)
            await get(client)
        async with client_of(told, ca=ours.pem) as client:
            with pytest.raises(Unavailable):
                await get(client)
        assert len(told.asked) == 2


async def test_a_renewed_certificate_file_is_used_for_new_connections(
    tmp_path: Path, ours: Authority
) -> None:
    paths = {"certificate_file": tmp_path / "me.crt", "key_file": tmp_path / "me.key"}
    for path, content in zip(paths.values(), Authority("theirs").issue("me"), strict=True):
        path.write_bytes(content)
    config = {name: str(path) for name, path in paths.items()}
    async with (
        answered_by_tls(tmp_path, ours, "127.0.0.1", mutual=True) as told,
        client_of(told, ca=ours.pem, **config) as client,
    ):
        with pytest.raises(Unavailable):
            await get(client)
        for path, content in zip(paths.values(), ours.issue("me"), strict=True):
            path.write_bytes(content)
        await get(client)


async def test_a_renewed_token_opens_no_new_connection(tmp_path: Path, ours: Authority) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    async with (
        answered_by_tls(tmp_path, ours, "127.0.0.1") as told,
        client_of(told, ca=ours.pem, token_file=str(token)) as client,
    ):
        await get(client)
        token.write_text("another")
        await get(client)

        assert tokens(told) == ["Bearer one", "Bearer another"]
        assert len({asked.connection for asked in told.asked}) == 1


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"ca": b"no certificate"}, id="CA"),
        pytest.param({"certificate": b"none", "key": SECRET.encode()}, id="client certificate"),
    ],
)
async def test_certificates_that_are_none_are_refused(config: dict[str, bytes]) -> None:
    client = KubeClient(KubeConfig("https://127.0.0.1:1", **config))  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        await get(client)
    assert SECRET not in repr(refused.value)
    await client.close()


# --- never shown ------------------------------------------------------------------------------


async def test_nothing_secret_is_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted_kube() as told, client_of(told, token=SECRET) as client:
        told.tell(failure(403, "Forbidden", "no"), failure(500), Says(b"{"))
        for _ in range(3):
            with pytest.raises((Refused, Unavailable)) as raised:
                await get(client)
            assert SECRET not in repr(raised.value)
        assert told.asked[0].headers["Authorization"] == f"Bearer {SECRET}"
        transport: Transport = client._transport
        shown = (client, client.config, transport, await transport._credentials.get_credential())
        assert SECRET not in repr([*shown, replace(client.config, namespace="x")])
    assert SECRET not in caplog.text
