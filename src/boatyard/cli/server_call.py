"""Runs one verb against the server that the flags name. Called by every verb that needs a server."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable

from boatyard.cli.exit_codes import DONE, INTERRUPTED, report_error
from boatyard.client.config import Target, find_target
from boatyard.model.errors import BoatyardError

# gRPC's own log lines would break the tree on the screen; its errors reach us as exceptions.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from boatyard.client.client import Client

VerbFunction = Callable[[Client, argparse.Namespace], Awaitable[int | None]]


def call_server(
    args: argparse.Namespace, verb: VerbFunction, *, target: Target | None = None
) -> int:
    """Connects, runs the verb and returns its exit code; errors are printed to stderr."""
    try:
        return asyncio.run(_run_connected(args, verb, target or read_target(args))) or DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except (BoatyardError, OSError) as error:
        return report_error(error)


def read_target(args: argparse.Namespace) -> Target:
    return find_target(
        address=getattr(args, "address", ""),
        token=getattr(args, "token", ""),
        ca_file=getattr(args, "ca_file", ""),
        insecure=getattr(args, "insecure", False),
    )


async def _run_connected(
    args: argparse.Namespace, verb: VerbFunction, target: Target
) -> int | None:
    async with Client(target) as client:
        return await verb(client, args)
