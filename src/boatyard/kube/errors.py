"""Turns responses of the API server into errors of `model.errors`. Called by the client and by watches."""

from __future__ import annotations

from typing import Any

import msgspec

from boatyard.model.errors import (
    BoatyardError,
    Conflict,
    Exists,
    NotFound,
    Refused,
    Unavailable,
    Violation,
)

_NAMESPACE_TERMINATING = "NamespaceTerminating"
_UNKNOWN_FIELD = "field not declared in schema"
_LONGEST_TEXT = 800  # characters of the server's message that are passed on


class Expired(Conflict):
    """The server no longer has the requested resourceVersion or page: list again."""


def parse_status(body: bytes) -> dict[str, Any]:
    """The Status object in the body of a failed response; empty when the body is something else."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) and decoded.get("kind") == "Status" else {}


def to_order_error(error: Refused) -> BoatyardError:
    """The error to report on an order when a hub refuses a request that we made for it.

    Missing rights or bad credentials of our own are Unavailable: the operator of the hub can fix them, the author
    of the order cannot. Every other refusal is returned unchanged.
    """
    if error.reason in ("Unauthorized", "Forbidden"):
        return Unavailable(str(error), reason=error.reason)
    return error


def is_disruption_budget(status: dict[str, Any]) -> bool:
    """Whether a 429 is due to a disruption budget and not to a busy server."""
    return any(cause.get("reason") == "DisruptionBudget" for cause in _list_causes(status))


def make_error(code: int, status: dict[str, Any], *, operation: str, secret: bool) -> BoatyardError:
    """The error for a response with this code. `operation` says what was attempted, without any secret.

    With `secret`, the server's message about the contents is left out: it may quote them.
    """
    reason = str(status.get("reason") or "")
    text = _error_text(code, status, secret=secret)
    message = f"{operation}: {text}"
    match code:
        case 404:
            return NotFound(message)
        case 409:
            return Exists(message) if reason == "AlreadyExists" else Conflict(message)
        case 410:
            return Expired(message)
        case 401:
            return Refused(message, reason="Unauthorized")
        case 408 | 429:
            return Unavailable(message, reason=reason or "Unavailable")
    if reason in ("Expired", "Gone"):
        return Expired(message)
    if any(cause.get("reason") == _NAMESPACE_TERMINATING for cause in _list_causes(status)):
        # Temporary: once the namespace is gone, it can be created again.
        return Unavailable(message, reason=_NAMESPACE_TERMINATING)
    if 400 <= code < 500:
        violations = () if secret else _list_violations(status)
        return Refused(message, *violations, reason=reason or "Refused")
    if _UNKNOWN_FIELD in text:
        # The server answers 500 to an apply with a field that the kind does not have, as if it were its own fault.
        return Refused(message, reason="UnknownField")
    return Unavailable(message, reason=reason or "Unavailable")


def _error_text(code: int, status: dict[str, Any], *, secret: bool) -> str:
    if secret and code in (400, 422):
        fields = [str(cause["field"]) for cause in _list_causes(status) if cause.get("field")]
        place = f" ({', '.join(fields)})" if fields else ""
        return f"the API server refuses its contents{place}"
    message = str(status.get("message") or f"the API server answered {code}")
    return message if len(message) <= _LONGEST_TEXT else f"{message[:_LONGEST_TEXT]}…"


def _list_causes(status: dict[str, Any]) -> list[dict[str, Any]]:
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes or () if isinstance(cause, dict)]


def _list_violations(status: dict[str, Any]) -> tuple[Violation, ...]:
    return tuple(
        Violation(str(cause.get("field") or ""), str(cause.get("message") or "")[:_LONGEST_TEXT])
        for cause in _list_causes(status)
    )
