"""A cluster in memory that keeps certificate requests and signs them, well or badly."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from boatyard.kube.kinds import KubeKind
from boatyard.model.errors import NotFound, Refused, Unavailable

NOW = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)


class SigningCluster:
    """Certificate requests as a cluster keeps them, and a signer with a mood."""

    def __init__(self, mood: str = "good") -> None:
        self.mood = mood
        self.requests: dict[str, dict[str, Any]] = {}
        self.applied: dict[str, dict[str, Any]] = {}
        self.sent: list[dict[str, Any]] = []
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._looks = 0

    async def apply(self, kind: KubeKind, name: str, body: dict[str, Any]) -> dict[str, Any]:
        self.applied[f"{kind.plural}/{name}"] = body
        return body

    async def create(self, kind: KubeKind, body: dict[str, Any]) -> dict[str, Any]:
        self.requests[body["metadata"]["name"]] = {**body, "status": {}}
        self.sent.append(body)
        if self.mood == "lost":
            raise Unavailable("the connection was cut")
        return body

    async def merge_patch(
        self, kind: KubeKind, name: str, patch: dict[str, Any], *, subresource: str
    ) -> dict[str, Any]:
        assert subresource == "approval"
        if self.mood == "forbidden":
            raise Refused("approving is forbidden")
        self.requests[name]["status"] |= patch["status"]
        return self.requests[name]

    async def get(self, kind: KubeKind, name: str) -> dict[str, Any]:
        if name not in self.requests:
            raise NotFound(name)
        found = self.requests[name]
        self._looks += 1
        if self._looks > 2:
            self._sign(found)
        return found

    async def delete(self, kind: KubeKind, name: str) -> bool:
        if self.mood == "stuck":
            raise Unavailable("the API server is gone")
        return self.requests.pop(name, None) is not None

    def _sign(self, found: dict[str, Any]) -> None:
        status = found["status"]
        assert status["conditions"][0]["type"] == "Approved"
        match self.mood:
            case "silent":
                return
            case "failing":
                failed = {"type": "Failed", "message": "no such signer"}
                status["conditions"] = [*status["conditions"], failed]
            case "garbage":
                status["certificate"] = base64.b64encode(b"junk").decode()
            case "noise":
                status["certificate"] = "not base64!"
            case _:
                status["certificate"] = base64.b64encode(self._signed(found["spec"])).decode()

    def _signed(self, spec: dict[str, Any]) -> bytes:
        asked = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        key: Any = asked.public_key()
        subject = asked.subject
        lifetime = timedelta(seconds=spec["expirationSeconds"])
        if self.mood == "swapped":
            key = self._key.public_key()
        if self.mood == "renamed":
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "system:admin")])
        if self.mood == "generous":
            lifetime = timedelta(days=365)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
            .public_key(key)
            .serial_number(7)
            .not_valid_before(NOW - timedelta(minutes=5))
            .not_valid_after(NOW + lifetime)
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    async def close(self) -> None:
        pass
