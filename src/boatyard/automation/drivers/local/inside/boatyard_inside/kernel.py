"""System calls that Python does not offer. Used by `confine`."""

from __future__ import annotations

import ctypes
import os
import platform
import signal

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_CAPABILITIES_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _call("unshare", flags)


def own_user_namespace() -> None:
    """Enters a new user namespace in which our uid stays the same; in it we have the right to mount."""
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def end_with_parent() -> None:
    """This process is killed when its parent ends, however it ends."""
    _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def adopt_orphans() -> None:
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def give_up_rights() -> None:
    """Drops all capabilities; no program that is executed can get any back."""
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _call("capset", header, nothing)


def set_hostname(name: str) -> None:
    _call("sethostname", name.encode(), len(name))


def make_mounts_private() -> None:
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)


def mount_memory(target: str, options: str) -> None:
    _mount("boatyard", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def mount_processes(target: str) -> None:
    _mount("proc", target, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def bind(source: str, target: str) -> None:
    _mount(source, target, "", _MS_BIND | _MS_REC)


def bind_read_only(source: str, target: str) -> None:
    bind(source, target)
    # An ordinary user may only remount with all restrictions that the mount already has.
    flags = os.statvfs(target).f_flag & (_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    flags |= os.statvfs(target).f_flag & (os.ST_NOATIME | os.ST_RELATIME | os.ST_NODIRATIME)
    _mount("none", target, "", _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | flags)


def change_root(root: str) -> None:
    os.chdir(root)
    if _libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b".") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root failed")
    # The old root is now mounted over the new one; unmount it with everything in it.
    _call("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def _mount(source: str, target: str, filesystem: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), filesystem.encode())
    _call("mount", *arguments, ctypes.c_ulong(flags), options.encode(), operation=f"mount {target}")


def _call(name: str, *arguments: object, operation: str = "") -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation or name}: {os.strerror(number)}")
