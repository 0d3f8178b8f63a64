"""Named network namespaces: create, enter, list, find the processes inside, delete."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from boatyard.model.errors import Unavailable
from boatyard.netns.commands import run_command

NETNS_DIRECTORY = Path("/run/netns")
_CLONE_NEWNET = 0x40000000

Result = TypeVar("Result")


async def ensure_namespace(name: str) -> None:
    """Creates the namespace unless it exists. A name that a killed `ip` left without a namespace is replaced."""
    if not is_namespace(name):
        await delete_namespace(name)
        await run_command("ip", "netns", "add", name)


async def delete_namespace(name: str) -> None:
    """Deletes the name; the namespace ends with its last process. Does nothing when there is none."""
    if name in list_namespaces(name):
        await run_command("ip", "netns", "delete", name)


def list_namespaces(prefix: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(NETNS_DIRECTORY) if name.startswith(prefix))
    except FileNotFoundError:
        return []


def is_namespace(name: str) -> bool:
    try:
        file_info = os.stat(NETNS_DIRECTORY / name)
    except FileNotFoundError:
        return False
    # A name without a namespace is an ordinary file; a real one lies on the kernel's nsfs, like our own.
    return file_info.st_dev == os.stat("/proc/self/ns/net").st_dev


def list_pids(name: str) -> Iterator[int]:
    """Yields the pids of processes whose main thread is inside."""
    try:
        target = os.stat(NETNS_DIRECTORY / name)
    except FileNotFoundError:
        return
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            file_info = os.stat(f"/proc/{entry}/ns/net")
        except OSError:
            continue  # it has ended, or we may not look at it
        if (file_info.st_dev, file_info.st_ino) == (target.st_dev, target.st_ino):
            yield int(entry)


async def run_inside(name: str, work: Callable[[], Result]) -> Result:
    """Calls `work` inside the namespace and returns its result. Unavailable when it cannot be entered."""
    return await asyncio.to_thread(run_inside_blocking, name, work)


def run_inside_blocking(name: str, work: Callable[[], Result]) -> Result:
    """Does the same as `inside`, for callers that may block."""

    def enter_and_work() -> Result:
        _enter(name)
        return work()

    # In a thread of its own, which ends afterwards: it stays in the namespace, so nobody else can use it.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(enter_and_work).result()


def _enter(name: str) -> None:
    try:
        file = os.open(NETNS_DIRECTORY / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"there is no network namespace {name}") from error
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file, _CLONE_NEWNET) != 0:
            raise Unavailable(f"cannot enter {name}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(file)
