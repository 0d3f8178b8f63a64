"""Who one is to a real API server: service accounts, roles, certificates by request."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from boatyard.kube.client import KubeClient
from boatyard.kube.config import in_cluster_config, read_kubeconfig
from boatyard.kube.kinds import CONFIG_MAPS, CSRS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from boatyard.model.errors import Refused, Unavailable
from tests.support.control_plane import ControlPlane, key_pem


async def token_of(client: KubeClient, namespace: str, account: str = "default") -> str:
    path = SERVICE_ACCOUNTS.path(namespace, account, "token")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    token: str = (await client.call("POST", path, body=request))["status"]["token"]
    return token


async def allow(client: KubeClient, namespace: str, *verbs: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}
    await client.create(ROLES, {"metadata": {"name": "r"}, "rules": [rule]}, namespace)
    binding: dict[str, Any] = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    await client.create(ROLE_BINDINGS, binding, namespace)


async def until_allowed(account: KubeClient, namespace: str) -> Sequence[Any]:
    """What is listed, once the API server has noticed that it may be."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await account.list(CONFIG_MAPS, namespace)).items
            except Refused as error:
                if error.reason != "Forbidden":
                    raise
                await asyncio.sleep(0.05)


async def test_a_service_account_may_what_its_role_says_and_no_more(
    client: KubeClient, namespace: str, plane: ControlPlane
) -> None:
    token = await token_of(client, namespace)
    account = KubeClient(read_kubeconfig(plane.kubeconfig_for({"token": token})))
    with pytest.raises(Refused) as refused:
        await account.list(CONFIG_MAPS, namespace)
    assert refused.value.reason == "Forbidden"
    assert "cannot list resource" in str(refused.value)

    await allow(client, namespace, "list", "watch")
    assert await until_allowed(account, namespace) == []
    with pytest.raises(Refused):
        await account.apply(CONFIG_MAPS, "a", {}, namespace)
    await account.close()


async def test_a_mounted_service_account_is_found_and_its_token_renewed(
    client: KubeClient, namespace: str, plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(plane.ca.pem)
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text("long.ago.expired")
    await allow(client, namespace, "list")
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(plane.port)}
    inside = KubeClient(in_cluster_config(tmp_path, env))

    with pytest.raises(Refused) as refused:
        await inside.list(CONFIG_MAPS, inside.config.namespace)
    assert refused.value.reason == "Unauthorized"
    (tmp_path / "token").write_text(await token_of(client, namespace))
    assert await until_allowed(inside, inside.config.namespace) == []
    await inside.close()


async def test_who_is_not_known_is_refused(plane: ControlPlane) -> None:
    nobody = KubeClient(read_kubeconfig(plane.kubeconfig_for({})))
    with pytest.raises(Refused) as refused:
        await nobody.list(CONFIG_MAPS)
    assert refused.value.reason == "Unauthorized"
    await nobody.close()


async def test_an_expired_client_certificate_is_refused(plane: ControlPlane) -> None:
    expired = KubeClient(read_kubeconfig(plane.kubeconfig(days=-0.5)))
    with pytest.raises((Refused, Unavailable)):
        await expired.list(CONFIG_MAPS)
    await expired.close()


async def test_a_certificate_is_had_by_request(client: KubeClient, plane: ControlPlane) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "jo"),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    # A request for system:masters is refused by the server itself; without groups it is fine.
    spec = {
        "request": b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        "expirationSeconds": 600,
    }
    with pytest.raises(Refused, match="system:masters"):
        await client.create(CSRS, {"metadata": {"name": "jo"}, "spec": spec})
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jo")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec["request"] = b64encode(pem).decode()
    plane.start_controller_manager("--controllers=csrsigning")

    made = await client.create(CSRS, {"metadata": {"name": "jo"}, "spec": spec})
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "yes"}
    made["status"] = {"conditions": [approved]}
    await client.replace(CSRS, made, subresource="approval")
    async with asyncio.timeout(60):
        while not (made.get("status") or {}).get("certificate"):
            await asyncio.sleep(0.05)
            made = await client.get(CSRS, "jo")
    plane.stop("kube-controller-manager")

    user = {
        "client-certificate-data": made["status"]["certificate"],
        "client-key-data": b64encode(key_pem(key)).decode(),
    }
    jo = KubeClient(read_kubeconfig(plane.kubeconfig_for(user)))
    with pytest.raises(Refused, match='User "jo" cannot list'):
        await jo.list(CONFIG_MAPS)
    await jo.close()
    certificate = x509.load_pem_x509_certificate(b64decode(made["status"]["certificate"]))
    assert certificate.subject.rfc4514_string() == "CN=jo"
