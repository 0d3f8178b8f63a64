"""Validates a hub's kubeconfig and tells when its credentials expire. Pure; called by the hub's rules and checks.

The service uses it on its own machines. So everything must be inline: a program it names would run there, and a file
it names would be read there, with the rights of the service.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from boatyard.model.errors import Violation
from boatyard.model.kubeconfig import (
    CLUSTERS,
    CONTEXTS,
    FILE_FIELDS,
    USERS,
    KubeconfigError,
    NoCurrentContext,
    choose_context,
    decode_field,
    find_entry,
    load_kubeconfig,
)
from boatyard.resources.metadata import quote_text

PATH = "spec.kubeconfig"
TOKEN_REMEDY = "put a service account's token there (kubectl create token) as `token`"
_INLINE_REMEDY = "put its contents there as {name} (kubectl config view --flatten)"
_UNSUPPORTED_FIELDS = ("auth-provider", "username", "password")


@dataclass(frozen=True)
class KubeconfigSummary:
    """Server and expiry of one context of a kubeconfig, without secrets, and what is wrong with it."""

    server: str = ""
    expires_at: datetime | None = None  # expiry of its certificate or token; None when unknown
    violations: tuple[Violation, ...] = ()


def read_summary(
    kubeconfig: bytes, context: str = "", *, insecure: bool = False
) -> KubeconfigSummary:
    """Reads one context. Reports all violations at once, by field, and quotes no credential."""
    try:
        values = load_kubeconfig(kubeconfig)
    except KubeconfigError as error:
        return _make_invalid_summary(str(error), "give the file as kubectl reads it")
    try:
        name = choose_context(values, context)
        chosen = find_entry(values, CONTEXTS, name)
    except NoCurrentContext as error:
        return _make_invalid_summary(str(error), "set one (kubectl config use-context NAME)")
    except KubeconfigError as error:
        return _make_invalid_summary(str(error), "name one that is there")
    builder = _SummaryBuilder(insecure=insecure)
    readers = ((CLUSTERS, "cluster", builder.read_cluster), (USERS, "user", builder.read_user))
    for table, reference, read in readers:
        try:
            entry = find_entry(values, table, chosen.get(reference))
        except KubeconfigError as error:
            builder.add_violation(CONTEXTS, name, "context", str(error), "name one that is there")
        else:
            read(str(chosen.get(reference)), entry)
    return KubeconfigSummary(builder.server, builder.expires_at, tuple(builder.violations))


@dataclass
class _SummaryBuilder:
    """Collects server, expiry and violations while a kubeconfig is read."""

    insecure: bool
    server: str = ""
    expires_at: datetime | None = None
    violations: list[Violation] = field(default_factory=list)

    def add_violation(self, table: str, name: str, at: str, what: str, remedy: str) -> None:
        self.violations.append(Violation(PATH, f"{table}[{quote_text(name)}].{at}: {what}", remedy))

    def read_cluster(self, name: str, cluster: Mapping[str, Any]) -> None:
        def complain(at: str, what: str, remedy: str) -> None:
            self.add_violation("clusters", name, f"cluster.{at}", what, remedy)

        server = cluster.get("server")
        if problem := _server_problem(server):
            complain("server", *problem)
        else:
            self.server = str(server).rstrip("/")
            if not self.insecure and not self.server.startswith("https://"):
                complain("server", "is without TLS", _INSECURE_REMEDY)
        if cluster.get("insecure-skip-tls-verify") and not self.insecure:
            complain("insecure-skip-tls-verify", "trusts whoever answers", _INSECURE_REMEDY)
        if cluster.get("proxy-url"):
            complain("proxy-url", "is not supported", "leave it out")
        self._refuse_files(cluster, complain)
        authority = self._decode_inline(cluster, "certificate-authority-data", complain)
        if authority and _certificates(authority) is None:
            complain("certificate-authority-data", "is no certificate", "give it in PEM form")

    def read_user(self, name: str, user: Mapping[str, Any]) -> None:
        def complain(at: str, what: str, remedy: str) -> None:
            self.add_violation("users", name, f"user.{at}", what, remedy)

        if user.get("exec"):
            complain("exec", "names a program, which would run in the service", TOKEN_REMEDY)
        for at in _UNSUPPORTED_FIELDS:
            if user.get(at):
                complain(at, "is not supported", TOKEN_REMEDY)
        self._refuse_files(user, complain)
        token = user.get("token")
        if token is not None and not isinstance(token, str):
            complain("token", "is not a text", TOKEN_REMEDY)
        certificate = self._decode_inline(user, "client-certificate-data", complain)
        key = self._decode_inline(user, "client-key-data", complain)
        if certificate or key:
            self._check_pair(certificate, key, complain)
        elif isinstance(token, str) and token:
            self.expires_at = _get_token_expiry(token)
        elif not any(
            user.get(at)
            for at in (
                "exec",
                *_UNSUPPORTED_FIELDS,
                *FILE_FIELDS,
            )
        ):
            complain("token", "there are no credentials", TOKEN_REMEDY)

    def _check_pair(self, certificate: bytes, key: bytes, complain: Any) -> None:
        if not (certificate and key):
            complain("client-key-data", "a certificate and its key come together", "give both")
            return
        certificates = _certificates(certificate)
        if certificates is None:
            complain("client-certificate-data", "is no certificate", "give it in PEM form")
            return
        self.expires_at = certificates[0].not_valid_after_utc
        if not _is_key_of(certificates[0], key):
            complain("client-key-data", "is not the key of the certificate", "give its own")

    def _refuse_files(self, entry: Mapping[str, Any], complain: Any) -> None:
        for at, inline in FILE_FIELDS.items():
            if entry.get(at):
                what = "names a file, which would be read from the service's machine"
                complain(at, what, _INLINE_REMEDY.format(name=inline))

    def _decode_inline(self, entry: Mapping[str, Any], at: str, complain: Any) -> bytes:
        try:
            return decode_field(entry, at)
        except KubeconfigError:
            complain(at, "is not base64", "give it as kubectl writes it")
            return b""


_INSECURE_REMEDY = 'give certificate-authority-data, or the hub\'s setting kube.insecure="true"'


def _make_invalid_summary(what: str, remedy: str) -> KubeconfigSummary:
    return KubeconfigSummary(violations=(Violation(PATH, what, remedy),))


def _server_problem(server: Any) -> tuple[str, str] | None:
    remedy = "give an address such as https://hub.example:6443"
    try:
        parts = urlsplit(server) if isinstance(server, str) else None
        host = parts.hostname if parts else None
        _ = parts.port if parts else None  # raises when it is none
    except ValueError:
        return "is not an address", remedy
    if parts is None or parts.scheme not in ("https", "http") or not host:
        return "is not an address", remedy
    if parts.username or parts.password:
        return "carries a credential", "put it under users"
    if _is_impossible_address(host):
        return "is an address that no API server has", remedy
    return None


def _is_impossible_address(host: str) -> bool:
    """Whether no API server can have this address: link-local (cloud metadata services), multicast, unspecified."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_link_local or address.is_multicast or address.is_unspecified


def _certificates(pem: bytes) -> list[x509.Certificate] | None:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return None


def _is_key_of(certificate: x509.Certificate, key: bytes) -> bool:
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return False
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return private.public_key().public_bytes(*form) == certificate.public_key().public_bytes(*form)


def _get_token_expiry(token: str) -> datetime | None:
    """When a service account's token expires; None for other tokens. The signature is not checked."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, msgspec.DecodeError):
        return None
