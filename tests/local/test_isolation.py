"""Two clusters share nothing, and nobody reads what is not theirs."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.real_clusters.environment import LocalEnvironment, until
from tests.support.real_clusters.local_cluster import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(shared: LocalEnvironment) -> LocalCluster:
    return await made(LocalCluster(shared, "order-1"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(shared: LocalEnvironment) -> LocalCluster:
    return await made(LocalCluster(shared, "order-2"))


async def made(cluster: LocalCluster) -> LocalCluster:
    await cluster.ensure()
    await cluster.until_whole()
    return cluster


def users(cluster: LocalCluster) -> set[int]:
    pids = [pid for pids in cluster.running().values() for pid in pids]
    return {user_of(pid) for pid in pids}


def user_of(pid: int) -> int:
    """Not of its files in /proc: of one that has changed its user those are root's."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each cluster a user of its own")
async def test_each_cluster_has_a_user_that_reads_nothing_of_the_other(
    shared: LocalEnvironment, one: LocalCluster, two: LocalCluster
) -> None:
    (mine,), (other,) = users(one), users(two)
    assert 0 not in (mine, other)
    assert mine != other
    for path in (shared.directory, shared.keeper.directory):
        path.chmod(0o755)  # so that only what is below protects

    def readable(cluster: LocalCluster) -> list[str]:
        looked = subprocess.run(
            ["find", str(cluster.directory), "-type", "f", "-readable"],
            user=mine,
            group=mine,
            extra_groups=(),
            capture_output=True,
            text=True,
            check=False,
        )
        return looked.stdout.split()

    assert readable(two) == []
    own = {Path(path).name for path in readable(one)}
    assert "apiserver.key" in own, "the question can be answered with yes"
    assert not own & {"admin.kubeconfig", "super-admin.kubeconfig", "cluster.json"}


async def test_two_clusters_share_no_authority_and_no_port(
    one: LocalCluster, two: LocalCluster
) -> None:
    for name in ("ca.crt", "etcd-ca.crt", "front-proxy-ca.crt", "sa.pub"):
        contents = [(c.directory / "run" / "pki" / name).read_bytes() for c in (one, two)]
        assert contents[0] != contents[1]
    ports = [set(cluster.record()["ports"].values()) for cluster in (one, two)]
    assert ports[0].isdisjoint(ports[1])
    kubeconfig = json.loads((await one.platform.access(one.key)).kubeconfig)
    other = (await two.platform.access(two.key)).api_url
    kubeconfig["clusters"][0]["cluster"] = {"server": other, "insecure-skip-tls-verify": True}
    said = await one.environment.kubectl(json.dumps(kubeconfig), "get", "namespaces", check=False)
    assert "must be logged in" in said


async def test_secrets_are_encrypted_where_they_lie(one: LocalCluster) -> None:
    await one.put("visible-or-not")

    def found(value: bytes) -> bool:
        files = [path for path in (one.directory / "run" / "var").rglob("*") if path.is_file()]
        return any(value in path.read_bytes() for path in files if "etcd-0" in path.parts)

    await until(lambda: found(b"visible-or-not"), "what is not secret can be found there")
    assert not found(b"secret-visible-or-not")
    assert not found(base64.b64encode(b"secret-visible-or-not"))


async def test_requests_are_on_record_without_their_contents(one: LocalCluster) -> None:
    await one.put("audited")
    log = one.directory / "run" / "var" / "audit-0.log"

    def lines() -> list[dict[str, object]]:
        found = [json.loads(line) for line in log.read_text().splitlines()]
        return [line for line in found if line.get("objectRef", {}).get("name") == "audited"]

    await until(lambda: len(lines()) >= 2, "both requests are in the log")
    assert {line["user"]["username"] for line in lines()} == {"admin"}  # type: ignore[index]
    assert "secret-audited" not in log.read_text()
    assert base64.b64encode(b"secret-audited").decode() not in log.read_text()


async def test_nobody_without_a_name_is_answered(one: LocalCluster) -> None:
    address = (await one.platform.access(one.key)).api_url
    for path in ("/api", "/version", "/readyz"):
        assert answer_to_nobody(f"{address}{path}") == 401


def answer_to_nobody(url: str) -> int:
    trusting = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(url, context=trusting, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
