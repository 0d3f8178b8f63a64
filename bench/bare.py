"""A control plane started by hand, as a person with a shell would: the yardstick of `local.py`."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import shutil
import socket
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PATIENCE = 120.0


class Bare:
    """etcd and an API server; with `controllers` the other two as well. Keys are made before the clock starts."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs = programs
        self._directory = directory
        self._stack = AsyncExitStack()
        self.pids: list[int] = []
        directory.mkdir(parents=True)
        self._port = _free_port()
        self.kubeconfig = directory / "kubeconfig"
        self._make_keys()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def start(self) -> float:
        """Seconds from nothing to the first `kubectl get ns` that succeeds."""
        began = time.monotonic()
        here = self._directory
        await self._run(
            "etcd",
            "--name=a",
            f"--data-dir={here}/etcd",
            f"--listen-client-urls=unix://{here}/e.sock",
            "--advertise-client-urls=http://localhost:2379",
            f"--listen-peer-urls=unix://{here}/p.sock",
            "--initial-advertise-peer-urls=http://localhost:2380",
            "--initial-cluster=a=http://localhost:2380",
        )
        await self._run(
            "kube-apiserver",
            f"--etcd-servers=unix://{here}/e.sock",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._port}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            f"--client-ca-file={here}/ca.crt",
            f"--tls-cert-file={here}/server.crt",
            f"--tls-private-key-file={here}/server.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={here}/server.pub",
            f"--service-account-signing-key-file={here}/server.key",
        )
        await first_answer(self._programs / "kubectl", self.kubeconfig)
        return time.monotonic() - began

    async def start_controllers(self) -> None:
        """What a whole control plane has besides: for the comparison of memory."""
        quiet = ("--leader-elect=false", "--secure-port=0", f"--kubeconfig={self.kubeconfig}")
        here = self._directory
        await self._run(
            "kube-controller-manager",
            *quiet,
            f"--root-ca-file={here}/ca.crt",
            f"--service-account-private-key-file={here}/server.key",
            f"--cluster-signing-cert-file={here}/ca.crt",
            f"--cluster-signing-key-file={here}/ca.key",
            "--use-service-account-credentials",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        )
        await self._run("kube-scheduler", *quiet)

    async def _run(self, name: str, *arguments: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                str(self._programs / name),
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.pids.append(process.pid)
        self._stack.push_async_callback(_kill, process)

    def _make_keys(self) -> None:
        ca_key, server_key, user_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        ca = _certificate("ca", (), ca_key, None, ca_key)
        server = _certificate("kube-apiserver", (), server_key, ca, ca_key)
        user = _certificate("admin", ("system:masters",), user_key, ca, ca_key)
        for name, certificate, key in (("ca", ca, ca_key), ("server", server, server_key)):
            (self._directory / f"{name}.crt").write_bytes(_pem(certificate))
            (self._directory / f"{name}.key").write_bytes(_key(key))
        public = server_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self._directory / "server.pub").write_bytes(public)
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority-data": _text(_pem(ca)),
        }
        credentials = {
            "client-certificate-data": _text(_pem(user)),
            "client-key-data": _text(_key(user_key)),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bare", "cluster": cluster}],
            "users": [{"name": "admin", "user": credentials}],
            "contexts": [{"name": "bare", "context": {"cluster": "bare", "user": "admin"}}],
            "current-context": "bare",
        }
        self.kubeconfig.write_text(json.dumps(config))


async def first_answer(kubectl: Path, kubeconfig: Path) -> None:
    """Asks as a person would, again and again, until the namespaces are listed."""
    async with asyncio.timeout(PATIENCE):
        while True:
            process = await asyncio.create_subprocess_exec(
                *(str(kubectl), "--kubeconfig", str(kubeconfig), "get", "ns"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            if await process.wait() == 0:
                return
            await asyncio.sleep(0.1)


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def _certificate(
    name: str,
    groups: tuple[str, ...],
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    now = datetime.now(UTC)
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
