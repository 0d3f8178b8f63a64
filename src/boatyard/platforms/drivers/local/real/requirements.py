"""What this machine needs for real nodes, where it is, and the remedy when it is missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boatyard.model.errors import Refused
from boatyard.platforms.drivers.local.real import cgroups
from boatyard.platforms.drivers.local.real.images import is_static

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Each with the package that brings it in Debian and Ubuntu.
_PROGRAMS = {
    "ip": "iproute2",
    "mount": "mount",
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
}
_PLUGINS = ("ptp", "host-local", "loopback", "portmap")
_PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "freezer")
# Runs in namespaces of its own, so that nothing is left afterwards.
_TRIAL_SCRIPT = """
mount -t tmpfs none /mnt && ip link add br0 type bridge && ip link add left type veth peer name right
"""


@dataclass(frozen=True)
class RuntimePrograms:
    """The paths of programs that a node's containerd runs."""

    shim: Path
    runc: Path
    plugins: Path  # a directory


def list_missing() -> tuple[str, ...]:
    """Returns what this machine lacks for real nodes, each with its remedy. Takes some milliseconds."""
    return tuple(_missing()) or tuple(_try_namespaces())


def check_requirements() -> None:
    """Refused, with everything that is missing, when this machine cannot run real nodes."""
    lacking = list_missing()
    if lacking:
        raise Refused("real nodes cannot be had here: " + "; ".join(lacking), reason="NoRealNodes")


def find_programs() -> RuntimePrograms:
    """Returns the paths of the programs. Refused when one is missing."""
    return RuntimePrograms(
        shim=find_program("containerd-shim-runc-v2"),
        runc=find_program("runc"),
        plugins=_require(_find_plugins(), "CNI plugins"),
    )


def find_program(name: str) -> Path:
    """Returns the path of a program. Refused when it is missing. Cheap."""
    return _require(_find(name), name)


def find_busybox() -> Path:
    """Returns the path of a static busybox. Refused when there is none."""
    return _require(_find_busybox(), "a static busybox")


def _require(path: Path | None, label: str) -> Path:
    if path is None:
        raise Refused(f"real nodes cannot be had here: {label} not found", reason="NoRealNodes")
    return path


def _missing() -> Iterator[str]:
    if platform.machine() not in ("x86_64", "aarch64"):
        yield f"processors of the kind {platform.machine()} are not supported"
    if os.geteuid() != 0:
        yield "not run as root; run boatyard as root"
    packages: dict[str, list[str]] = {}
    for program, package in _PROGRAMS.items():
        if _find(program) is None:
            packages.setdefault(package, []).append(program)
    if _find_plugins() is None:
        packages["containernetworking-plugins"] = [f"CNI plugins ({', '.join(_PLUGINS)})"]
    if _find_busybox() is None:
        packages["busybox-static"] = ["a static busybox"]
    for package, things in packages.items():
        yield f"{', '.join(things)} not found (Debian, Ubuntu: apt install {package})"
    yield from _missing_controllers()


def _missing_controllers() -> Iterator[str]:
    if cgroups.is_unified():
        controllers = set((cgroups.ROOT / "cgroup.controllers").read_text().split()) | {"freezer"}
    else:
        controllers = {hierarchy.name for hierarchy in cgroups.hierarchies()}
    lacking = sorted(set(_CONTROLLERS) - controllers)
    if lacking:
        yield f"control groups without {', '.join(lacking)}; mount them below {cgroups.ROOT}"
    elif os.geteuid() == 0 and not os.access(cgroups.process_hierarchy(), os.W_OK):
        yield f"{cgroups.process_hierarchy()} cannot be written; mount it for writing"


def _try_namespaces() -> Iterator[str]:
    command = ["unshare", "--net", "--mount", "sh", "-ec", _TRIAL_SCRIPT.strip()]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield f"namespaces could not be tried: {error}"
        return
    if completed.returncode != 0:
        error_text = " ".join(completed.stderr.split())
        yield f"network and mount namespaces, bridges or veth pairs do not work here: {error_text}"


def _find(name: str) -> Path | None:
    # A user's PATH often lacks the directories of the administrator's programs.
    path = shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)
    return Path(path) if path else None


def _find_plugins() -> Path | None:
    for directory in _PLUGIN_DIRECTORIES:
        if all(os.access(directory / plugin, os.X_OK) for plugin in _PLUGINS):
            return directory
    return None


def _find_busybox() -> Path | None:
    path = _find("busybox")
    return path if path is not None and is_static(path) else None
