"""The settings of a hub whose runs are carried out by Event-Driven Ansible. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from boatyard.model.errors import Refused, Violation

URL = "eda.url"
CALLBACK_URL = "eda.callback-url"
SECRET = "eda.secret"
PER_SECOND = "eda.per-second"
RESEND_SECONDS = "eda.resend-seconds"

_DEFAULT_PER_SECOND = 2.0
_DEFAULT_RESEND_SECONDS = 300.0
_SHORTEST_RESEND = 1.0


@dataclass(frozen=True)
class EdaSettings:
    url: str  # where events are posted; the name of the action is appended
    callback_url: str  # the operator's callback server, as playbooks reach it
    secret: str = ""  # name of a Secret in the system namespace: `token`, `ca.crt`
    per_second: float = _DEFAULT_PER_SECOND
    resend_seconds: float = _DEFAULT_RESEND_SECONDS


def read_settings(settings: Mapping[str, str]) -> EdaSettings:
    """The typed settings. Refused with everything that is wrong."""
    problems: list[Violation] = []
    for name in (URL, CALLBACK_URL):
        problems += _check_address(name, settings.get(name, ""))
    per_second = _parse_number(settings, PER_SECOND, _DEFAULT_PER_SECOND, 0.01, problems)
    resend = _parse_number(
        settings, RESEND_SECONDS, _DEFAULT_RESEND_SECONDS, _SHORTEST_RESEND, problems
    )
    if problems:
        raise Refused("", *problems, reason="BadSettings")
    return EdaSettings(
        url=settings[URL].rstrip("/"),
        callback_url=settings[CALLBACK_URL].rstrip("/"),
        secret=settings.get(SECRET, ""),
        per_second=per_second,
        resend_seconds=resend,
    )


def _check_address(name: str, text: str) -> list[Violation]:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid, parts = False, urlsplit("")
    if not is_valid:
        problem = f"{text!r} is no address" if text else "is not set"
        return [Violation(f"settings.{name}", problem, "give http(s)://HOST:PORT")]
    if parts.query or parts.fragment or parts.username or parts.password:
        remedy = f"give the address alone; a token goes into the Secret named by {SECRET}"
        return [Violation(f"settings.{name}", "says more than where", remedy)]
    return []


def _parse_number(
    settings: Mapping[str, str],
    name: str,
    default: float,
    minimum: float,
    problems: list[Violation],
) -> float:
    text = settings.get(name, "")
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not minimum <= number < float("inf"):
        problem = f"{text!r} is no number of at least {minimum:g}"
        problems.append(Violation(f"settings.{name}", problem, f"leave it out for {default:g}"))
    return number
