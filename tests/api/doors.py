"""A running API, and both of its doors behind one way of calling. For the suites in this folder."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

import grpc
import httpx
from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2, status_pb2

from boatyard.api.authentication import TokenIssuer
from boatyard.api.server import ApiServer
from boatyard.ledger.ledger import Ledger
from boatyard.model import wire
from boatyard.model.caller import CallerRole
from boatyard.model.generated.rest import ROUTES

PUBLIC, PRIVATE, OURS = "osac.public.v1", "osac.private.v1", "boatyard.v1"
_BINDINGS = {(route.service, route.rpc): route for route in ROUTES}


class Failed(Exception):
    """A call that was answered by another code than OK."""

    def __init__(self, code: str, message: str, violations: Mapping[str, str]) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.violations = violations


class Door(Protocol):
    name: str

    async def call(
        self, service: str, rpc: str, body: Mapping[str, Any], *, token: str = "", **more: str
    ) -> Any:
        """The answer as REST shows it; Failed for any code but OK."""


class Grpc:
    """Calls by gRPC; bodies and answers are JSON as REST has them."""

    name = "grpc"

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def call(
        self, service: str, rpc: str, body: Mapping[str, Any], *, token: str = "", **more: str
    ) -> Any:
        method = wire.services()[service].methods_by_name[rpc]
        rest = {key: value for key, value in body.items() if key != "update_mask"}
        request: Any = json_format.ParseDict(rest, wire.message(method.input_type.full_name)())
        if mask := body.get("update_mask"):
            request.update_mask.paths.extend([mask] if isinstance(mask, str) else mask)
        data = await self.raw(service, rpc, request.SerializeToString(), token=token, **more)
        response = wire.message(method.output_type.full_name).FromString(data)
        if method.output_type.full_name == "google.api.HttpBody":
            return response.data.decode()  # type: ignore[attr-defined]
        shown = json_format.MessageToDict(response, preserving_proto_field_name=True)
        binding = _BINDINGS.get((service, rpc))
        if binding is not None and binding.response_body:
            return shown.get(binding.response_body, {})
        return shown

    async def open(
        self, service: str, rpc: str, body: Mapping[str, Any], *, token: str = ""
    ) -> None:
        """Opens a stream and waits for its first message or its end; Failed for any code but OK."""
        method = wire.services()[service].methods_by_name[rpc]
        request = json_format.ParseDict({**body}, wire.message(method.input_type.full_name)())
        metadata = [("authorization", f"Bearer {token}")] if token else []
        call = self._channel.unary_stream(f"/{service}/{rpc}")(
            request.SerializeToString(), metadata=metadata, timeout=20
        )
        try:
            await call.read()
        except grpc.aio.AioRpcError as error:
            raise failed(error) from error
        finally:
            call.cancel()

    async def raw(
        self, service: str, rpc: str, data: bytes, *, token: str = "", **more: str
    ) -> bytes:
        metadata = [(key.replace("_", "-"), value) for key, value in more.items()]
        if token:
            metadata.append(("authorization", f"Bearer {token}"))
        call = self._channel.unary_unary(f"/{service}/{rpc}")
        try:
            answer: bytes = await call(data, metadata=metadata, timeout=20)
        except grpc.aio.AioRpcError as error:
            raise failed(error) from error
        return answer


class Rest:
    """Calls by REST; a call without a binding is not there."""

    name = "rest"

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def call(
        self, service: str, rpc: str, body: Mapping[str, Any], *, token: str = "", **more: str
    ) -> Any:
        binding = _BINDINGS[service, rpc]
        rest = {**body}
        path = binding.path
        for name in ("id", "cluster", "hub", "template", "role", "order", "object.id"):
            if "{" + name + "}" in path:
                value = rest["object"]["id"] if name == "object.id" else rest.pop(name)
                path = path.replace("{" + name + "}", value)
        sent = rest if binding.body == "*" else rest.pop(binding.body, None)
        if binding.body == "*":
            rest = {}
        if isinstance(mask := rest.get("update_mask"), list):
            rest["update_mask"] = ",".join(mask)
        headers = {key.replace("_", "-"): value for key, value in more.items()}
        if token:
            headers["authorization"] = f"Bearer {token}"
        query = {
            key: str(value).lower() if isinstance(value, bool) else value
            for key, value in rest.items()
        }
        response = await self._client.request(
            binding.method, path, params=query, json=sent if binding.body else None, headers=headers
        )
        return answered(response)


def answered(response: httpx.Response) -> Any:
    if response.status_code == 200:
        if response.headers["content-type"].startswith("application/json"):
            return response.json()
        return response.text
    status = response.json()
    violations = {
        violation["field"]: violation["description"]
        for detail in status.get("details", [])
        for violation in detail.get("field_violations", [])
        if "field" in violation
    }
    raise Failed(code_pb2.Code.Name(status["code"]), status["message"], violations)


def failed(error: grpc.aio.AioRpcError) -> Failed:
    violations = {}
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                bad = error_details_pb2.BadRequest()
                if detail.Unpack(bad):
                    violations |= {v.field: v.description for v in bad.field_violations}
    return Failed(error.code().name, error.details() or "", violations)


@dataclass
class ApiEnvironment:
    """A running server, its tokens, and ways to call it."""

    server: ApiServer
    issuer: TokenIssuer
    ledger: Ledger
    grpc: Grpc
    rest: Rest
    channel: grpc.aio.Channel
    client: httpx.AsyncClient
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict)

    def token(self, role: str, tenant: str = "acme") -> str:
        key = (role, tenant)
        if key not in self._tokens:
            self._tokens[key] = self.issuer.create_token(
                tenant="" if role == "operator" else tenant,
                user=f"{role}-of-{tenant}",
                role=CallerRole(role),
                ttl=timedelta(hours=1),
                now=self.ledger.clock.now(),
            )
        return self._tokens[key]

    def door(self, name: str) -> Door:
        return self.grpc if name == "grpc" else self.rest


@contextlib.asynccontextmanager
async def running(
    ledger: Ledger, issuer: TokenIssuer, **options: Any
) -> AsyncIterator[ApiEnvironment]:
    """A server on free ports with its ledger's tasks, stopped at the end."""
    server = ApiServer(ledger, issuer, **options)
    tasks = asyncio.create_task(ledger.run())
    await server.start("127.0.0.1:0", "127.0.0.1:0")
    base = f"http://127.0.0.1:{server.rest_port}"
    try:
        async with (
            grpc.aio.insecure_channel(
                f"127.0.0.1:{server.grpc_port}", options=[("grpc.max_send_message_length", -1)]
            ) as channel,
            httpx.AsyncClient(base_url=base, timeout=20, trust_env=False) as client,
        ):
            yield ApiEnvironment(
                server=server,
                issuer=issuer,
                ledger=ledger,
                grpc=Grpc(channel),
                rest=Rest(client),
                channel=channel,
                client=client,
            )
    finally:
        await server.stop(grace=0.2)
        tasks.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tasks
