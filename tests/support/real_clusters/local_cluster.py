"""One local cluster in the hands of a test: asked for as a worker would, and looked at from outside."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.kube.kinds import CONFIG_MAPS, SECRETS
from boatyard.model.errors import BoatyardError, Unavailable
from boatyard.model.outcome import Done, Outcome
from boatyard.platforms.drivers.local.records import slug_of
from boatyard.platforms.port import DesiredCluster, DesiredNode
from tests.support.real_clusters.environment import PATIENCE, LocalEnvironment, until

OLD, NEW = "1.35.4", "1.36.3"

WANTED = DesiredCluster(
    name="one",
    version=NEW,
    release_image="",
    api_name="api.one.boston.example",
    api_address="198.51.100.1",
    ingress_name="*.apps.one.boston.example",
    ingress_address="198.51.100.2",
    pod_cidr="",
    service_cidr="",
    machine_cidr="10.4.0.0/24",
    gateway="10.4.0.1",
    ssh_public_key="",
    pull_secret="",
)
KINDS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class LocalCluster:
    """A keeper that is away is waited for, as a worker does."""

    def __init__(self, environment: LocalEnvironment, order: str, **wanted: Any) -> None:
        self.environment = environment
        self.order = order
        self.key = f"{order}/cluster"
        self.slug = slug_of(self.key)
        self.directory = environment.keeper.directory / "clusters" / self.slug
        self.platform = environment.platform()
        self.wanted = replace(WANTED, **wanted)
        self._kubeconfig = ""  # as fetched last

    # --- asked for ----------------------------------------------------------------------------

    async def ensure(self, *, seconds: float = PATIENCE, **changes: Any) -> Done:
        """Until it is so."""
        self.wanted = replace(self.wanted, **changes)
        return await self._until_done(
            lambda: self.platform.ensure_cluster(self.key, self.wanted), seconds
        )

    async def release(self) -> None:
        await self._until_done(lambda: self.platform.release_cluster(self.key), PATIENCE)

    async def backup(self, name: str, folder: str = "") -> Done:
        key = f"{name}/backup"
        return await self._until_done(
            lambda: self.platform.ensure_backup(key, self.key, folder), PATIENCE
        )

    async def join(self, slot: str) -> DesiredNode:
        host, address = await self.environment.surroundings().host_with_agent(self.order, slot)
        node = DesiredNode(slot, "compute", host, address)
        key = f"{self.order}/node/{slot}"
        await self._until_done(lambda: self.platform.ensure_node(key, self.key, node), PATIENCE)
        return node

    async def _until_done(self, ask: Callable[[], Awaitable[Outcome]], seconds: float) -> Done:
        end, said = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            try:
                outcome = await ask()
            except Unavailable as error:
                said = str(error)
                await asyncio.sleep(0.05)
                continue
            if isinstance(outcome, Done):
                return outcome
            said = outcome.why
        raise AssertionError(
            f"after {seconds:g} s still: {said}\n{self.environment.keeper.log()[-3000:]}"
        )

    # --- seen from outside ----------------------------------------------------------------------

    @asynccontextmanager
    async def api(self) -> Any:
        """The API as the tenant's administrator, who has the file already when no keeper is there."""
        try:
            self._kubeconfig = (await self.platform.access(self.key)).kubeconfig
        except Unavailable:
            if not self._kubeconfig:
                raise
        client = KubeClient(read_kubeconfig(self._kubeconfig))
        try:
            yield client
        finally:
            await client.close()

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "cluster.json").read_bytes())
        return found

    def running(self) -> dict[str, list[int]]:
        """The pids of each component, by its mark."""
        found: dict[str, list[int]] = {}
        mark_of_directory = directory_mark(self.environment.keeper.directory)
        for pid, mark in marks():
            if mark.startswith(f"{mark_of_directory}/{self.slug}/"):
                found.setdefault(mark.split("/")[2], []).append(pid)
        return found

    def is_whole(self) -> bool:
        """Exactly one process of each component."""
        running = self.running()
        members = self.record()["members"]
        names = {f"{kind}-{number}" for kind in KINDS for number in range(members)}
        if members > 1:
            names.add("balancer")
        return running.keys() == names and all(len(pids) == 1 for pids in running.values())

    async def settle(self) -> None:
        """Until every API server answers by itself, so that the next may be killed."""
        ports = [port for name, port in self.record()["ports"].items() if "peer" not in name]

        async def all_answer() -> bool:
            config = read_kubeconfig((await self.platform.access(self.key)).kubeconfig)
            for port in ports:
                client = KubeClient(replace(config, server=f"https://127.0.0.1:{port}"))
                try:
                    await client.get_text("/readyz")
                except BoatyardError:
                    return False
                finally:
                    await client.close()
            return True

        await until(all_answer, "every API server answers")

    async def until_whole(self, seconds: float = PATIENCE) -> None:
        await until(self.is_whole, "one process of each component runs", seconds=seconds)

    # --- objects ------------------------------------------------------------------------------

    async def put(self, name: str = "kept") -> dict[str, str]:
        """A ConfigMap and a Secret; what identifies them."""
        value = {"value": base64.b64encode(f"secret-{name}".encode()).decode()}
        async with self.api() as api:
            plain = await api.apply(CONFIG_MAPS, name, {"data": {"value": name}}, "default")
            secret = await api.apply(SECRETS, name, {"data": value}, "default")
        return {"plain": _identity(plain), "secret": _identity(secret)}

    async def get(self, name: str = "kept") -> dict[str, str]:
        """The same, as it is now; their contents are checked."""
        async with self.api() as api:
            plain = await api.get(CONFIG_MAPS, name, "default")
            secret = await api.get(SECRETS, name, "default")
        assert plain["data"]["value"] == name
        assert base64.b64decode(secret["data"]["value"]).decode() == f"secret-{name}"
        return {"plain": _identity(plain), "secret": _identity(secret)}


def _identity(body: dict[str, Any]) -> str:
    return f"{body['metadata']['uid']} {body['metadata']['resourceVersion']}"


def directory_mark(directory: Path) -> str:
    """How the marks of a keeper's processes begin; other keepers on the machine may have clusters of the same name."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:10]


def control_groups(directory: Path, slug: str) -> list[str]:
    """Of a cluster and of its real nodes; `directory` is its keeper's."""
    names = (f"boatyard-{directory_mark(directory)}-{slug}", f"by-{slug}*")
    found = [path for name in names for path in Path("/sys/fs/cgroup").rglob(name)]
    return sorted(str(path) for path in found)


def marks() -> Iterator[tuple[int, str]]:
    """Every process with a mark of ours, read without the product."""
    for name in os.listdir("/proc"):
        try:
            words = (
                Path(f"/proc/{name}/environ").read_bytes().split(b"\0") if name.isdigit() else []
            )
        except OSError:
            continue
        for word in words:
            if word.startswith(b"BOATYARD_MARK="):
                yield int(name), word.partition(b"=")[2].decode()


@contextmanager
def marked(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of nobody's that carries a mark."""
    with subprocess.Popen(["/bin/sleep", "600"], env={"BOATYARD_MARK": mark}) as process:
        try:
            yield process
        finally:
            process.kill()


def uids(identities: dict[str, str]) -> dict[str, str]:
    """Without the resource versions, which a restore moves on."""
    return {name: identity.split()[0] for name, identity in identities.items()}
