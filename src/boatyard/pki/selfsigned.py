"""A self-signed certificate for a server that was given none. Called by `up` and `serve` with --tls."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


def ensure_self_signed(directory: Path, hosts: Sequence[str], *, now: datetime) -> CertificateFiles:
    """Returns the pair in the directory. Replaces it when it is missing, names other hosts or expires soon."""
    pair = CertificateFiles(directory / "tls.crt", directory / "tls.key")
    if _is_good(pair, hosts, now):
        return pair
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _sign(key, hosts, now)
    _write(
        pair.key,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        mode=0o600,
    )
    _write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
    return pair


def _is_good(pair: CertificateFiles, hosts: Sequence[str], now: datetime) -> bool:
    if not (pair.certificate.exists() and pair.key.exists()):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    matches = key.public_key() == certificate.public_key()
    return (
        matches
        and set(names) == set(_list_subject_names(hosts))
        and certificate.not_valid_after_utc > now + _RENEW_BEFORE
    )


def _sign(key: ec.EllipticCurvePrivateKey, hosts: Sequence[str], now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "boatyard")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName(_list_subject_names(hosts)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )


def _list_subject_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [_name(host) for host in dict.fromkeys(["localhost", "127.0.0.1", "::1", *hosts])]


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Writes the file atomically. It is at no moment readable by others."""
    draft = path.with_name(path.name + ".part")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
