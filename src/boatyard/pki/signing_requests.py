"""Creates a key and a signing request for it, and checks the certificate. Called when access is issued."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from boatyard.model.errors import Refused
from boatyard.pki.authority import generate_key, key_to_pem, public_key_to_pem

LONGEST_COMMON_NAME = 64  # bytes; the bound of X.509


@dataclass(frozen=True)
class SigningRequest:
    """`pem` is sent to the signer; `key` stays with us. `digest` identifies the key without revealing it."""

    pem: bytes
    key: bytes = field(repr=False)
    digest: str


@dataclass(frozen=True)
class CertificateValidity:
    """When a certificate expires, and its whole lifetime."""

    expires_at: datetime
    lifetime: timedelta


def make_signing_request(common_name: str, organizations: Sequence[str] = ()) -> SigningRequest:
    """Creates a P-256 key and its signing request. Kubernetes reads the names as a user and its groups."""
    key = generate_key()
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    signing_request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .sign(key, hashes.SHA256())
    )
    return SigningRequest(
        pem=signing_request.public_bytes(serialization.Encoding.PEM),
        key=key_to_pem(key),
        digest=hashlib.sha256(public_key_to_pem(key)).hexdigest(),
    )


def check_certificate(certificate: bytes, request: SigningRequest) -> CertificateValidity:
    """Returns the validity of the certificate. Refused when it is no certificate, or does not match the request."""
    try:
        issued = x509.load_pem_x509_certificate(certificate)
        csr = x509.load_pem_x509_csr(request.pem)
    except ValueError as error:
        raise Refused("what came back is not a certificate") from error
    if issued.public_key() != csr.public_key() or _sorted_attributes(
        issued.subject
    ) != _sorted_attributes(csr.subject):
        raise Refused("the certificate that came back names somebody else")
    return CertificateValidity(
        expires_at=issued.not_valid_after_utc,
        lifetime=issued.not_valid_after_utc - issued.not_valid_before_utc,
    )


def _sorted_attributes(subject: x509.Name) -> list[tuple[str, str | bytes]]:
    """Returns a subject's attributes in a fixed order: signers order and group them as they like."""
    return sorted((part.oid.dotted_string, part.value) for part in subject)
