"""Maps errors to gRPC and HTTP status codes. Called by both servers; only here is an unexpected error swallowed."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from boatyard.ledger.postgres_errors import CONNECTION_ERRORS
from boatyard.model import errors
from boatyard.model.errors import Violation

logger = logging.getLogger(__name__)

# gRPC sends both in headers, of which clients accept 8 KiB; other characters than ASCII take three times the room.
LONGEST_MESSAGE = 1000
LONGEST_DETAILS = 2500
LONGEST_PATH = 200
MOST_VIOLATIONS = 50

# The first class that fits counts, so the narrower ones come first.
_GRPC_CODES: Sequence[tuple[type[BaseException], grpc.StatusCode]] = (
    (errors.Precondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.Exhausted, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.Refused, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.Unavailable, grpc.StatusCode.UNAVAILABLE),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.Exists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.Conflict, grpc.StatusCode.ABORTED),
    (errors.Denied, grpc.StatusCode.PERMISSION_DENIED),
    (errors.Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
)

HTTP_STATUS_CODES: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNKNOWN: 500,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class Unimplemented(errors.BoatyardError):
    """The method is part of the contract, but this server does not implement it."""


class SlowWatcher(errors.BoatyardError):
    """A watcher was disconnected because it did not keep up; it may resume after the last event it has read."""


@dataclass(frozen=True)
class Failure:
    """A failed call, in the form that the gRPC and the REST server answer."""

    code: grpc.StatusCode
    message: str
    violations: tuple[Violation, ...] = ()

    @property
    def http_status(self) -> int:
        return HTTP_STATUS_CODES[self.code]

    def status(self) -> status_pb2.Status:
        status = status_pb2.Status(code=_code_number(self.code), message=self.message)
        if self.violations:
            details = error_details_pb2.BadRequest()
            for violation in self.violations:
                description = str(Violation("", violation.message, violation.remedy))
                details.field_violations.add(
                    field=_shorten_text(violation.path, LONGEST_PATH),
                    description=_shorten_text(description, LONGEST_DETAILS // 2),
                )
                if details.ByteSize() > LONGEST_DETAILS:
                    break
            packed = any_pb2.Any()
            packed.Pack(details)
            status.details.append(packed)
        return status


def make_failure(error: BaseException, *, call: str) -> Failure:
    """Returns the answer to a failed call. An unexpected error is logged once, with an id that the answer contains."""
    if isinstance(error, Unimplemented):
        return Failure(grpc.StatusCode.UNIMPLEMENTED, str(error))
    if isinstance(error, SlowWatcher):
        return Failure(grpc.StatusCode.ABORTED, str(error))
    if isinstance(error, errors.Unavailable) and isinstance(error.__cause__, CONNECTION_ERRORS):
        # Not in the answer: the connection's error names the provider's machines and files.
        logger.warning("database not reachable", extra={"call": call, "why": str(error)})
        return Failure(grpc.StatusCode.UNAVAILABLE, "the database does not answer; try again")
    for kind, code in _GRPC_CODES:
        if isinstance(error, kind):
            violations = tuple(getattr(error, "violations", ()))[:MOST_VIOLATIONS]
            return Failure(code, _shorten_text(str(error), LONGEST_MESSAGE), violations)
    id = os.urandom(6).hex()
    logger.error(
        "call failed with an internal error", exc_info=error, extra={"call": call, "error_id": id}
    )
    return Failure(grpc.StatusCode.INTERNAL, f"internal error {id}")


def _code_number(code: grpc.StatusCode) -> int:
    number: int = code_pb2.Code.Value(code.name)
    return number


def _shorten_text(text: str, longest: int) -> str:
    """The text, cut to `longest` bytes, and without control characters, which could move a terminal's cursor."""
    printable = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text[:longest]
    )
    cut = printable.encode()[:longest].decode(errors="ignore")
    return cut if cut == text else f"{cut}…" if len(text) > len(cut) else cut
