"""The file system a node's programs see as `/`: the machine's programs, read only, and everything else its own."""

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
    """What `enter.py` reads."""
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
    """Layers of images are laid over each other, unless the directory itself lies on such a thing."""
    return "native" if file_system_of(directory) in ("overlay", "aufs") else "overlayfs"


def _mounts(node: RealNode, programs: Programs) -> list[tuple[str, str, str]]:
    found = [("read-only", "/usr", "/usr")]
    for place in _SYSTEM:
        if os.path.islink(place):
            found.append(("link", os.readlink(place), place))
        elif os.path.isdir(place):
            found.append(("read-only", place, place))
    found += [
        ("bind", "/proc", "/proc"),
        ("bind", "/dev", "/dev"),
        ("sys", "", "/sys"),  # anew: of this network namespace
        ("bind", "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ("memory", "755", "/run"),
        ("memory", "1777", "/tmp"),
        ("memory", "700", "/root"),
    ]
    found += [("bind", str(node.directory / name), place) for name, place in _OWN.items()]
    found.append(("link", "/run", "/var/run"))
    found += [("read-only", place, place) for place in _FROM_ETC if os.path.exists(place)]
    found.append(("read-only", str(node.directory / IMAGES), f"/{IMAGES}"))
    for place in map(str, (programs.shim, programs.runc, programs.plugins)):
        if not place.startswith(("/usr/", *(f"{system}/" for system in _SYSTEM))):
            found.append(("read-only", place, place))
    return found
