"""Obtains short-lived client certificates from a cluster's signer. Called by `Access.issue`."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import yaml

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig, read_kubeconfig
from boatyard.kube.kinds import CLUSTER_ROLE_BINDINGS, CSRS
from boatyard.model.backoff import Backoff
from boatyard.model.errors import BoatyardError, Precondition, Refused
from boatyard.pki.signing_requests import check_certificate, make_signing_request

SIGNER = "kubernetes.io/kube-apiserver-client"
MANAGED_BY_LABELS = {"app.kubernetes.io/managed-by": "boatyard"}
_POLLING = Backoff(first=0.02, longest=0.5)
_REMOVE_SECONDS = 5.0
_SIGNER_BACKDATING = timedelta(minutes=10)  # the signer lets certificates begin five minutes ago


@dataclass(frozen=True)
class Grant:
    """A group of users and the ClusterRole that it is bound to."""

    group: str
    role: str


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)
    expires_at: datetime


def parse_safe_kubeconfig(kubeconfig: str) -> KubeConfig:
    """Parses the stored kubeconfig and checks that it is safe to use from here.

    Precondition when it names files or programs, which would be this machine's, or does not verify its server.
    """
    try:
        config = read_kubeconfig(kubeconfig)
    except Refused as error:
        raise Precondition(f"the cluster's kubeconfig cannot be used: {error}") from error
    files = (config.ca_file, config.certificate_file, config.key_file, config.token_file)
    if config.plugin is not None or any(files):
        raise Precondition("the cluster's kubeconfig refers to files or programs elsewhere")
    if config.insecure or not config.server.startswith("https://"):
        raise Precondition("the cluster's kubeconfig does not say whom to trust")
    return config


async def ensure_grant(client: KubeClient, grant: Grant) -> None:
    """Binds the group to its role. May be called again; a binding that was changed by hand is corrected."""
    await client.apply(
        CLUSTER_ROLE_BINDINGS,
        grant.group,
        {
            "metadata": {"labels": MANAGED_BY_LABELS},
            "roleRef": {
                "apiGroup": CLUSTER_ROLE_BINDINGS.group,
                "kind": "ClusterRole",
                "name": grant.role,
            },
            "subjects": [
                {"apiGroup": CLUSTER_ROLE_BINDINGS.group, "kind": "Group", "name": grant.group}
            ],
        },
    )


async def issue_certificate(
    client: KubeClient, *, user: str, groups: Sequence[str], ttl: timedelta
) -> IssuedCertificate:
    """Returns a certificate for the user, valid for at most `ttl`. The caller bounds the wait.

    The signing request is deleted from the cluster again, also on failure. One that a killed process
    leaves behind holds no key, and the controller-manager removes it an hour after it was approved.
    """
    request = await asyncio.to_thread(make_signing_request, user, groups)
    name = f"boatyard-{request.digest[:32]}"
    spec = {
        "request": base64.b64encode(request.pem).decode(),
        "signerName": SIGNER,
        "usages": ["client auth"],
        "expirationSeconds": int(ttl.total_seconds()),
    }
    body = {
        "apiVersion": CSRS.api_version,
        "kind": CSRS.kind,
        "metadata": {"name": name, "labels": MANAGED_BY_LABELS},
        "spec": spec,
    }
    try:
        await client.create(CSRS, body)
        await client.merge_patch(CSRS, name, _APPROVAL_PATCH, subresource="approval")
        certificate = await _wait_for_certificate(client, name)
    finally:
        await _delete_signing_request(client, name)
    certified = check_certificate(certificate, request)
    if certified.lifetime > ttl + _SIGNER_BACKDATING:
        raise Refused("the cluster signs for longer than it is asked")
    return IssuedCertificate(certificate, request.key, certified.expires_at)


_APPROVAL_PATCH = {
    "status": {
        "conditions": [
            {
                "type": "Approved",
                "status": "True",
                "reason": "IssuedByBoatyard",
                "message": "Access was asked for through Boatyard, which keeps the record",
            }
        ]
    }
}


async def _wait_for_certificate(client: KubeClient, name: str) -> bytes:
    """Polls the signing request, with growing pauses, until it has a certificate. Refused when it is denied."""
    pauses = _POLLING.pauses()
    while True:
        status = (await client.get(CSRS, name)).get("status") or {}
        for condition in status.get("conditions") or ():
            if condition.get("type") in ("Denied", "Failed"):
                words = condition.get("message") or condition.get("reason") or "no reason given"
                raise Refused(f"the cluster's signer refused: {words}")
        if status.get("certificate"):
            return _decode_certificate(status["certificate"])
        await asyncio.sleep(next(pauses))


def _decode_certificate(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, binascii.Error) as error:
        raise Refused("what came back is not a certificate") from error


async def _delete_signing_request(client: KubeClient, name: str) -> None:
    """Deletes the signing request, ignoring failures: the cluster removes old ones by itself."""
    with contextlib.suppress(BoatyardError, TimeoutError):
        async with asyncio.timeout(_REMOVE_SECONDS):
            await client.delete(CSRS, name)


def render_kubeconfig(
    config: KubeConfig, *, cluster: str, user: str, issued: IssuedCertificate
) -> str:
    """The kubeconfig for the user: the stored server and its CA, with the new certificate."""
    server: dict[str, Any] = {"server": config.server}
    if config.ca:
        server["certificate-authority-data"] = base64.b64encode(config.ca).decode()
    if config.tls_server_name:
        server["tls-server-name"] = config.tls_server_name
    context = f"{user}@{cluster}"
    text: str = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": server}],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": base64.b64encode(issued.certificate).decode(),
                        "client-key-data": base64.b64encode(issued.key).decode(),
                    },
                }
            ],
            "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
            "current-context": context,
        },
        sort_keys=False,
    )
    return text
