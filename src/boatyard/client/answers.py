"""What a failed call means, as one of the errors of the model. Called for every call that fails."""

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


def understand(error: grpc.aio.AioRpcError, *, address: str) -> BoatyardError:
    """The model's error for a gRPC status, with every field violation it carries."""
    words = error.details() or error.code().name.replace("_", " ").lower()
    match error.code():
        case _Code.UNAUTHENTICATED:
            return Unauthenticated(words)
        case _Code.PERMISSION_DENIED:
            return Denied(words)
        case _Code.NOT_FOUND:
            return NotFound(words)
        case _Code.ALREADY_EXISTS:
            return Exists(words)
        case _Code.ABORTED:
            return Conflict(words)
        case _Code.FAILED_PRECONDITION:
            return Precondition(words, *violations(error))
        case _Code.RESOURCE_EXHAUSTED:
            return Exhausted(words, *violations(error))
        case _Code.INVALID_ARGUMENT | _Code.OUT_OF_RANGE:
            return Refused(words, *violations(error))
        case _Code.UNIMPLEMENTED:
            return Refused(f"the server at {address} does not offer this: {words}")
        case _Code.UNAVAILABLE:
            return Unavailable(_unreachable(address, words))
        case _Code.DEADLINE_EXCEEDED | _Code.CANCELLED:
            return Unavailable(f"{address} did not answer in time", reason="Timeout")
        case _:
            return ServerFault(f"the server failed: {words}")


def _unreachable(address: str, words: str) -> str:
    """Why nobody could be reached, in fewer words than gRPC has for it."""
    if "CERTIFICATE_VERIFY_FAILED" in words or "Peer name" in words:
        return f"the certificate of {address} is not trusted; name the one to trust with --ca-file"
    if "Tls handshake failed" in words:
        return f"{address} does not speak TLS; write http://{address} to go without"
    if "Connection refused" in words:
        return f"nothing answers at {address} (connection refused)"
    return f"nothing answers at {address} ({words})"


def violations(error: grpc.aio.AioRpcError) -> tuple[Violation, ...]:
    """Every field violation in the status, in the server's order."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type] # it reads code, details, trailers
    if status is None:
        return ()
    found: list[Violation] = []
    for detail in status.details:
        request = error_details_pb2.BadRequest()
        if detail.Is(request.DESCRIPTOR) and detail.Unpack(request):
            found.extend(
                Violation(
                    path=one.field,
                    message=one.description,
                    remedy=one.localized_message.message,
                )
                for one in request.field_violations
            )
    return tuple(found)
