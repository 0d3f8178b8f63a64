"""Kubeconfigs of hubs that need not exist."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from tests.support.control_plane import Authority

SECRET = "kept-to-ourselves"
SERVER = "https://hub.example:6443"


def kubeconfig(
    server: str = SERVER,
    *,
    token: str = SECRET,
    user: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    current: str = "x",
    **more: Any,
) -> bytes:
    """One context with a token; `user` and `cluster` add fields, or replace the whole when they say so with None."""
    table = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": _fields({"server": server}, cluster)}],
        "users": [{"name": "u", "user": _fields({"token": token}, user)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": current,
        **more,
    }
    text: str = yaml.safe_dump(table)
    return text.encode()


def _fields(first: Mapping[str, Any], more: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in {**first, **(more or {})}.items() if value is not None}


def inline(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pair(*, days: float = 365, other: bool = False) -> dict[str, Any]:
    """A user with a client certificate and its key, or the key of another, and without a token."""
    authority = Authority("hub")
    certificate, key = authority.issue("service", days=days)
    if other:
        _, key = authority.issue("somebody")
    return {
        "token": None,
        "client-certificate-data": inline(certificate),
        "client-key-data": inline(key),
    }


def account_token(*, ends: datetime | None = None) -> str:
    """A token as a service account has; nobody signed it."""
    end = ends or datetime.now(UTC) + timedelta(days=30)
    claims = json.dumps({"exp": int(end.timestamp()), "sub": SECRET}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"
