"""`boatyard twin`: only the simulated data centre."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from boatyard.twin.layout import read_layout
from boatyard.twin.process import serve
from boatyard.wiring import service_process
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import default_socket


def run(args: Namespace) -> int:
    if getattr(args, "socket", None):
        args.twin_socket = args.socket
    return service_process.run(args, _twin)


async def _twin(settings: Settings, stop: asyncio.Event) -> None:
    path = default_socket(settings)
    service_process.make_data_dir(settings)
    await serve(
        settings.data_dir / "twin",
        Path(path),
        layout=read_layout(Path(settings.twin_layout)) if settings.twin_layout else None,
        delays=settings.twin_delays,
        stop=stop,
        on_ready=lambda: service_process.say(f"boatyard: the twin answers on {path}"),
    )
