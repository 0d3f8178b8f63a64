"""The TCP load balancer, as the program it is."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from boatyard.platforms.drivers.local import balancer
from tests.support.load_balancer import (
    SECONDS,
    cpu_seconds,
    free_port,
    memory,
    open_files,
    running,
    until,
    until_refused,
    upstream,
    waits_unread,
)


async def test_connections_go_round_robin() -> None:
    async with upstream(b"a") as a, upstream(b"b") as b, running([a, b]) as balancer:
        answers = [await balancer.ask() for _ in range(4)]
    assert sorted(answers) == [b"a", b"a", b"b", b"b"]
    assert answers[0] != answers[1]


async def test_one_that_refuses_is_passed_over_without_the_client_noticing() -> None:
    dead = free_port()
    async with upstream(b"a") as a, upstream(b"c") as c, running([a, dead, c]) as balancer:
        assert await balancer.ask() in (b"a", b"c")
        await balancer.heard("is down")
        answers = [await balancer.ask() for _ in range(6)]
    assert sorted(set(answers)) == [b"a", b"c"]
    assert answers.count(b"a") == 3, "the one after the dead one must not have the double load"


async def test_one_that_stays_silent_is_passed_over_after_a_second() -> None:
    # A backlog that is full: the kernel drops what comes, as a host without power would.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        address = silent.getsockname()
        fill = [socket.socket() for _ in range(4)]
        for sock in fill:
            sock.setblocking(False)
            sock.connect_ex(address)
        async with upstream(b"a") as a, running([a, address[1]]) as balancer:
            began = time.monotonic()
            answers = [await balancer.ask() for _ in range(4)]
        for sock in fill:
            sock.close()
    assert answers == [b"a"] * 4
    assert 0.5 < time.monotonic() - began < 3.0


async def test_one_that_comes_back_is_used_again() -> None:
    port = free_port()
    async with upstream(b"a") as a, running([a, port]) as balancer:
        assert {await balancer.ask() for _ in range(3)} == {b"a"}
        async with upstream(b"b", port):
            await balancer.heard(f"{port} is up")
            assert {await balancer.ask() for _ in range(2)} == {b"a", b"b"}


async def test_a_check_finds_one_that_has_gone_before_a_client_does() -> None:
    async with upstream(b"a") as a, running([a, free_port()]) as balancer:
        await balancer.heard("is down")
        assert await balancer.ask() == b"a"


async def test_with_all_down_the_client_is_told_at_once() -> None:
    async with running([free_port(), free_port()]) as balancer:
        assert await balancer.ask() == b""


async def test_much_goes_both_ways_at_once_and_nothing_is_lost() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(100_000):
            writer.write(chunk)
            await writer.drain()

    content = os.urandom(20_000_000)
    async with upstream(echo) as port, running([port]) as balancer:
        reader, writer = await asyncio.open_connection("127.0.0.1", balancer.port)

        async def write() -> None:
            writer.write(content)
            await writer.drain()
            writer.write_eof()

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(write())
            answer = group.create_task(reader.read())
        writer.close()
    assert answer.result() == content


async def test_a_client_that_does_not_read_stops_the_upstream_and_not_the_others() -> None:
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        words = await reader.readline()
        while words == b"pour\n":
            writer.write(bytes(1_000_000))
            written += 1_000_000
            await writer.drain()
        writer.write(b"fine")

    async with upstream(pour) as port, running([port]) as balancer:
        _, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
        writer.write(b"pour\n")
        await writer.drain()
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.3)
        assert await balancer.ask(b"hello\n") == b"fine"
        assert memory(balancer.process.pid) < 20_000
        cpu = cpu_seconds(balancer.process.pid)
        await asyncio.sleep(0.5)
        assert cpu_seconds(balancer.process.pid) - cpu < 0.1, "it must wait, not spin"
        writer.transport.abort()


async def test_a_client_that_vanishes_while_much_is_under_way_is_let_go() -> None:
    stuck = asyncio.Event()

    async def take_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await stuck.wait()

    async with upstream(take_nothing) as port, running([port]) as balancer:
        before = open_files(balancer.process.pid)
        _, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
        writer.write(bytes(30_000_000))
        await until(lambda: waits_unread(balancer.port, writer))
        linger = struct.pack("ii", 1, 0)  # not at all: a reset
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
        await until(lambda: open_files(balancer.process.pid) == before)
        stuck.set()


async def test_what_a_client_said_before_it_left_arrives_though_nobody_takes_it_yet() -> None:
    stuck, taken = asyncio.Event(), []

    async def take_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write_eof()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await stuck.wait()
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        taken.append(len(await reader.read()))

    async with upstream(take_late) as port, running([port]) as balancer:
        reader, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
        assert await reader.read() == b""
        said = lying = 0
        while lying < 10:  # looks in a row: it is not just about to be taken
            if not waits_unread(balancer.port, writer):
                lying = 0
                writer.write(bytes(16_384))
                said += 16_384
            await asyncio.sleep(0.002)
            lying += 1
        writer.write_eof()
        # Now the kernel says of the client that it has hung up, and goes on saying so.
        await until(lambda: not writer.transport.get_write_buffer_size())
        cpu = cpu_seconds(balancer.process.pid)
        await asyncio.sleep(0.5)
        assert cpu_seconds(balancer.process.pid) - cpu < 0.1, "it must wait, not spin"
        stuck.set()
        await until(lambda: bool(taken))
        writer.close()
    assert taken == [said]


async def test_asked_to_end_it_takes_no_more_and_lets_the_others_finish() -> None:
    came, go = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        came.set()
        await go.wait()
        writer.write(b"done")

    async with upstream(slow) as port, running([port], "--drain=30") as balancer:
        asked = asyncio.create_task(balancer.ask())
        await came.wait()
        balancer.process.send_signal(signal.SIGTERM)
        await until_refused(balancer.port)
        assert balancer.process.returncode is None
        go.set()
        assert await asked == b"done"
        assert await asyncio.wait_for(balancer.process.wait(), SECONDS) == 0


async def test_who_does_not_finish_is_cut_when_the_time_is_over() -> None:
    came = asyncio.Event()

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()

    async with upstream(never) as port, running([port], "--drain=0.2") as balancer:
        reader, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
        await came.wait()
        balancer.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(balancer.process.wait(), SECONDS) == 0
        writer.close()
        del reader


async def test_its_port_is_free_for_the_next_while_it_drains() -> None:
    came = asyncio.Event()

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()

    async with upstream(never) as port, running([port], "--drain=30") as balancer:
        _, writer = await asyncio.open_connection("127.0.0.1", balancer.port)
        await came.wait()
        balancer.process.send_signal(signal.SIGTERM)
        await until_refused(balancer.port)
        with socket.create_server(("127.0.0.1", balancer.port)):
            assert balancer.process.returncode is None
        writer.close()


async def test_it_is_small_and_quick() -> None:
    async with upstream(b"a") as a, running([a]) as balancer:
        # Its own time: how long others let it wait is not its fault.
        assert cpu_seconds(balancer.process.pid) < 0.1
        await asyncio.gather(*(balancer.ask() for _ in range(100)))
        assert memory(balancer.process.pid) < 15_000


@pytest.mark.parametrize(
    "words, said",
    [
        pytest.param(["--listen=127.0.0.1:0"], "--upstream", id="no upstream"),
        pytest.param(["--upstream=127.0.0.1:1"], "--listen", id="nowhere to listen"),
        pytest.param(["--listen=here", "--upstream=127.0.0.1:1"], "here", id="no port"),
        pytest.param(["--verbose"], "--verbose", id="an unknown option"),
        pytest.param(["--user=root"], "root", id="a user by name"),
        pytest.param(
            ["--listen=192.0.2.1:1", "--upstream=127.0.0.1:1"], "192.0.2.1", id="not our address"
        ),
    ],
)
def test_bad_use_is_said(words: Sequence[str], said: str) -> None:
    done = refused(words)
    assert said in done.stderr


def test_a_network_namespace_is_refused_when_not_root() -> None:
    words = ["--listen=127.0.0.1:0", "--upstream=127.0.0.1:1", "--netns=some"]
    done = refused(words, nobody=os.geteuid() == 0)
    assert "root" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root to see it")
def test_a_network_namespace_that_is_not_there_is_refused() -> None:
    words = ["--listen=127.0.0.1:0", "--upstream=127.0.0.1:1", "--netns=by-none-such"]
    assert "by-none-such" in refused(words).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root to see it")
async def test_it_carries_as_the_user_it_is_told_to_be() -> None:
    user = 1_500_000_001
    async with upstream(b"a") as a, running([a], f"--user={user}") as balancer:
        assert await balancer.ask() == b"a"
        fields = status_of(balancer.process.pid)
        assert fields["Uid"] == fields["Gid"] == 4 * [str(user)]
        assert fields["Groups"] == []
        assert int(fields["CapEff"][0], 16) == int(fields["CapPrm"][0], 16) == 0


def status_of(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


def test_who_may_not_become_another_user_says_so() -> None:
    words = ["--listen=127.0.0.1:0", "--upstream=127.0.0.1:1", "--user=1500000001"]
    assert "1500000001" in refused(words, nobody=os.geteuid() == 0).stderr


def refused(words: Sequence[str], *, nobody: bool = False) -> subprocess.CompletedProcess[str]:
    run = ["-c", _BE_NOBODY] if nobody else []
    done = subprocess.run(
        [sys.executable, "-I", "-S", *run, balancer.__file__, *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    return done


# The libraries first: nobody but us may get at them.
_BE_NOBODY = """
import __future__, ctypes, collections.abc, errno, os, select, signal, socket, sys, time
text = open(sys.argv.pop(1)).read()
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
exec(compile(text, "balancer", "exec"))
"""
