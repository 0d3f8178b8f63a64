"""A real etcd and kube-apiserver, started by hand for tests; on demand with a controller-manager and a scheduler.

On purpose without anything of the product but where its programs are: what is tested against it must not have made it.
"""

from __future__ import annotations

import ctypes
import datetime
import ipaddress
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from boatyard.assets import DEFAULT_VERSION
from tests.support.assets import needs_assets

READY_SECONDS = 90
# Programs that live for seconds need not keep their memory small: collecting it takes a fifth of their CPU time.
_LESS_COLLECTING = {"GOGC": "400"}
_LIBC = ctypes.CDLL(None)


def find_programs(version: str = DEFAULT_VERSION) -> Path:
    """The folder they are in; skips the test where they are not."""
    return needs_assets(version).program(version, "kube-apiserver").parent


@contextmanager
def control_plane(
    version: str = DEFAULT_VERSION,
    api_flags: Sequence[str] | Callable[[ControlPlane], Sequence[str]] = (),
) -> Iterator[ControlPlane]:
    """A running one, its API server with more flags; skips the test that wants it where there are no programs."""
    plane = ControlPlane(find_programs(version), version=version)
    try:
        plane.add_api_flags(*(api_flags(plane) if callable(api_flags) else api_flags))
        plane.start()
        yield plane
    finally:
        plane.close()


