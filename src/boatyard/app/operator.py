"""`boatyard operator`: carries out the orders of one Kubernetes hub."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from boatyard.kube.config import KubeConfig, in_cluster_config, read_kubeconfig
from boatyard.model.errors import Refused
from boatyard.wiring import service_process
from boatyard.wiring.driver_factory import LocalServers, connect_twin
from boatyard.wiring.keeper_process import keeper_socket
from boatyard.wiring.operator_process import OperatorProcess
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import twin_socket_path


def run(args: Namespace) -> int:
    return service_process.run_service(args, _operate)


async def _operate(settings: Settings, stop: asyncio.Event) -> None:
    config = _config(settings)
    site = LocalServers(
        twin_socket=twin_socket_path(settings),
        connect_twin=connect_twin,
        keeper_socket=keeper_socket(settings),
    )
    async with OperatorProcess(config, site, settings) as operator_process:
        service_process.print_line(
            f"boatyard: operator {operator_process.operator.leadership.identity}"
        )
        await operator_process.operator.run(stop)


def _config(settings: Settings) -> KubeConfig:
    if not settings.kubeconfig:
        return in_cluster_config()
    path = Path(settings.kubeconfig)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Refused(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    return read_kubeconfig(text, settings.kube_context, folder=path.parent)
