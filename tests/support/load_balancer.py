"""The load balancer as a program, servers behind it, and what the kernel says of both."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from boatyard.platforms.drivers.local import balancer

COMMAND = (sys.executable, "-I", "-S", balancer.__file__)
SECONDS = 10.0

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RunningBalancer:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def ask(self, words: bytes = b"?") -> bytes:
        """Says the words and listens to the end; empty when nobody is there."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(words)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(), SECONDS)
        except OSError:
            return b""
        finally:
            writer.close()

    async def heard(self, text: str) -> None:
        """Waits until it says so."""
        assert self.process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while text not in (line := (await self.process.stderr.readline()).decode()):
                assert line, f"it ended without saying {text!r}"


@asynccontextmanager
async def running(upstreams: Sequence[int | str], *options: str) -> AsyncIterator[RunningBalancer]:
    port = free_port()
    names = [f"127.0.0.1:{u}" if isinstance(u, int) else u for u in upstreams]
    words = [f"--listen=127.0.0.1:{port}", *(f"--upstream={name}" for name in names), *options]
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *words, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    found = RunningBalancer(process, port)
    try:
        await found.heard("ready")
        yield found
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def upstream(answer: bytes | Handler, port: int = 0) -> AsyncIterator[int]:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(answer, bytes):
                if await reader.read():  # a health check says nothing
                    writer.write(answer)
            else:
                await answer(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(say, "127.0.0.1", port)
    # What nobody takes is soon too much; connections inherit this.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def until_refused(port: int) -> None:
    def is_refused() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED

    await until(is_refused)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.01)


def waits_unread(port: int, writer: asyncio.StreamWriter) -> bool:
    """Whether the balancer leaves lying what the client has sent."""
    client: int = writer.get_extra_info("sockname")[1]
    ends = f" 0100007F:{port:04X} 0100007F:{client:04X} "
    for line in Path("/proc/net/tcp").read_text().splitlines():
        if ends in line:
            return int(line.split()[4].partition(":")[2], 16) > 0
    return False


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory(pid: int) -> int:
    """Resident, in kB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
