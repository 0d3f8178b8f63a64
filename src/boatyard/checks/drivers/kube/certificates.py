"""Are the API's certificate and those in the kubeconfig valid, now and for a while?"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from cryptography import x509

from boatyard.checks.drivers.kube.check_context import CheckContext
from boatyard.kube.config import KubeConfig
from boatyard.kube.credentials import Credential, CredentialSource
from boatyard.kube.transport import make_tls_context
from boatyard.model.errors import Refused, Unavailable
from boatyard.model.outcome import Done, Outcome, Waiting

_HANDSHAKE_SECONDS = 3.0
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def check_certificates(context: CheckContext) -> Outcome:
    config = context.client.config
    if not config.server.startswith("https:"):
        return Waiting("The API has no certificate.", reason="NoCertificate")
    proof = await CredentialSource(config).get_credential()
    served = await _fetch_served_certificate(config, proof)
    labelled_certificates = [("The certificate of the API", served)]
    labelled_certificates += [
        ("The authority in the kubeconfig", certificate)
        for certificate in _parse_certificates(proof.ca)
    ]
    client_certificates = _parse_certificates(proof.certificate)[:1]
    labelled_certificates += [
        ("The certificate in the kubeconfig", certificate) for certificate in client_certificates
    ]
    margin = timedelta(days=context.settings.certificate_days)
    for label, certificate in labelled_certificates:
        problem = _find_validity_problem(label, certificate, context.now, margin)
        if problem is not None:
            return problem
    trust_problem = await _find_trust_problem(config, proof)
    if trust_problem is not None:
        return trust_problem
    return await _check_accepted(context, client_certificates[0]) if client_certificates else Done()


def _parse_certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem) if pem else []
    except ValueError as error:
        raise Refused("the kubeconfig holds a certificate that is none") from error


def _find_validity_problem(
    label: str, certificate: x509.Certificate, now: datetime, margin: timedelta
) -> Waiting | None:
    if now < certificate.not_valid_before_utc:
        return Waiting(f"{label} is not valid yet.", reason="CertificateNotYetValid")
    if now >= certificate.not_valid_after_utc:
        return Waiting(f"{label} has expired.", reason="CertificateExpired")
    if now + margin > certificate.not_valid_after_utc:
        return Waiting(f"{label} expires soon.", reason="CertificateExpiresSoon")
    return None


async def _fetch_served_certificate(config: KubeConfig, proof: Credential) -> x509.Certificate:
    """The certificate that the API serves, without verifying it."""
    tls = make_tls_context(Credential(certificate=proof.certificate, key=proof.key), insecure=True)
    return x509.load_der_x509_certificate(await _make_handshake(config, tls))


async def _find_trust_problem(config: KubeConfig, proof: Credential) -> Waiting | None:
    try:
        # Verified against the authority in the kubeconfig, even if the kubeconfig says to skip that.
        await _make_handshake(config, make_tls_context(proof))
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _NAME_MISMATCH_CODES:
            why = "The certificate of the API is made out to another name."
            return Waiting(why, reason="CertificateWrongName")
        why = "The certificate of the API is not from the authority in the kubeconfig."
        return Waiting(why, reason="CertificateNotTrusted")
    return None


_NAME_MISMATCH_CODES = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


async def _make_handshake(config: KubeConfig, tls: ssl.SSLContext) -> bytes:
    """Makes one TLS handshake and returns the server's certificate in DER form."""
    parts = urlsplit(config.server)
    name = config.tls_server_name or parts.hostname
    try:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 443, ssl=tls, server_hostname=name
            )
    except ssl.SSLCertVerificationError:
        raise
    except (OSError, TimeoutError) as error:
        raise Unavailable("the API does not answer", reason="Unreachable") from error
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return bytes(der)
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                await writer.wait_closed()


async def _check_accepted(context: CheckContext, certificate: x509.Certificate) -> Outcome:
    """Done when the server identifies us as the user in the certificate. Only the server knows whether it trusts it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    config = context.client.config
    refusal = Waiting(
        "The API does not accept the certificate in the kubeconfig.", reason="NotAccepted"
    )
    try:
        response = await context.client.call("POST", _REVIEWS, body=review)
    except Refused:
        return refusal
    common_names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    user = ((response.get("status") or {}).get("userInfo") or {}).get("username")
    if config.impersonate_user or user in [attribute.value for attribute in common_names]:
        return Done()
    return refusal