class Authority:
    """A certificate authority that signs whatever a test wants."""

    def __init__(self, name: str, *, days: float = 3650) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(
            self.name, self.key.public_key(), days=days, extensions=[_CA, _CA_USAGE]
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        common_name: str,
        *,
        groups: Sequence[str] = (),
        names: Sequence[str] = (),
        days: float = 365,
        began: float = 1,
    ) -> tuple[bytes, bytes]:
        """Certificate and key in PEM: for a server when it has names, else for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        use = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        extensions: list[Any] = [(x509.ExtendedKeyUsage([use]), False)]
        if names:
            extensions.append((x509.SubjectAlternativeName([_name(n) for n in names]), False))
        certificate = self._sign(
            x509.Name(attributes), key.public_key(), days=days, began=began, extensions=extensions
        )
        return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)

    def _sign(
        self, subject: x509.Name, public: Any, *, days: float, extensions: Any, began: float = 1
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=began))
            .not_valid_after(now + datetime.timedelta(days=days))
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256())


_CA = (x509.BasicConstraints(ca=True, path_length=None), True)
_CA_USAGE = (
    x509.KeyUsage(True, False, True, False, False, True, True, False, False),
    True,
)


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


class ControlPlane:
    """One cluster's processes in one folder. A program ends with this process, however that ends."""

    def __init__(
        self, programs: Path, *, version: str = DEFAULT_VERSION, api_flags: Sequence[str] = ()
    ) -> None:
        self.programs = programs
        self.version = version
        # Short, for the kernel's sake: the path of a socket has 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="kp-"))
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca = Authority("kubernetes")
        self.front = Authority("front-proxy")
        self._api_flags = [*api_flags]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._write_pki()

    def add_api_flags(self, *flags: str) -> None:
        """From the API server's next start on."""
        self._api_flags += flags

    def start(self) -> None:
        """etcd and the API server, ready."""
        self.start_etcd()
        self.start_api()

    def start_etcd(self) -> None:
        at = f"unix://{self.folder}"
        self._run(
            "etcd",
            *("--name=a", f"--data-dir={self.folder}/etcd", "--log-level=error"),
            *(
                "--unsafe-no-fsync",
                "--watch-progress-notify-interval=1s",
                f"--listen-client-urls={at}/e.sock",
            ),
            *("--advertise-client-urls=http://localhost:2379", f"--listen-peer-urls={at}/p.sock"),
            *("--initial-advertise-peer-urls=http://localhost:2380",),
            "--initial-cluster=a=http://localhost:2380",
        )

    def start_api(self, *, wait: bool = True) -> None:
        folder = self.folder
        self._run(
            "kube-apiserver",
            f"--etcd-servers=unix://{folder}/e.sock",
            *(f"--secure-port={self.port}", "--bind-address=127.0.0.1"),
            *("--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
            *("--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC"),
            *(f"--client-ca-file={folder}/ca.crt", f"--tls-cert-file={folder}/api.crt"),
            *(f"--tls-private-key-file={folder}/api.key", "--anonymous-auth=false"),
            "--service-account-issuer=https://kubernetes.default.svc",
            *(f"--service-account-key-file={folder}/sa.pub",),
            f"--service-account-signing-key-file={folder}/sa.key",
            f"--requestheader-client-ca-file={folder}/front.crt",
            *("--requestheader-allowed-names=front-proxy-client", "--profiling=false"),
            *("--requestheader-username-headers=X-Remote-User",),
            *("--requestheader-group-headers=X-Remote-Group",),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            *self._api_flags,
        )
        if wait:
            self.until_ready()

    def start_controller_manager(self, *flags: str) -> None:
        folder = self.folder
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self._component('system:kube-controller-manager')}",
            *("--secure-port=0", "--leader-elect=false", "--use-service-account-credentials"),
            *("--kube-api-qps=200", "--kube-api-burst=400", f"--root-ca-file={folder}/ca.crt"),
            f"--service-account-private-key-file={folder}/sa.key",
            f"--cluster-signing-cert-file={folder}/ca.crt",
            f"--cluster-signing-key-file={folder}/ca.key",
            *flags,
        )

    def start_scheduler(self, *flags: str) -> None:
        at = self._component("system:kube-scheduler")
        self._run(
            *("kube-scheduler", f"--kubeconfig={at}", "--secure-port=0", "--leader-elect=false"),
            *flags,
        )

    def restart(self, program: str) -> None:
        """The same program with the same words, after a stop or with other files."""
        arguments = self._running[program].args
        self.stop(program)
        assert isinstance(arguments, list)
        self._run(program, *arguments[1:])

    def stop(self, program: str, how: signal.Signals = signal.SIGKILL) -> None:
        running = self._running[program]
        running.send_signal(how)
        running.wait(timeout=30)

    def pid(self, program: str) -> int:
        return self._running[program].pid

    def signal(self, program: str, how: signal.Signals) -> None:
        self._running[program].send_signal(how)

    @contextmanager
    def without(self, program: str) -> Iterator[None]:
        """For a while it does not run."""
        self.stop(program)
        try:
            yield
        finally:
            self.restart(program)
            if program in ("etcd", "kube-apiserver"):
                self.until_ready()

    def close(self) -> None:
        # The API server first: without etcd it would log for nothing.
        for program in reversed(self._running):
            self.stop(program)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubeconfig(
        self, user: str = "admin", groups: Sequence[str] = ("system:masters",), days: float = 365
    ) -> dict[str, Any]:
        """A kubeconfig with a client certificate. The user admin may do anything."""
        certificate, key = self.ca.issue(user, groups=groups, days=days)
        credential = {
            "client-certificate-data": base64(certificate),
            "client-key-data": base64(key),
        }
        return self.kubeconfig_for(credential)

    def kubeconfig_for(self, user: dict[str, Any]) -> dict[str, Any]:
        cluster = {"server": self.url, "certificate-authority-data": base64(self.ca.pem)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
        }

    def until_ready(self) -> None:
        certificate, key = self.ca.issue("ready", groups=["system:masters"])
        pair = self.folder / "ready.pem"
        pair.write_bytes(certificate + key)
        trust = ssl.create_default_context(cadata=self.ca.pem.decode())
        trust.load_cert_chain(pair)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            code = self._running["kube-apiserver"].poll()
            assert code is None, f"kube-apiserver ended with {code}: {self.log('kube-apiserver')}"
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", context=trust, timeout=5):
                    return
            except OSError:  # refused, cut, or 500 while it starts
                time.sleep(0.05)
        raise AssertionError(f"not ready in {READY_SECONDS} s: {self.log('kube-apiserver')}")

    def compact(self, revision: str) -> None:
        """Makes etcd forget all that was before this resourceVersion."""
        with grpc.insecure_channel(f"unix:{self.folder}/e.sock") as channel:
            # CompactionRequest: revision (1), physical (2). Its proto is not worth a dependency.
            request = b"\x08" + _varint(int(revision)) + b"\x10\x01"
            channel.unary_unary("/etcdserverpb.KV/Compact")(request, timeout=10)

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text(errors="replace")[-3000:]

    def sni(self, name: str, certificate: bytes, key: bytes) -> str:
        """The flag that makes the API server show this certificate to whoever asks for this name."""
        files = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        for file, content in zip(files, (certificate, key), strict=True):
            file.write_bytes(content)
        return f"--tls-sni-cert-key={files[0]},{files[1]}:{name}"

    def _write_pki(self) -> None:
        account = ec.generate_private_key(ec.SECP256R1())
        public = account.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        names = ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"]
        certificate, key = self.ca.issue("kube-apiserver", names=names)
        for name, content in {
            "ca.crt": self.ca.pem,
            "ca.key": key_pem(self.ca.key),
            "front.crt": self.front.pem,
            "api.crt": certificate,
            "api.key": key,
            "sa.key": key_pem(account),
            "sa.pub": public,
        }.items():
            (self.folder / name).write_bytes(content)

    def _component(self, user: str) -> Path:
        path = self.folder / f"{user.rpartition(':')[2]}.kubeconfig"
        path.write_text(json.dumps(self.kubeconfig(user, groups=())))
        return path

    def _command(self, program: str) -> list[str]:
        """How a program is called; a test may put words before it."""
        return [str(self.programs / program)]

    def _run(self, program: str, *flags: str) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            self._running[program] = subprocess.Popen(
                [*self._command(program), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_LESS_COLLECTING, **os.environ},
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )


def _end_with_parent() -> None:
    _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def base64(content: bytes) -> str:
    return b64encode(content).decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
