"""A key of our own and the request that somebody else certifies it. Called when access is issued."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from boatyard.model.errors import Refused
from boatyard.pki.authority import key_pem, new_key, public_pem

LONGEST_COMMON_NAME = 64  # bytes; X.509's own bound


@dataclass(frozen=True)
class Request:
    """What is sent (`pem`), and the key that stays with us. `digest` names the key, and tells nothing of it."""

    pem: bytes
    key: bytes = field(repr=False)
    digest: str


@dataclass(frozen=True)
class Certified:
    """Until when a certificate is good, and for how long it is altogether."""

    expires_at: datetime
    lifetime: timedelta


def make_request(common_name: str, organizations: Sequence[str] = ()) -> Request:
    """A new P-256 key and a request for it. To Kubernetes these are a user and its groups."""
    key = new_key()
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    signing_request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .sign(key, hashes.SHA256())
    )
    return Request(
        pem=signing_request.public_bytes(serialization.Encoding.PEM),
        key=key_pem(key),
        digest=hashlib.sha256(public_pem(key)).hexdigest(),
    )


def check_certified(certificate: bytes, request: Request) -> Certified:
    """What the certificate says of its time. Refused when it is none, or not what the request asked for."""
    try:
        issued = x509.load_pem_x509_certificate(certificate)
        csr = x509.load_pem_x509_csr(request.pem)
    except ValueError as error:
        raise Refused("what came back is not a certificate") from error
    if issued.public_key() != csr.public_key() or _parts(issued.subject) != _parts(csr.subject):
        raise Refused("the certificate that came back names somebody else")
    return Certified(
        expires_at=issued.not_valid_after_utc,
        lifetime=issued.not_valid_after_utc - issued.not_valid_before_utc,
    )


def _parts(subject: x509.Name) -> list[tuple[str, str | bytes]]:
    """What a subject says, however it is laid out: signers order and join its parts as they like."""
    return sorted((part.oid.dotted_string, part.value) for part in subject)
