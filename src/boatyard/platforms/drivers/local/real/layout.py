"""The root file system of a node's programs: the machine's programs, read only, and everything else its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from boatyard.platforms.drivers.local.real import cgroups
from boatyard.platforms.drivers.local.real.mounts import file_system_of
from boatyard.platforms.drivers.local.real.node import RealNode
from boatyard.platforms.drivers.local.real.requirements import PATH, Programs
from boatyard.platforms.drivers.local.real.settings import FIRST_IN_PATH

IMAGES = "images.tar"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FROM_ETC = ("/etc/alternatives", "/etc/ld.so.cache")
_OWN = {
    "etc": "/etc",
    "sockets": "/run/boatyard",
    "kubelet": "/var/lib/kubelet",
    "containerd": "/var/lib/containerd",
    "log": "/var/log",
}


def make_plan(node: RealNode, programs: Programs) -> dict[str, Any]:
    """Returns the plan that `enter.py` reads."""
    group = cgroups.tracker() / node.netns
    return {
        "node": node.netns,
        "hostname": node.name,
        "netns": f"/run/netns/{node.netns}",
        "group": str(group / cgroups.SYSTEM),
        "pods": [str(group / "kubepods")],
        "lock": str(node.directory / "lock"),
        "root": str(node.directory / "root"),
        "mounts": _mounts(node, programs),
        "environ": {"PATH": f"{FIRST_IN_PATH}:{PATH}", "HOME": "/root"},
    }


def snapshotter(directory: Path) -> str:
    """Returns containerd's snapshotter: overlayfs, unless the directory itself is on an overlay file system."""
    return "native" if file_system_of(directory) in ("overlay", "aufs") else "overlayfs"


def _mounts(node: RealNode, programs: Programs) -> list[tuple[str, str, str]]:
    mounts = [("read-only", "/usr", "/usr")]
    for path in _SYSTEM:
        if os.path.islink(path):
            mounts.append(("link", os.readlink(path), path))
        elif os.path.isdir(path):
            mounts.append(("read-only", path, path))
    mounts += [
        ("bind", "/proc", "/proc"),
        ("bind", "/dev", "/dev"),
        ("sys", "", "/sys"),  # anew: of this network namespace
        ("bind", "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ("memory", "755", "/run"),
        ("memory", "1777", "/tmp"),
        ("memory", "700", "/root"),
    ]
    mounts += [("bind", str(node.directory / name), path) for name, path in _OWN.items()]
    mounts.append(("link", "/run", "/var/run"))
    mounts += [("read-only", path, path) for path in _FROM_ETC if os.path.exists(path)]
    mounts.append(("read-only", str(node.directory / IMAGES), f"/{IMAGES}"))
    for path in map(str, (programs.shim, programs.runc, programs.plugins)):
        if not path.startswith(("/usr/", *(f"{system}/" for system in _SYSTEM))):
            mounts.append(("read-only", path, path))
    return mounts
