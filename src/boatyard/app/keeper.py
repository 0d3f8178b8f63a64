"""`boatyard keeper`: only the keeper of local clusters, for workers that were started by `boatyard work`."""

from __future__ import annotations

import sys
from argparse import Namespace

from boatyard.model.errors import BoatyardError
from boatyard.platforms.drivers.local import server
from boatyard.wiring import service_process
from boatyard.wiring.keeper_process import keeper_socket, local_directory
from boatyard.wiring.settings import load_settings
from boatyard.wiring.twin_process import twin_socket_path


def run(args: Namespace) -> int:
    """Runs until SIGTERM or Ctrl-C; its clusters go on, and the next keeper finds them."""
    try:
        settings = load_settings(args)
        service_process.make_data_dir(settings)
        arguments = [
            *("--directory", str(local_directory(settings))),
            *("--socket", keeper_socket(settings)),
            *("--twin", twin_socket_path(settings)),
        ]
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return 1
    if settings.assets:
        arguments += ["--assets", str(settings.assets_dir)]
    if settings.real_nodes:
        arguments.append("--real-nodes")
    return server.main(arguments)
