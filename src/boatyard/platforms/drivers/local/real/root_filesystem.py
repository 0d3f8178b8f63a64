"""The root file system of a node's programs: the machine's programs, read only, and everything else its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from boatyard.platforms.drivers.local.real import cgroups
from boatyard.platforms.drivers.local.real.mounts import file_system_of
from boatyard.platforms.drivers.local.real.node import RealNode
from boatyard.platforms.drivers.local.real.requirements import SYSTEM_PATH, RuntimePrograms
from boatyard.platforms.drivers.local.real.settings import FIRST_IN_PATH

IMAGES_FILE = "images.tar"
_SYSTEM_DIRECTORIES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SHARED_ETC_FILES = ("/etc/alternatives", "/etc/ld.so.cache")
_NODE_DIRECTORIES = {
    "etc": "/etc",
    "sockets": "/run/boatyard",
    "kubelet": "/var/lib/kubelet",
    "containerd": "/var/lib/containerd",
    "log": "/var/log",
}


def make_plan(node: RealNode, programs: RuntimePrograms) -> dict[str, Any]:
    """Returns the plan that `enter.py` reads."""
    group = cgroups.process_hierarchy() / node.netns
    return {
        "node": node.netns,
        "hostname": node.name,
        "netns": f"/run/netns/{node.netns}",
        "group": str(group / cgroups.SYSTEM_GROUP),
        "pods": [str(group / "kubepods")],
        "lock": str(node.directory / "lock"),
        "root": str(node.directory / "root"),
        "mounts": _mounts(node, programs),
        "environ": {"PATH": f"{FIRST_IN_PATH}:{SYSTEM_PATH}", "HOME": "/root"},
    }


def snapshotter(directory: Path) -> str:
    """Returns containerd's snapshotter: overlayfs, unless the directory itself is on an overlay file system."""
    return "native" if file_system_of(directory) in ("overlay", "aufs") else "overlayfs"


def _mounts(node: RealNode, programs: RuntimePrograms) -> list[tuple[str, str, str]]:
    mounts = [("read-only", "/usr", "/usr")]
    for path in _SYSTEM_DIRECTORIES:
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
    mounts += [
        ("bind", str(node.directory / name), path) for name, path in _NODE_DIRECTORIES.items()
    ]
    mounts.append(("link", "/run", "/var/run"))
    mounts += [("read-only", path, path) for path in _SHARED_ETC_FILES if os.path.exists(path)]
    mounts.append(("read-only", str(node.directory / IMAGES_FILE), f"/{IMAGES_FILE}"))
    for path in map(str, (programs.shim, programs.runc, programs.plugins)):
        if not path.startswith(("/usr/", *(f"{system}/" for system in _SYSTEM_DIRECTORIES))):
            mounts.append(("read-only", path, path))
    return mounts
