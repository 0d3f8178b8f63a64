"""Boatyard as people run it: real processes, real signals, a real PostgreSQL that goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from pathlib import Path

import pytest

from boatyard.api.authentication import TokenIssuer
from boatyard.client.client import Client
from boatyard.client.config import Target
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import BoatyardError, Exists, Unavailable
from boatyard.model.generated.osac import (
    Cluster,
    ClusterSpec,
    ClusterState,
    ClusterTemplateReference,
    Metadata,
)
from boatyard.twin.client import TwinClient
from tests.support.distributed import ANY_PORT, INSTANT, Distributed, address
from tests.support.processes import Program, run, wait_until_dead

pytestmark = pytest.mark.timeout(300)


def target(line: str, data: Path) -> Target:
    return Target(address=address(line), token=(data / "operator.token").read_text())


def new_cluster(name: str) -> Cluster:
    return Cluster(
        metadata=Metadata(name=name, tenant="acme"),
        spec=ClusterSpec(template=ClusterTemplateReference(name="small")),
    )


async def until_state(client: Client, ids: list[str], state: ClusterState | None) -> None:
    """Waits until all of them are in that state; None: gone."""
    async with asyncio.timeout(120):
        while True:
            listing = await client.list(CLUSTER)
            found = {row.id: row.document.status.state for row in listing.rows}
            if all(found.get(id) == state for id in ids):
                return
            await asyncio.sleep(0.1)


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if int(fields[1]) == pid:
            found.append(int(entry.name))
    return found


def test_up_is_ready_in_one_line_and_sigterm_leaves_nothing_running(home: Path) -> None:
    data = home / "data"
    with Program("up", "--data", str(data), *ANY_PORT, home=home) as up:
        assert up.ready().startswith("boatyard: ready")
        mine = children(up.pid)
        assert mine
        for name in ("operator.token", "seal.key", "issuer.key"):
            assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
        assert up.end(signal.SIGTERM) == 0
        for pid in mine:
            wait_until_dead(pid)
    assert not (home / "boatyard" / "current.json").exists()


@pytest.mark.parametrize("child, what", [("boatyard.twin", "the twin"), ("postgres", "PostgreSQL")])
def test_up_ends_in_one_line_when_a_child_of_it_is_killed(
    home: Path, child: str, what: str
) -> None:
    with Program("up", "--data", str(home / "data"), *ANY_PORT, home=home) as up:
        up.ready()
        mine = children(up.pid)
        words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in mine}
        (victim,) = [pid for pid in mine if any(w.endswith(child.encode()) for w in words[pid][:3])]
        os.kill(victim, signal.SIGKILL)
        assert up.process.wait(60) == 1
        for pid in mine:
            wait_until_dead(pid)
    said = [line for line in up.log.read_text().splitlines() if line.startswith("boatyard:")]
    assert said == [f"boatyard: {what} ended by itself; start again, nothing is lost"]


async def test_a_killed_up_loses_no_order(home: Path) -> None:
    data = home / "data"
    # Its lease is what whoever comes after it waits for.
    brief = {"BOATYARD_LEASE_SECONDS": "3"}
    with Program("up", "--data", str(data), *ANY_PORT, home=home, environ=brief) as up:
        async with Client(target(up.ready(), data)) as client:
            order = (await client.create_cluster(new_cluster("web-1"))).id
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
    with Program("up", "--data", str(data), *ANY_PORT, home=home, environ=INSTANT) as up:
        async with Client(target(up.ready(), data)) as client:
            await until_state(client, [order], ClusterState.READY)
            await client.delete_cluster(order)
            await until_state(client, [order], None)
        twin = TwinClient(data / "twin.sock")
        assert await twin.call("twin.truth") == {}
        await twin.close()
        assert up.end(signal.SIGTERM) == 0


async def test_two_serve_and_three_work_share_one_database(home: Path) -> None:
    async with Distributed(home) as environment:
        serves = [environment.start("serve", *ANY_PORT) for _ in range(2)]
        works = [environment.start("work") for _ in range(3)]
        lines = [serve.ready() for serve in serves]
        for work in works:
            work.ready()
        async with environment.client(lines[0]) as one, environment.client(lines[1]) as other:
            ids = []
            for number in range(12):
                door = (one, other)[number % 2]
                ids.append((await door.create_cluster(new_cluster(f"web-{number}"))).id)
            works[0].end(signal.SIGKILL)
            await until_state(other, ids, ClusterState.READY)
            await other.scale_cluster(ids[0], {"compute": 1})
            await one.scale_cluster(ids[1], {"compute": 5})
            for id in ids[2:]:
                await one.delete_cluster(id)
            await until_state(other, ids[2:], None)
            await until_state(one, ids[:2], ClusterState.READY)
        for program in (*serves, *works[1:]):
            assert program.end(signal.SIGTERM) == 0
        assert await environment.breaches([("Cluster", id, 0) for id in ids]) == []


async def test_nothing_acknowledged_is_lost_when_postgresql_is_restarted_under_load(
    home: Path,
) -> None:
    async with Distributed(home) as environment:
        serve, work = environment.start("serve", *ANY_PORT), environment.start("work")
        line = serve.ready()
        work.ready()
        acknowledged: list[str] = []
        errors: list[BoatyardError] = []
        stop = asyncio.Event()

        async def order(lane: int) -> None:
            number = 0
            async with environment.client(line) as client:
                while not stop.is_set():
                    try:
                        found = await client.create_cluster(new_cluster(f"web-{lane}-{number}"))
                        acknowledged.append(found.id)
                    except (Unavailable, Exists) as error:
                        # Exists: the answer to the first try was lost, the order was not.
                        errors.append(error)
                        await asyncio.sleep(0.05)
                    number += 1

        async def twenty_more() -> None:
            """Fails with what went wrong last and the server's log when orders no longer get through."""
            before = len(acknowledged)
            for _ in range(3000):
                if len(acknowledged) >= before + 20:
                    return
                assert not any(lane.done() for lane in lanes), "a lane ended"
                await asyncio.sleep(0.02)
            log = (await asyncio.to_thread(serve.log.read_text))[-3000:]
            raise AssertionError(
                f"{len(errors)} errors, the last {errors[-3:]}; the log ends: {log}"
            )

        lanes = [asyncio.create_task(order(lane)) for lane in range(4)]
        for _ in range(3):
            await twenty_more()
            pid = environment.postgres.pid
            os.kill(pid, signal.SIGQUIT)  # an immediate shutdown: like a crash
            await asyncio.to_thread(wait_until_dead, pid)
            await environment.postgres.stop()
            await environment.postgres.start()
        await twenty_more()
        stop.set()
        await asyncio.gather(*lanes)
        assert errors, "PostgreSQL went away three times and nobody noticed"
        async with environment.client(line) as client:
            listing = await client.list(CLUSTER)
            assert set(acknowledged) <= {row.id for row in listing.rows}
        assert serve.end() == 0
        assert work.end() == 0
        # Only now everything is at rest, as the invariants ask.
        assert await environment.breaches([("Cluster", id, 0) for id in acknowledged]) == []


