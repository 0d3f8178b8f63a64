"""The twin as a child of `up`, and where its socket is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from boatyard.model.errors import Unavailable
from boatyard.wiring.service_process import end_with_child
from boatyard.wiring.settings import Settings
from boatyard.wiring.socket_paths import choose_socket_path

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0


def twin_socket_path(settings: Settings) -> str:
    """The twin's socket: as set, else in the data directory (see `choose_socket_path` for long paths)."""
    return settings.twin_socket or choose_socket_path(settings.data_dir, "twin.sock")


@asynccontextmanager
async def start_twin(settings: Settings) -> AsyncIterator[str]:
    """Runs the twin as a child process that ends with this one, even when this one is killed; yields its socket."""
    socket_path = twin_socket_path(settings)
    command = [
        sys.executable,
        "-m",
        "boatyard.twin",
        "--state",
        str(settings.data_dir / "twin"),
        "--socket",
        socket_path,
        "--delays",
        settings.twin_delays,
        "--with-parent",
    ]
    if settings.twin_layout:
        command += ["--layout", settings.twin_layout]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # Ctrl-C at the terminal must not reach the twin: it must outlive the work that is being ended.
        start_new_session=True,
    )
    try:
        await _wait_until_ready(process)
        async with end_with_child(process.wait(), "the twin"):
            yield socket_path
    finally:
        await _stop_process(process)


async def _wait_until_ready(process: asyncio.subprocess.Process) -> None:
    if process.stdout is None:
        raise Unavailable("the twin has no output to wait for")
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
    except TimeoutError as error:
        raise Unavailable(f"the twin was not ready within {_START_SECONDS:g} s") from error
    if line.strip() != b"ready":
        raise Unavailable("the twin could not start; its reason is above")


async def _stop_process(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
