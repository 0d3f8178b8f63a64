"""The verbs `kubeconfig` and `password`: secrets go to a file of mode 0600, or where asked."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from boatyard.cli.calling import call
from boatyard.cli.words import clean
from boatyard.client.client import Client
from boatyard.client.config import write_private_file
from boatyard.client.kinds import CLUSTER
from boatyard.model.errors import Refused


def kubeconfig(args: argparse.Namespace) -> int:
    return call(args, _kubeconfig)


async def _kubeconfig(client: Client, args: argparse.Namespace) -> None:
    found = await client.find_one(CLUSTER, args.name)
    place = args.output or _default_place(found.document.metadata.name or found.id)
    secret = await client.kubeconfig(found.id)
    _deliver(secret, place)
    if place != "-":
        print(f"Wrote {clean(place)}, readable by you only.")
        print(f"Next: kubectl --kubeconfig {clean(place)} get nodes")


def password(args: argparse.Namespace) -> int:
    return call(args, _password)


async def _password(client: Client, args: argparse.Namespace) -> None:
    if not args.output and sys.stdout.isatty():
        raise Refused(
            "this would show a password on your screen; say so with -o -, or give -o FILE"
        )
    found = await client.find_one(CLUSTER, args.name)
    _deliver(await client.password(found.id), args.output or "-")


def _default_place(name: str) -> str:
    """A pipe or a redirection was meant to have it; a terminal was not."""
    return f"{re.sub('[^a-z0-9-]', '_', name)}.kubeconfig" if sys.stdout.isatty() else "-"


def _deliver(secret: str, place: str) -> None:
    text = secret if secret.endswith("\n") else secret + "\n"
    if place == "-":
        sys.stdout.write(text)
        return
    write_private_file(Path(place), text.encode())
