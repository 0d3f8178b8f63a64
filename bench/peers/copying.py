"""Boatyard's operator with a reconciler that only copies: what is measured is all around it. Run by operators.py."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from boatyard.kube.config import read_kubeconfig
from boatyard.ledger.changes import Replace
from boatyard.model.generated.boatyard import OrderPhase
from boatyard.operator.run import HubContext
from boatyard.orderbook.kube.book import KubeOrderBook, SecretScope
from boatyard.orderbook.kube.connection import HubConnection
from boatyard.resources.reconciler import ReconcilePass, ReconcileResult
from boatyard.wiring.driver_factory import LocalServers, connect_twin
from boatyard.wiring.operator_process import OperatorProcess
from boatyard.wiring.service_process import reduce_garbage_collection
from boatyard.wiring.settings import Settings


class Copying:
    """Tells in the status which generation of the wish was seen: one write for each change."""

    def __init__(self, bench: HubContext) -> None:
        self._queue = bench.queue
        self._hub = HubConnection(
            bench.client,
            bench.view.order_settings,
            system_namespace=bench.system_namespace,
            at_once=64,
        )

    async def reconcile(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        book = KubeOrderBook(
            self._hub,
            check=reconcile_pass.check_lease,
            secrets=SecretScope.NEEDED,
            view=self._queue,
        )
        order = await book.get(reconcile_pass.id)
        if order is None or order.status.observed_generation == order.spec.generation:
            return ReconcileResult()
        status = msgspec.structs.replace(
            order.status,
            phase=OrderPhase.READY,
            observed_generation=order.spec.generation,
        )
        return ReconcileResult(changes=[Replace(msgspec.structs.replace(order, status=status))])

    async def quarantine(self, reconcile_pass: ReconcilePass) -> ReconcileResult:
        return ReconcileResult()


async def main(kubeconfig: bytes, namespace: str) -> None:
    settings = Settings(system_namespace=namespace, probes="127.0.0.1:0")
    site = LocalServers(twin_socket="", connect_twin=connect_twin)
    reduce_garbage_collection()  # as `boatyard operator` does
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = read_kubeconfig(kubeconfig)
    async with OperatorProcess(config, site, settings) as office:
        furnish = office.operator.build_runtime
        office.operator.build_runtime = lambda bench: replace(
            furnish(bench), reconcilers={"Order": Copying(bench)}
        )
        await office.operator.run(stop)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).read_bytes(), sys.argv[2]))
