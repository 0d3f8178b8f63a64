"""The gRPC door beyond the calls: health, reflection, TLS, what is not served, who listens where."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from boatyard.api.authentication import TokenIssuer
from boatyard.api.server import ApiServer, Tls
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.errors import Refused, Unavailable
from boatyard.pki.selfsigned import ensure_self_signed
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Failed, Grpc, running

together = pytest.mark.asyncio(loop_scope="module")


@together
async def test_health_needs_no_token(environment: ApiEnvironment) -> None:
    health = health_pb2_grpc.HealthStub(environment.channel)
    for name in ("", f"{PUBLIC}.Clusters"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
@together
async def test_reflection_serves_every_file_a_client_needs(
    environment: ApiEnvironment, version: str
) -> None:
    services = await _reflect(environment, version, list_services="")
    names = {service.name for service in services.list_services_response.service}
    assert {f"{PUBLIC}.Clusters", f"{PRIVATE}.Hubs", "boatyard.v1.Orders"} <= names
    assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= names
    ours = [name for name in names if name.startswith("boatyard.v1.")]
    assert len(names) == 34 + 36 + len(ours) + 3
    for name in names:
        answer = await _reflect(environment, version, file_containing_symbol=name)
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(data)
            for data in answer.file_descriptor_response.file_descriptor_proto
        ]
        served = {file.name for file in files}
        assert all(needed in served for file in files for needed in file.dependency)
    unknown = await _reflect(environment, version, file_containing_symbol="no.such.Name")
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def _reflect(environment: ApiEnvironment, version: str, **asked: str) -> Any:
    call = environment.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    async for answer in call(iter([reflection_pb2.ServerReflectionRequest(**asked)])):
        return answer
    raise AssertionError("no answer")


@together
async def test_the_rest_of_the_contract_is_unimplemented(environment: ApiEnvironment) -> None:
    for service, rpc in (
        (f"{PUBLIC}.VirtualNetworks", "List"),
        (f"{PUBLIC}.Tenants", "Create"),
        (f"{PUBLIC}.Tenants", "Update"),
        (f"{PUBLIC}.Tenants", "Delete"),
        (f"{PRIVATE}.NetworkClasses", "Signal"),
        (f"{PUBLIC}.Clusters", "NoSuchCall"),
        ("no.such.Service", "Get"),
    ):
        with pytest.raises(Failed) as failed:
            await environment.grpc.raw(service, rpc, b"", token=environment.token("operator"))
        assert failed.value.code == "UNIMPLEMENTED"


@together
async def test_capabilities_name_no_issuer(environment: ApiEnvironment) -> None:
    """So that the contract's command line asks nobody for a token."""
    assert await environment.grpc.call(f"{PUBLIC}.Capabilities", "Get", {}) == {"authn": {}}
    with pytest.raises(Failed) as failed:
        await environment.grpc.call(f"{PRIVATE}.Capabilities", "Get", {})
    assert failed.value.code == "UNAUTHENTICATED"


@together
async def test_a_bug_is_answered_by_an_id_and_logged_once(
    environment: ApiEnvironment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("the secret reason")

    monkeypatch.setattr(environment.ledger.documents, "get", broken)
    for door in (environment.grpc, environment.rest):
        caplog.clear()
        with pytest.raises(Failed) as failed:
            await door.call(
                f"{PUBLIC}.Clusters", "Get", {"id": "x"}, token=environment.token("viewer")
            )
        assert failed.value.code == "INTERNAL"
        assert "secret reason" not in failed.value.message
        id = failed.value.message.removeprefix("internal error ")
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [record.error_id for record in errors] == [id]  # type: ignore[attr-defined]


async def test_tls(ledger: Ledger, issuer: TokenIssuer, tmp_path: Path) -> None:
    pair = ensure_self_signed(tmp_path, ["127.0.0.1"], now=ledger.clock.now())
    server = ApiServer(ledger, issuer)
    await server.start("127.0.0.1:0", "127.0.0.1:0", Tls(pair.certificate, pair.key))
    try:
        roots = grpc.ssl_channel_credentials(pair.certificate.read_bytes())
        address = f"127.0.0.1:{server.grpc_port}"
        async with grpc.aio.secure_channel(address, roots) as channel:
            await Grpc(channel).call(f"{PUBLIC}.Capabilities", "Get", {})
        trust = ssl.create_default_context(cafile=str(pair.certificate))
        async with httpx.AsyncClient(verify=trust, trust_env=False) as client:
            response = await client.get(f"https://127.0.0.1:{server.rest_port}/healthz")
            assert response.status_code == 200
    finally:
        await server.stop(grace=0)


async def test_anonymous_callers_are_operators_on_loopback_only(
    ledger: Ledger, issuer: TokenIssuer
) -> None:
    async with running(ledger, issuer, anonymous=True) as environment:
        for door in (environment.grpc, environment.rest):
            assert (await door.call(f"{PRIVATE}.Tenants", "List", {}))["total"] == 2
    for grpc_address, rest_address in (("0.0.0.0:0", None), (None, "0.0.0.0:0"), ("[::]:0", None)):
        server = ApiServer(ledger, issuer, anonymous=True)
        with pytest.raises(Refused, match="loopback"):
            await server.start(grpc_address, rest_address)


async def test_a_port_in_use_is_told_in_one_sentence(ledger: Ledger, issuer: TokenIssuer) -> None:
    async with running(ledger, issuer) as environment:
        for addresses in (
            (f"127.0.0.1:{environment.server.grpc_port}", None),
            (None, f"127.0.0.1:{environment.server.rest_port}"),
        ):
            server = ApiServer(ledger, issuer)
            with pytest.raises(Unavailable, match="cannot listen on"):
                await server.start(*addresses)
            await server.stop(grace=0)


def test_every_message_of_a_served_call_can_be_made() -> None:
    for service in wire.services().values():
        for method in service.methods:
            assert wire.message(method.input_type.full_name)
            assert wire.message(method.output_type.full_name)
