"""The admin credentials of a simulated cluster: well formed, but nothing accepts them."""

from __future__ import annotations

import base64
import hashlib

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
contexts:
- name: admin@{name}
  context:
    cluster: {name}
    user: admin
current-context: admin@{name}
users:
- name: admin
  user:
    token: {token}
"""


def make_access(name: str, api_name: str, ingress_name: str, seed: str) -> dict[str, str]:
    """Makes credentials that depend on the seed only: the same for the same seed."""
    api_url = f"https://{api_name}:6443"
    apps = ingress_name.removeprefix("*.")
    return {
        "api_url": api_url,
        "console_url": f"https://console.{apps}",
        "kubeconfig": KUBECONFIG.format(
            name=_to_yaml_name(name),
            server=api_url,
            authority=_make_authority(seed),
            token=_derive_word(seed, "token", 40),
        ),
        "username": "kubeadmin",
        "password": "-".join(_derive_word(seed, f"password {part}", 5) for part in range(4)),
    }


def _to_yaml_name(name: str) -> str:
    """The name for use in YAML: characters that need quotes become dashes."""
    return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in name)


def _make_authority(seed: str) -> str:
    """A PEM block, in base64, whose bytes are no certificate."""
    body = base64.encodebytes(_derive_bytes(seed, "authority", 480)).decode().replace("\n", "")
    lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    pem = f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
    return base64.b64encode(pem.encode()).decode()


def _derive_word(seed: str, purpose: str, length: int) -> str:
    return base64.b32encode(_derive_bytes(seed, purpose, length)).decode()[:length].lower()


def _derive_bytes(seed: str, purpose: str, length: int) -> bytes:
    return hashlib.shake_256(f"{purpose} {seed}".encode()).digest(length)
