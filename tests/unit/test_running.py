"""How a long-running command ends: politely at the first signal, at once at the second."""

from __future__ import annotations

import signal
import subprocess
import sys

_BODY = """
import asyncio, sys
from argparse import Namespace
from boatyard.wiring import service_process as running

async def body(settings, stop):
    running.print_line("begun")
    await stop.wait()
    running.print_line("ending")
    await asyncio.sleep(60)

sys.exit(running.run_service(Namespace(), body))
"""


def test_a_second_signal_ends_a_process_at_once() -> None:
    command = [sys.executable, "-c", _BODY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.readline() == "ending\n"
        process.terminate()
        assert process.wait(20) == -signal.SIGTERM
