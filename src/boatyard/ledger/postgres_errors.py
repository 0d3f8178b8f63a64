"""Translates errors of PostgreSQL and asyncpg to errors of the model. Called after every failed statement."""

from __future__ import annotations

from typing import Any

import asyncpg
import msgspec

from boatyard.ledger.records import DuplicateDocument
from boatyard.model.errors import (
    BoatyardError,
    Conflict,
    Exhausted,
    LeaseLost,
    NotFound,
    Precondition,
    Refused,
    Unavailable,
)

# Rolled back completely, because of concurrent transactions: safe to run again.
RETRYABLE_ERRORS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
# The connection is lost or was never open. The statement may have been committed.
CONNECTION_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has closed the connection, and asyncpg has not noticed yet
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,  # its disk or its files
    # The address was good when the ledger was opened: the role or the database is being recreated.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)


def translate_error(error: Exception, doing: str) -> BoatyardError:
    """Returns the model's error for an error of PostgreSQL or the connection; raises any other error again."""
    if isinstance(error, asyncpg.DataError) or _is_bad_argument(error):
        return Refused(f"cannot be stored while {doing}: {_first_line(error)}")
    if isinstance(error, asyncpg.ProgramLimitExceededError):
        return Refused(f"too long to be stored while {doing}: {_first_line(error)}")
    if isinstance(error, CONNECTION_ERRORS):
        return Unavailable(f"PostgreSQL did not answer while {doing}: {_first_line(error)}")
    if isinstance(error, RETRYABLE_ERRORS):
        return Conflict(f"others kept changing the same while {doing}")
    if isinstance(error, asyncpg.UniqueViolationError):
        return _unique_violation(error)
    make_error = _ERRORS_BY_SQLSTATE.get(getattr(error, "sqlstate", None) or "")
    if make_error is not None:
        return make_error(msgspec.json.decode(getattr(error, "detail", None) or "{}"))
    raise error


def _is_bad_argument(error: Exception) -> bool:
    """Whether asyncpg could not encode an argument, such as a lone surrogate."""
    return isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _unique_violation(error: asyncpg.UniqueViolationError) -> BoatyardError:
    if error.constraint_name == "documents_name":
        return DuplicateDocument("the name is taken", field="name")
    return Conflict(f"taken by somebody else: {error.detail}")


def _taken_error(detail: dict[str, Any]) -> BoatyardError:
    field = detail["field"]
    return DuplicateDocument(
        f"{detail['kind']} with {field} {detail[field]!r} already exists", field=field
    )


def _conflict_error(detail: dict[str, Any]) -> BoatyardError:
    return Conflict(
        f"{detail['kind']} {detail['id']!r} has been modified: "
        f"read at version {detail['read']}, now at version {detail['stored']}"
    )


def _not_found_error(detail: dict[str, Any]) -> BoatyardError:
    return NotFound(f"{detail['kind']} {detail['id']!r} does not exist")


def _lease_lost_error(detail: dict[str, Any]) -> BoatyardError:
    return LeaseLost(f"the lease of {detail['kind']} {detail['id']!r} has passed to another")


def _exhausted_error(detail: dict[str, Any]) -> BoatyardError:
    return Exhausted(
        f"{detail['pool']}: {detail['amount']} wanted, {detail['used']} of {detail['capacity']} are taken"
    )


def _reference_error(detail: dict[str, Any]) -> BoatyardError:
    state = "is being deleted" if detail["deleting"] else "does not exist"
    return Precondition(f"{detail['kind']} {detail['id']!r} {state}")


def _in_use_error(detail: dict[str, Any]) -> BoatyardError:
    return Precondition(
        f"{detail['kind']} {detail['id']!r} is in use by {detail['by_kind']} {detail['by_id']!r}"
    )


_ERRORS_BY_SQLSTATE = {
    "BY001": _taken_error,
    "BY002": _conflict_error,
    "BY003": _not_found_error,
    "BY004": _lease_lost_error,
    "BY005": _exhausted_error,
    "BY006": _reference_error,
    "BY007": _in_use_error,
}
