"""A certificate authority of one cluster, and the certificates it issues. Keys are P-256."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=3650)
CERTIFICATE_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)  # a machine whose clock is behind must accept it, too


@dataclass(frozen=True)
class Pem:
    """A certificate and its key."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates for one purpose in one cluster. Two clusters never share an authority."""

    def __init__(self, pem: Pem) -> None:
        self.pem = pem
        self._certificate = x509.load_pem_x509_certificate(pem.certificate)
        key = serialization.load_pem_private_key(pem.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of an authority of ours is an elliptic curve key")
        self._key = key

    @classmethod
    def create(cls, name: str, *, now: datetime) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _start_builder(subject, key.public_key(), now, AUTHORITY_LIFETIME)
            .issuer_name(subject)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(Pem(_certificate_to_pem(certificate), key_to_pem(key)))

    def issue(
        self,
        common_name: str,
        *,
        organizations: Sequence[str] = (),
        names: Sequence[str] = (),
        addresses: Sequence[str] = (),
        server: bool = False,
        client: bool = False,
        now: datetime,
        life: timedelta = CERTIFICATE_LIFETIME,
    ) -> Pem:
        """Issues a certificate with a new key. `names` and `addresses` become its subject alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = (
            _start_builder(x509.Name(subject), key.public_key(), now, life)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(_purposes(server, client)), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        alternative_names: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternative_names += [
            x509.IPAddress(ipaddress.ip_address(address)) for address in addresses
        ]
        if alternative_names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternative_names), critical=False
            )
        return Pem(_certificate_to_pem(builder.sign(self._key, hashes.SHA256())), key_to_pem(key))


def generate_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def read_expiry(certificate: bytes) -> datetime:
    """Returns the moment at which a certificate (PEM) expires."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _start_builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _purposes(server: bool, client: bool) -> list[x509.ObjectIdentifier]:
    purposes = []
    if server:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    if client:
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    return purposes


def _certificate_to_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
