"""The keys and certificates of one cluster: created once; the short-lived ones are renewed before they expire."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from boatyard.pki.authority import (
    Authority,
    Pem,
    generate_key,
    key_to_pem,
    public_key_to_pem,
    read_expiry,
)
from boatyard.platforms.drivers.local.allocation import LOOPBACK, first_service_address
from boatyard.platforms.drivers.local.records import ClusterRecord, write_durably

RENEW_BEFORE = timedelta(days=90)
ADMIN_USER = "admin"  # the user of the kubeconfig that comes with the cluster
ADMIN_GROUP = "boatyard:admins"  # the group of users for whom we issue access
KUBELET_CLIENT_GROUP = "boatyard:kubelet-clients"
SUPER_ADMIN_PEM = "super-admin.pem"
_AUTHORITIES = ("ca", "front-proxy-ca", "etcd-ca")
_PRIVATE_NAMES = ("super-admin", "admin")

IssueFunction = Callable[[Authority, datetime], Pem]


def ensure_certificates(
    record: ClusterRecord, directory: Path, *, server: str, inside: str, now: datetime
) -> bool:
    """Creates and renews what is needed. True when something changed: its readers must read it again.

    The API is at `server` for people, and at `inside` for the cluster's own components.
    """
    run, private = directory / "run", directory / "private"
    make_directory(run, record.user)
    make_directory(run / "pki", record.user)
    private.mkdir(exist_ok=True, mode=0o700)
    pki, changed = run / "pki", False
    for name in _AUTHORITIES:
        if not (pki / f"{name}.key").exists():
            pem = Authority.create(f"{record.slug} {name}", now=now).pem
            write_durably(pki / f"{name}.crt", pem.certificate, group=record.user)
            write_durably(pki / f"{name}.key", pem.key, group=record.user)
            changed = True
    if not (pki / "sa.pub").exists():
        key = generate_key()
        write_durably(pki / "sa.key", key_to_pem(key), group=record.user)
        write_durably(pki / "sa.pub", public_key_to_pem(key), group=record.user)
    for name, (authority, issue) in _list_leaf_certificates(record).items():
        place = private if name in _PRIVATE_NAMES else pki
        if _expires_soon(place / f"{name}.crt", now):
            pem = issue(load_authority(pki, authority), now)
            group = None if name in _PRIVATE_NAMES else record.user
            write_durably(place / f"{name}.key", pem.key, group=group)
            write_durably(place / f"{name}.crt", pem.certificate, group=group)
            changed = True
    # Our own client reads this file again when it changes. One file: certificate and key always match.
    pem = read_pem(private, "super-admin")
    _write_if_changed(private / SUPER_ADMIN_PEM, pem.certificate + pem.key, None)
    ca = (pki / "ca.crt").read_bytes()
    for name in (*_PRIVATE_NAMES, "controller-manager", "scheduler"):
        place, group = (private, None) if name in _PRIVATE_NAMES else (run, record.user)
        pem = read_pem(private if name in _PRIVATE_NAMES else pki, name)
        text = make_kubeconfig(
            server=server if name in _PRIVATE_NAMES else inside,
            name=record.wanted.name,
            user=name,
            ca=ca,
            pem=pem,
        )
        _write_if_changed(place / f"{name}.kubeconfig", text.encode(), group)
    return changed


def _write_if_changed(path: Path, content: bytes, group: int | None) -> None:
    if not path.exists() or path.read_bytes() != content:
        write_durably(path, content, group=group)


def make_directory(path: Path, group: int | None, *, owned: bool = False) -> None:
    """Creates a directory that the cluster's processes may read or, when `owned`, write."""
    path.mkdir(exist_ok=True, mode=0o700)
    if group is not None:
        os.chown(path, group if owned else -1, group)
        os.chmod(path, 0o700 if owned else 0o750)


def load_authority(pki: Path, name: str) -> Authority:
    return Authority(read_pem(pki, name))


def read_pem(pki: Path, name: str) -> Pem:
    return Pem((pki / f"{name}.crt").read_bytes(), (pki / f"{name}.key").read_bytes())


def make_kubeconfig(*, server: str, name: str, user: str, ca: bytes, pem: Pem) -> str:
    """Returns a kubeconfig as JSON, which is YAML: every client reads it, and no value can break its syntax."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": _base64(ca)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(pem.certificate),
                    "client-key-data": _base64(pem.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return json.dumps(config, indent=1) + "\n"


def _list_leaf_certificates(record: ClusterRecord) -> dict[str, tuple[str, IssueFunction]]:
    return {
        "apiserver": ("ca", lambda ca, now: _issue_server(record, ca, now)),
        "apiserver-kubelet": (
            "ca",
            lambda ca, now: ca.issue(
                "kube-apiserver-kubelet-client",
                organizations=[KUBELET_CLIENT_GROUP],
                client=True,
                now=now,
            ),
        ),
        "front-proxy-client": (
            "front-proxy-ca",
            lambda ca, now: ca.issue("front-proxy-client", client=True, now=now),
        ),
        "etcd-peer": (
            "etcd-ca",
            lambda ca, now: ca.issue(
                "etcd", addresses=[LOOPBACK], server=True, client=True, now=now
            ),
        ),
        # Used only by the keeper, to grant others their permissions.
        "super-admin": (
            "ca",
            lambda ca, now: ca.issue(
                "boatyard:super-admin", organizations=["system:masters"], client=True, now=now
            ),
        ),
        "admin": (
            "ca",
            lambda ca, now: ca.issue(ADMIN_USER, organizations=[ADMIN_GROUP], client=True, now=now),
        ),
        "controller-manager": (
            "ca",
            lambda ca, now: ca.issue("system:kube-controller-manager", client=True, now=now),
        ),
        "scheduler": (
            "ca",
            lambda ca, now: ca.issue("system:kube-scheduler", client=True, now=now),
        ),
    }


def _issue_server(record: ClusterRecord, ca: Authority, now: datetime) -> Pem:
    desired = record.wanted
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    names += ["kubernetes.default.svc.cluster.local"]
    if desired.api_name:
        names.append(desired.api_name)
    addresses = {LOOPBACK, first_service_address(desired.service_cidr)}
    addresses |= {address for address in (desired.api_address, desired.gateway) if address}
    return ca.issue(
        "kube-apiserver", names=names, addresses=sorted(addresses), server=True, now=now
    )


def _expires_soon(path: Path, now: datetime) -> bool:
    try:
        return read_expiry(path.read_bytes()) - now < RENEW_BEFORE
    except (OSError, ValueError):
        return True


def _base64(content: bytes) -> str:

    return base64.b64encode(content).decode()
