"""Certificates that an authority of ours issues say what they are for, by which names, and from when on."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from boatyard.pki.authority import Authority, read_expiry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("cluster a", now=NOW)


def read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize(
    "server, client, purposes",
    [
        pytest.param(True, False, {SERVER}, id="a server is no client"),
        pytest.param(False, True, {CLIENT}, id="a client is no server"),
        pytest.param(True, True, {SERVER, CLIENT}, id="both"),
    ],
)
def test_a_certificate_is_for_what_was_asked(
    authority: Authority, server: bool, client: bool, purposes: set[x509.ObjectIdentifier]
) -> None:
    issued = read(authority.issue("a", server=server, client=client, now=NOW).certificate)

    usage = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == purposes


def test_what_is_issued_issues_nothing(authority: Authority) -> None:
    own, issued = (
        read(authority.pem.certificate),
        read(authority.issue("a", client=True, now=NOW).certificate),
    )

    assert own.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not issued.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    issued.verify_directly_issued_by(own)


@pytest.mark.parametrize(
    "names, addresses",
    [
        pytest.param(["api.example"], [], id="names"),
        pytest.param([], ["10.0.0.1"], id="addresses alone"),
        pytest.param(["api.example"], ["10.0.0.1", "::1"], id="both"),
    ],
)
def test_a_server_is_called_by_its_names_and_addresses(
    authority: Authority, names: list[str], addresses: list[str]
) -> None:
    pem = authority.issue("a", names=names, addresses=addresses, server=True, now=NOW)

    called = read(pem.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert called.value.get_values_for_type(x509.DNSName) == names
    assert called.value.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(address) for address in addresses
    ]


def test_a_machine_whose_clock_is_a_little_behind_takes_a_new_certificate(
    authority: Authority,
) -> None:
    pem = authority.issue("a", now=NOW, life=timedelta(hours=1))

    assert read(pem.certificate).not_valid_before_utc < NOW
    assert read_expiry(pem.certificate) == NOW + timedelta(hours=1)


def test_groups_and_user_are_those_that_were_asked_for(authority: Authority) -> None:
    issued = read(authority.issue("jo", organizations=["b", "a"], client=True, now=NOW).certificate)

    subject = [attribute.value for attribute in issued.subject]
    assert subject == ["b", "a", "jo"]
