"""Prepares what a control plane needs before its processes start: directories, files, free ports. Called by it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.model.errors import Unavailable
from boatyard.platforms.drivers.local import allocation, components
from boatyard.platforms.drivers.local.certificates import (
    SUPER_ADMIN_PEM,
    ensure_certificates,
    make_directory,
)
from boatyard.platforms.drivers.local.records import ClusterRecord, remove_tree, write_durably

if TYPE_CHECKING:
    from boatyard.platforms.drivers.local.control_plane import ControlPlane


def make_directories(record: ClusterRecord, directory: Path) -> None:
    make_directory(directory, record.user)
    make_directory(directory / "run", record.user)
    make_directory(directory / "run" / "var", record.user, owned=True)


def write_files(record: ClusterRecord, directory: Path) -> dict[str, str]:
    """Writes certificates and configuration. Returns, by program, a digest of the files it reads only at its start.

    A program whose digest has changed must be restarted. Each file is synced to disk before the next, which takes
    time: must not run in the event loop.
    API servers and etcd read their certificates again by themselves.
    """
    ensure_certificates(
        record,
        directory,
        server=components.server_url(record),
        inside=components.internal_url(record),
        now=datetime.now(UTC),  # noqa: TID251 - certificates are good by the wall clock
    )
    for name, content in (
        ("encryption.json", components.encryption_config(record)),
        ("audit-policy.json", components.audit_policy()),
        ("administrator.jsonl", components.administrator_policy()),
        (components.ADMISSION_FILE, components.admission_config()),  # read where nodes are real
    ):
        path = directory / "run" / name
        if not path.exists() or path.read_bytes() != content:
            write_durably(path, content, group=record.user)
    run = directory / "run"
    return {
        "kube-controller-manager": _digest_file(run / "controller-manager.kubeconfig"),
        "kube-scheduler": _digest_file(run / "scheduler.kubeconfig"),
    }


def _digest_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


async def replace_taken_ports(
    plane: ControlPlane, record: ClusterRecord, used_ports: Collection[int]
) -> ClusterRecord:
    """Returns the record with ports that are free. A new cluster gets others for ports that another program took.

    Unavailable when the cluster has run before: clients already know its ports.
    """
    lost = [
        name
        for name, port in record.ports.items()
        if not plane.supervisor.is_running(components.find_listener(record, name))
        and not allocation.is_port_free(port)
    ]
    if not lost:
        return record
    if record.version:
        message = f"Port {record.ports[lost[0]]} of this machine is taken by another program."
        plane.set_status(available=False, message=message)
        raise Unavailable(message, reason="PortTaken")
    await plane.stop_all(record)
    await plane.close()
    for path in plane.data_directories(record) if record.members > 1 else ():
        await asyncio.to_thread(remove_tree, path)  # the members' data contains the old ports
    new_ports = allocation.choose_ports(
        lost, set(used_ports), seed=f"{plane.directory}/{sorted(used_ports)}"
    )
    restored = "" if record.members > 1 else record.restored
    record = plane.update_record(ports={**record.ports, **new_ports}, restored=restored)
    await plane.prepare(record)
    return record


def make_clients(record: ClusterRecord, directory: Path) -> tuple[KubeClient, list[KubeClient]]:
    """Returns the keeper's client, and one for each of several API servers, which bypass their balancer."""
    private = directory / "private"
    pem_file = str(private / SUPER_ADMIN_PEM)
    config = replace(
        read_kubeconfig((private / "super-admin.kubeconfig").read_text()),
        certificate=b"",
        certificate_file=pem_file,
        key=b"",
        key_file=pem_file,
    )
    if record.members == 1 or record.real:
        return KubeClient(config), []
    servers = (f"https://{address}:{port}" for address, port in components.api_addresses(record))
    return KubeClient(config), [KubeClient(replace(config, server=server)) for server in servers]
