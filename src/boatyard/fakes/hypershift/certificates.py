"""Makes a certificate authority for the fake's hosted API servers, and server certificates signed by it."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY_YEARS = 10


def make_authority(now: float) -> tuple[str, str]:
    """Certificate and key of a new authority, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hypershift-player")])
    builder = _make_builder(name, name, key, now).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return _certificate_pem(builder.sign(key, hashes.SHA256())), _key_pem(key)


def sign_server_certificate(authority: str, authority_key: str, host: str, now: float) -> str:
    """Certificate and key of a server at that host, in PEM, one after the other."""
    issuer = x509.load_pem_x509_certificate(authority.encode())
    signer = serialization.load_pem_private_key(authority_key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    builder = (
        _make_builder(name, issuer.subject, key, now)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    return _certificate_pem(builder.sign(signer, hashes.SHA256())) + _key_pem(key)


def _make_builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: float
) -> x509.CertificateBuilder:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - datetime.timedelta(hours=1))
        .not_valid_after(moment + datetime.timedelta(days=365 * VALIDITY_YEARS))
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
