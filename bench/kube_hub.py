"""A Kubernetes hub for a fleet: an API server of its own, registered in a yard, and `boatyard operator` beside it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

from bare import Bare
from yard import Broken, Yard

from boatyard.assets import DEFAULT_VERSION, Assets
from boatyard.kube.client import KubeClient
from boatyard.kube.config import read_kubeconfig
from boatyard.proof.kube_hub import EnvironmentHub

# Who leads and who may look is asked whatever is ordered.
_NOT_WORK = ("leases", "selfsubject", "subjectaccess", "tokenreviews")
_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.M)
_READY_SECONDS = 60.0
_READY = "select 1 from documents where kind = 'Hub' and data #>> '{status,state}' = '1'"


class KubeHub:
    """`client` may do anything there."""

    def __init__(self, client: KubeClient, api: list[int]) -> None:
        self._client = client
        self.api = api  # processes of etcd and the API server

    async def requests(self) -> float:
        """Requests about orders and what goes with them that were answered; watches are not counted."""
        found = 0.0
        for labels, value in _REQUESTS.findall(await self._client.get_text("/metrics")):
            resource = re.search(r'resource="([^"]*)"', labels)
            if resource and resource[1] and 'verb="WATCH"' not in labels:
                found += 0.0 if resource[1].startswith(_NOT_WORK) else float(value)
        return found


@contextlib.asynccontextmanager
async def kube_hub(yard: Yard) -> AsyncIterator[KubeHub]:
    """Makes the one hub of the yard a Kubernetes hub."""
    programs = Assets().program(DEFAULT_VERSION, "kube-apiserver").parent
    async with Bare(programs, yard.data / "plane") as bare:
        await bare.start()
        kubeconfig = bare.kubeconfig.read_bytes()
        hub = EnvironmentHub(kubeconfig)
        async with yard.ledger() as ledger:
            await hub.open(ledger)
        await hub.close_connection()
        await yard.start(
            "operator",
            *("--kubeconfig", str(bare.kubeconfig), "--namespace", hub.access.system),
            *("--probes", "127.0.0.1:0"),
        )
        client = KubeClient(read_kubeconfig(kubeconfig), timeout=60)
        try:
            await _until_ready(yard)
            yield KubeHub(client, bare.pids)
        finally:
            await client.close()
            await yard.stop("operator")


async def _until_ready(yard: Yard) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                if await yard.sql(_READY):
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        said = "\n".join(yard.complaints())
        raise Broken(f"the hub did not become ready\n{said}") from None
