"""Enters a node's namespaces and executes a program: `python -I -S enter.py PLAN PROGRAM NAME ARGUMENT …`, as root.

All programs of a node share one mount namespace with a file system of its own as `/`. The first program creates
it, the others join it; it is pinned nowhere and ends, with everything mounted in it, when the last of the
node's processes ends. Nothing is mounted where others could see it. A new mount namespace is the node's reboot:
processes of its pods that still run are killed first. Imports little: it runs before each program of each node.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import sys
import time
from typing import Any

MARKER = ".boatyard-node"
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 32, 4096, 16384
_MS_PRIVATE, _MS_SHARED = 1 << 18, 1 << 20
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_KILL_SECONDS = 20.0

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    with open(arguments[0], "rb") as file:
        plan = json.load(file)
    # Opened here, outside the node's file system: a new version must not wait for the node's reboot.
    program, argv = os.open(arguments[1], os.O_RDONLY | os.O_CLOEXEC), arguments[2:]
    os.umask(0o022)
    _enter_netns(plan["netns"])
    # From here on this process is found as one of the node's.
    with open(os.path.join(plan["group"], "cgroup.procs"), "w") as file:
        file.write("0")
    with open(plan["lock"], "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _join_namespaces(plan):
            _end_pods(plan["pods"])
            _make_namespaces(plan)
    os.chdir("/")
    _close_inherited()
    os.execve(program, argv, {**os.environ, **plan["environ"]})


def _enter_netns(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    _call("setns", file, _CLONE_NEWNET)
    os.close(file)


def _join_namespaces(plan: dict[str, Any]) -> bool:
    """Joins the node's mount namespace. False when no process of the node has one."""
    own_namespace = os.stat("/proc/self/ns/mnt").st_ino
    with open(os.path.join(plan["group"], "cgroup.procs")) as file:
        pids = [int(pid) for pid in file]
    for pid in pids:
        try:
            if os.stat(f"/proc/{pid}/ns/mnt").st_ino == own_namespace:
                continue  # another run of this script that has not joined yet
            with open(f"/proc/{pid}/root/{MARKER}") as file:
                if file.read() != plan["node"]:
                    continue
            process = os.pidfd_open(pid)
            _call("setns", process, _CLONE_NEWNS | _CLONE_NEWUTS)
        except OSError:
            continue  # the process has ended meanwhile
        os.close(process)
        return True
    return False


def _end_pods(groups: list[str]) -> None:
    """Kills the processes in the control groups of pods that no kubelet manages any more."""
    end = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < end:
        pids: set[int] = set()
        for group in groups:
            for place, _, files in os.walk(group):
                if "cgroup.procs" in files:
                    with open(os.path.join(place, "cgroup.procs")) as file:
                        pids.update(int(pid) for pid in file)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    raise OSError(errno.EBUSY, f"processes of pods in {groups[0]} do not end")


def _make_namespaces(plan: dict[str, Any]) -> None:
    root = plan["root"]
    _call("unshare", _CLONE_NEWNS | _CLONE_NEWUTS)
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("node", root, "tmpfs", 0, "mode=755,size=16m")
    for kind, source, target in plan["mounts"]:
        _MOUNTS[kind](source, root + target)
    with open(os.path.join(root, MARKER), "w") as file:
        file.write(plan["node"])
    _pivot(root)
    # Shared within the node, so that pods can have mount propagation.
    _mount("none", "/", "", _MS_REC | _MS_SHARED)
    name = plan["hostname"].encode()
    _call("sethostname", name, len(name))


def _bind(source: str, target: str) -> None:
    _make_mount_point(source, target)
    _mount(source, target, "", _MS_BIND | _MS_REC)


def _bind_read_only(source: str, target: str) -> None:
    _bind(source, target)
    _mount("none", target, "", _MS_BIND | _MS_REMOUNT | _MS_RDONLY)


def _link(source: str, target: str) -> None:
    os.symlink(source, target)


def _mount_tmpfs(mode: str, target: str) -> None:
    os.makedirs(target)
    _mount("node", target, "tmpfs", 0, f"mode={mode}")


def _mount_sysfs(_: str, target: str) -> None:
    os.makedirs(target)
    _mount("node", target, "sysfs", 0)


_MOUNTS = {
    "bind": _bind,
    "read-only": _bind_read_only,
    "link": _link,
    "memory": _mount_tmpfs,
    "sys": _mount_sysfs,
}


def _make_mount_point(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "ab"):
            pass


def _pivot(root: str) -> None:
    os.chdir(root)
    if _libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b".") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root failed")
    # The old root is now mounted over the new one. It is detached, so that we hold no mounts of others.
    _call("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
        operation=f"mount {target}",
    )


def _call(name: str, *arguments: Any, operation: str = "") -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation or name}: {os.strerror(number)}")


def _close_inherited() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the one we listed with is closed
                os.set_inheritable(int(name), False)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"cannot enter the node: {error}")
