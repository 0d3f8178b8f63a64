"""Translates gRPC errors to errors of the model. Called for every failed call."""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from boatyard.model.errors import (
    BoatyardError,
    Conflict,
    Denied,
    Exhausted,
    Exists,
    NotFound,
    Precondition,
    Refused,
    Unauthenticated,
    Unavailable,
    Violation,
)

_Code = grpc.StatusCode


class ServerFault(BoatyardError):
    """The server itself failed; its answer carries an id to look for in its log."""


def to_model_error(error: grpc.aio.AioRpcError, *, address: str) -> BoatyardError:
    """The model's error for a gRPC status, with every field violation it carries."""
    message = error.details() or error.code().name.replace("_", " ").lower()
    match error.code():
        case _Code.UNAUTHENTICATED:
            return Unauthenticated(message)
        case _Code.PERMISSION_DENIED:
            return Denied(message)
        case _Code.NOT_FOUND:
            return NotFound(message)
        case _Code.ALREADY_EXISTS:
            return Exists(message)
        case _Code.ABORTED:
            return Conflict(message)
        case _Code.FAILED_PRECONDITION:
            return Precondition(message, *list_violations(error))
        case _Code.RESOURCE_EXHAUSTED:
            return Exhausted(message, *list_violations(error))
        case _Code.INVALID_ARGUMENT | _Code.OUT_OF_RANGE:
            return Refused(message, *list_violations(error))
        case _Code.UNIMPLEMENTED:
            return Refused(f"the server at {address} does not offer this: {message}")
        case _Code.UNAVAILABLE:
            return Unavailable(_describe_unreachable(address, message))
        case _Code.DEADLINE_EXCEEDED | _Code.CANCELLED:
            return Unavailable(f"{address} did not answer in time", reason="Timeout")
        case _:
            return ServerFault(f"the server failed: {message}")


def _describe_unreachable(address: str, details: str) -> str:
    """A short message for a failed connection, from gRPC's long one."""
    if "CERTIFICATE_VERIFY_FAILED" in details or "Peer name" in details:
        return f"the certificate of {address} is not trusted; name the one to trust with --ca-file"
    if "Tls handshake failed" in details:
        return f"{address} does not speak TLS; write http://{address} to go without"
    if "Connection refused" in details:
        return f"nothing answers at {address} (connection refused)"
    return f"nothing answers at {address} ({details})"


def list_violations(error: grpc.aio.AioRpcError) -> tuple[Violation, ...]:
    """Every field violation in the status, in the server's order."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type] # it reads code, details, trailers
    if status is None:
        return ()
    field_violations: list[Violation] = []
    for detail in status.details:
        request = error_details_pb2.BadRequest()
        if detail.Is(request.DESCRIPTOR) and detail.Unpack(request):
            field_violations.extend(
                Violation(
                    path=violation.field,
                    message=violation.description,
                    remedy=violation.localized_message.message,
                )
                for violation in request.field_violations
            )
    return tuple(field_violations)
