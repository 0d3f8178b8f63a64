"""How a certificate is asked of a cluster: what is sent, what is believed of the answer, what stays behind."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta
from typing import Any, cast

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from boatyard.api import client_certificates
from boatyard.api.client_certificates import Grant
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.model.errors import Precondition, Refused, Unavailable
from boatyard.pki.signing_requests import make_signing_request
from tests.support.signing_cluster import NOW, SigningCluster

HOUR = timedelta(hours=1)
GROUPS = ("boatyard:admins", "boatyard:issued-by:ann")


class CountingSigningCluster(SigningCluster):
    """A signing cluster that certificates are asked of."""

    async def issue(self, ttl: timedelta = HOUR) -> client_certificates.IssuedCertificate:
        client = cast(KubeClient, self)
        return await client_certificates.issue_certificate(
            client, user="boatyard:bob", groups=GROUPS, ttl=ttl
        )


async def test_the_request_names_user_groups_and_time_and_nothing_stays() -> None:
    cluster = CountingSigningCluster()
    issued = await cluster.issue()
    (sent,) = cluster.sent
    assert sent["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client"
    assert sent["spec"]["usages"] == ["client auth"]
    assert sent["spec"]["expirationSeconds"] == 3600
    subject = x509.load_pem_x509_csr(base64.b64decode(sent["spec"]["request"])).subject
    names = [(attribute.oid, attribute.value) for attribute in subject]
    organization = NameOID.ORGANIZATION_NAME
    assert names == [*((organization, g) for g in GROUPS), (NameOID.COMMON_NAME, "boatyard:bob")]
    assert cluster.requests == {}
    assert issued.expires_at == NOW + HOUR
    key = serialization.load_pem_private_key(issued.key, password=None)
    certificate = x509.load_pem_x509_certificate(issued.certificate)
    assert key.public_key() == certificate.public_key()
    assert "PRIVATE" not in repr(issued)
    assert issued.key not in str(cluster.sent).encode()


@pytest.mark.parametrize("mood, error", [
    ("forbidden", Refused),
    ("failing", Refused),
    ("garbage", Refused),
    ("noise", Refused),
    ("swapped", Refused),
    ("renamed", Refused),
    ("generous", Refused),
    ("lost", Unavailable),
])  # fmt: skip
async def test_what_is_wrong_is_refused_and_taken_out_again(
    mood: str, error: type[Exception]
) -> None:
    cluster = CountingSigningCluster(mood)
    with pytest.raises(error):
        await cluster.issue()
    assert cluster.requests == {}


async def test_a_signer_that_never_signs_is_waited_for_as_long_as_the_caller_says() -> None:
    cluster = CountingSigningCluster("silent")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await cluster.issue()
    assert cluster.requests == {}


async def test_what_cannot_be_taken_out_does_not_spoil_it() -> None:
    cluster = CountingSigningCluster("stuck")
    assert (await cluster.issue()).expires_at == NOW + HOUR
    assert len(cluster.requests) == 1, "the controller-manager removes it within the hour"


async def test_each_request_has_a_name_of_its_own() -> None:
    cluster = CountingSigningCluster("stuck")
    await cluster.issue()
    await cluster.issue()
    assert len(cluster.requests) == 2


async def test_a_group_is_bound_to_its_role() -> None:
    cluster = CountingSigningCluster()
    grant = Grant("boatyard:viewers", "view")
    await client_certificates.ensure_grant(cast(KubeClient, cluster), grant)
    (made,) = cluster.applied.values()
    assert made["roleRef"]["name"] == "view"
    assert made["subjects"][0] | {"apiGroup": ""} == {
        "kind": "Group",
        "name": "boatyard:viewers",
        "apiGroup": "",
    }


def stored(cluster: dict[str, Any] | None = None, **user: Any) -> str:
    server = {"server": "https://10.0.0.1:6443", "certificate-authority-data": "Y2E="}
    return yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": server | (cluster or {})}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


@pytest.mark.parametrize("text", [
    pytest.param("kube: config", id="no kubeconfig"),
    pytest.param(stored({"server": "http://10.0.0.1"}), id="no TLS"),
    pytest.param(stored({"certificate-authority-data": "", "insecure-skip-tls-verify": True}), id="any certificate"),
    pytest.param(stored({"certificate-authority-data": "", "certificate-authority": "/etc/ca"}), id="our authority"),
    pytest.param(stored(tokenFile="/var/run/token"), id="a token of our machine"),
    pytest.param(stored(**{"client-certificate": "/a", "client-key": "/b"}), id="a key of our machine"),
    pytest.param(stored(exec={"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}), id="a program"),
    pytest.param(stored({"proxy-url": "http://elsewhere"}), id="by way of another"),
])  # fmt: skip
def test_a_stored_kubeconfig_leads_to_its_own_server_or_nowhere(text: str) -> None:
    with pytest.raises(Precondition):
        client_certificates.parse_safe_kubeconfig(text)


async def test_what_is_handed_out_has_the_stored_server_and_nothing_else_of_it() -> None:
    config = client_certificates.parse_safe_kubeconfig(
        stored({"tls-server-name": "api.web"}, token="admin-secret")
    )
    issued = await CountingSigningCluster().issue()
    text = client_certificates.render_kubeconfig(config, cluster="web-1", user="bob", issued=issued)
    assert "admin-secret" not in text
    found = read_kubeconfig(text)
    assert (found.server, found.ca, found.tls_server_name) == (config.server, b"ca", "api.web")
    assert (found.certificate, found.key) == (issued.certificate, issued.key)
    assert (found.token, found.plugin) == ("", None)


def test_a_key_is_named_by_its_public_half() -> None:
    first, second = make_signing_request("a"), make_signing_request("a")
    assert first.digest != second.digest
    assert "PRIVATE" not in repr(first)
