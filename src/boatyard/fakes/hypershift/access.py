"""The address of the API server and the fake's credentials, from a kubeconfig with a certificate or a token."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


class BadKubeconfig(ValueError):
    """A kubeconfig that cannot be used here; the message contains no credential."""


@dataclass(frozen=True)
class ApiServerAccess:
    """One server and one user."""

    server: str
    tls_context: ssl.SSLContext | bool
    token: str = field(default="", repr=False)
    token_file: str = ""

    def headers(self) -> dict[str, str]:
        """The request headers. A token file is read each time, because others renew it."""
        token = Path(self.token_file).read_text().strip() if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def read_access(path: Path) -> ApiServerAccess:
    """The current context of a kubeconfig file. BadKubeconfig says what is wrong."""
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise BadKubeconfig(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError:
        raise BadKubeconfig(
            f"{path} is not YAML"
        ) from None  # the parser's message quotes the content
    context = _find_entry(document, path, "contexts", "context", _get(document, "current-context"))
    cluster = _find_entry(document, path, "clusters", "cluster", _get(context, "cluster"))
    user = _find_entry(document, path, "users", "user", _get(context, "user"))
    server = str(_get(cluster, "server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise BadKubeconfig(f"{path}: the cluster's server is not an http or https URL")
    if _get(user, "exec") or _get(user, "auth-provider"):
        raise BadKubeconfig(f"{path}: the user needs a plugin; give a certificate or a token")
    token_file = _get(user, "tokenFile")
    return ApiServerAccess(
        server=server,
        tls_context=_make_tls_context(path, cluster, user) if server.startswith("https:") else True,
        token="" if token_file else str(_get(user, "token") or ""),
        token_file=str(path.parent / token_file) if token_file else "",
    )


def _make_tls_context(path: Path, cluster: Any, user: Any) -> ssl.SSLContext:
    authority = _read_content(path, cluster, "certificate-authority")
    certificate = _read_content(path, user, "client-certificate")
    key = _read_content(path, user, "client-key")
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # no stricter than kubectl
        if _get(cluster, "insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            # The loader needs a path. Only we can read the file, and it is deleted after this block.
            with tempfile.NamedTemporaryFile() as pair:
                os.chmod(pair.name, 0o600)
                pair.write(certificate + b"\n" + key)
                pair.flush()
                context.load_cert_chain(pair.name)
    except (ssl.SSLError, ValueError) as error:
        raise BadKubeconfig(f"{path}: certificates that cannot be read or do not fit") from error
    return context


def _read_content(path: Path, entry: Any, field_name: str) -> bytes:
    """The content of a field: inline, else from the file that it names."""
    inline_data, file_name = _get(entry, f"{field_name}-data"), _get(entry, field_name)
    try:
        if inline_data:
            return base64.b64decode(inline_data, validate=True)
        return (path.parent / file_name).read_bytes() if file_name else b""
    except (binascii.Error, ValueError, TypeError):
        raise BadKubeconfig(f"{path}: {field_name}-data is not base64") from None
    except OSError as error:
        raise BadKubeconfig(f"{path}: cannot read {file_name}: {error.strerror}") from error


def _find_entry(document: Any, path: Path, table: str, field_name: str, name: Any) -> Any:
    for entry in _get(document, table) or []:
        if _get(entry, "name") == name:
            return _get(entry, field_name) or {}
    raise BadKubeconfig(f"{path}: there is no {field_name} {name!r}")


def _get(mapping: Any, name: str) -> Any:
    return mapping.get(name) if isinstance(mapping, dict) else None
