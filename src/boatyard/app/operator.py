"""`boatyard operator`: carries out the orders of one Kubernetes hub."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from boatyard.kube.config import KubeConfig, in_cluster, read_kubeconfig
from boatyard.model.errors import Refused
from boatyard.wiring import service_process
from boatyard.wiring.driver_maker import Site, connect_twin
from boatyard.wiring.keeper_process import keeper_socket
from boatyard.wiring.operator_process import Office
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import default_socket


def run(args: Namespace) -> int:
    return service_process.run(args, _operate)


async def _operate(settings: Settings, stop: asyncio.Event) -> None:
    config = _config(settings)
    site = Site(
        twin_socket=default_socket(settings),
        connect_twin=connect_twin,
        keeper_socket=keeper_socket(settings),
    )
    async with Office(config, site, settings) as operator_process:
        service_process.say(f"boatyard: operator {operator_process.operator.leadership.identity}")
        await operator_process.operator.run(stop)


def _config(settings: Settings) -> KubeConfig:
    if not settings.kubeconfig:
        return in_cluster()
    path = Path(settings.kubeconfig)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Refused(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    return read_kubeconfig(text, settings.kube_context, folder=path.parent)
