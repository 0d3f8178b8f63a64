"""Runs one verb against the server that the flags point to. Called by every such verb."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable

from boatyard.cli.exits import DONE, INTERRUPTED, report
from boatyard.client.config import Target, find_target
from boatyard.model.errors import BoatyardError

# gRPC's own log lines would tear the tree; its errors reach us as errors.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from boatyard.client.client import Client

Verb = Callable[[Client, argparse.Namespace], Awaitable[int | None]]


def call(args: argparse.Namespace, verb: Verb, *, target: Target | None = None) -> int:
    """The exit code of the verb; what goes wrong is said on stderr."""
    try:
        return asyncio.run(_connected(args, verb, target or target_of(args))) or DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except (BoatyardError, OSError) as error:
        return report(error)


def target_of(args: argparse.Namespace) -> Target:
    return find_target(
        address=getattr(args, "address", ""),
        token=getattr(args, "token", ""),
        ca_file=getattr(args, "ca_file", ""),
        insecure=getattr(args, "insecure", False),
    )


async def _connected(args: argparse.Namespace, verb: Verb, target: Target) -> int | None:
    async with Client(target) as client:
        return await verb(client, args)