def test_anonymous_is_refused_beyond_loopback(home: Path) -> None:
    found = run(
        "up", "--data", str(home / "data"), "--anonymous", "--grpc", "0.0.0.0:0", "--rest", "127.0.0.1:0",
        home=home,
    )  # fmt: skip
    assert found.returncode == 4
    assert "loopback" in found.stderr
    assert "Traceback" not in found.stderr


async def test_anonymous_on_loopback_needs_no_token(home: Path) -> None:
    with Program("up", "--data", str(home / "data"), "--anonymous", *ANY_PORT, home=home) as up:
        async with Client(Target(address=address(up.ready()))) as client:
            assert (await client.list(CLUSTER)).total == 0


async def test_a_bare_data_directory_has_no_catalogue(home: Path) -> None:
    with Program("up", "--data", str(home / "data"), "--bare", *ANY_PORT, home=home) as up:
        up.ready()
        found = run("get", "clustertemplates", "-o", "name", home=home, environ=up.environ)
        assert (found.returncode, found.stdout.strip()) == (0, "")


async def test_tls_made_by_ourselves_is_checked_by_the_command_line(home: Path) -> None:
    with Program("up", "--data", str(home / "data"), "--tls", *ANY_PORT, home=home) as up:
        line = up.ready()
        assert "https://" in line
        found = run("get", "hubs", "-o", "name", home=home, environ=up.environ)
        assert found.returncode == 0, found.stderr
        plain = run("--address", f"http://{address(line)}", "get", "hubs", home=home)
        assert plain.returncode != 0


async def test_a_token_made_on_the_command_line_is_good_for_its_tenant_only(home: Path) -> None:
    data = home / "data"
    with Program("up", "--data", str(data), *ANY_PORT, home=home) as up:
        line = up.ready()
        made = run(
            "token", "create", "--tenant", "acme", "--user", "ann", "--role", "member",
            "--data", str(data), home=home,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        token = made.stdout.strip()
        async with Client(Target(address=address(line), token=token)) as client:
            mine = (await client.create_cluster(new_cluster("mine"))).document
            assert mine.metadata.tenant == "acme"
        other = TokenIssuer.load_or_create(home / "other.key")
        assert other.kid not in token
        hubs = run("--token", token, "get", "hubs", home=home, environ=up.environ)
        assert hubs.returncode == 4


def test_a_database_is_not_opened_with_another_key(home: Path) -> None:
    data = home / "data"
    with Program("up", "--data", str(data), *ANY_PORT, home=home) as up:
        up.ready()
        up.end()
    (data / "seal.key").unlink()
    found = run("up", "--data", str(data), *ANY_PORT, home=home)
    assert found.returncode == 4
    assert "key" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    "args, word",
    [
        pytest.param(("serve",), "--database-url", id="serve needs a database"),
        pytest.param(("work",), "--database-url", id="work needs a database"),
        pytest.param(("up", "--tls-cert", "x.pem"), "--tls-key", id="a certificate needs its key"),
        pytest.param(("token", "create", "--user", "ann", "--ttl", "soon"), "--ttl", id="a time"),
    ],
)
def test_wrong_flags_are_told_in_one_line(home: Path, args: tuple[str, ...], word: str) -> None:
    found = run(*args, *(() if args[0] == "token" else ("--data", str(home / "data"))), home=home)
    assert found.returncode in (2, 4)
    assert word in found.stderr
    assert "Traceback" not in found.stderr
