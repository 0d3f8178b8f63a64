"""`boatyard twin`: only the simulated data centre."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from boatyard.twin.layout import read_layout
from boatyard.twin.process import serve_twin
from boatyard.wiring import service_process
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import twin_socket_path


def run(args: Namespace) -> int:
    if getattr(args, "socket", None):
        args.twin_socket = args.socket
    return service_process.run_service(args, _twin)


async def _twin(settings: Settings, stop: asyncio.Event) -> None:
    path = twin_socket_path(settings)
    service_process.make_data_dir(settings)
    await serve_twin(
        settings.data_dir / "twin",
        Path(path),
        layout=read_layout(Path(settings.twin_layout)) if settings.twin_layout else None,
        delays=settings.twin_delays,
        stop=stop,
        on_ready=lambda: service_process.print_line(f"boatyard: the twin answers on {path}"),
    )
