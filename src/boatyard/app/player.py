"""`boatyard player hypershift`: a program that plays HyperShift on a hub, for tests and rehearsals."""

from __future__ import annotations

import asyncio
import secrets
from argparse import Namespace
from pathlib import Path

from boatyard.fakes.hypershift.access import BadKubeconfig
from boatyard.fakes.hypershift.faults import BadFaults
from boatyard.fakes.hypershift.hosted_api import BadAddress
from boatyard.fakes.hypershift.process import run_fake
from boatyard.fakes.hypershift.stage_delays import BadDelays, parse_delays
from boatyard.model.errors import Refused
from boatyard.wiring import service_process
from boatyard.wiring.settings import Settings


def run(args: Namespace) -> int:
    """Runs until SIGTERM or Ctrl-C; the next one continues from the state on the hub."""

    async def body(_: Settings, stop: asyncio.Event) -> None:
        pace = parse_delays(args.pace)
        await run_fake(
            Path(args.kubeconfig),
            delays=pace,
            faults=Path(args.faults) if args.faults else None,
            answer=args.answer,
            make_word=lambda: secrets.token_urlsafe(17),
            stop=stop,
            on_ready=lambda server: service_process.print_line(
                f"boatyard: plays HyperShift on {server}, pace {pace}"
            ),
        )

    async def run_or_refuse(settings: Settings, stop: asyncio.Event) -> None:
        try:
            await body(settings, stop)
        except (BadAddress, BadFaults, BadKubeconfig, BadDelays) as error:
            raise Refused(str(error)) from error

    return service_process.run_service(args, run_or_refuse)
