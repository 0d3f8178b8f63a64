"""The verbs `login`, `logout` and `whoami`: the server and the user of later commands."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from getpass import getpass
from pathlib import Path

from boatyard.cli.exit_codes import DONE, report_error
from boatyard.cli.server_call import call_server, read_target
from boatyard.cli.text_format import clean, format_duration, terminal_now
from boatyard.client.client import Client
from boatyard.client.config import (
    Target,
    decode_token_claims,
    delete_login,
    find_target,
    parse_address,
    save_login,
)
from boatyard.model.errors import BoatyardError


def login(args: argparse.Namespace) -> int:
    """Saves address and token, but only after the server has accepted the token."""
    try:
        target = _login_target(args)
    except (BoatyardError, OSError) as error:
        return report_error(error)
    return call_server(args, _login, target=target)


def _login_target(args: argparse.Namespace) -> Target:
    ca_file = getattr(args, "ca_file", "")
    insecure = getattr(args, "insecure", False)
    address, tls = parse_address(args.server, tls=True if ca_file or insecure else None)
    token = getattr(args, "token", "") or os.environ.get("BOATYARD_TOKEN", "")
    if args.token_file:
        token = sys.stdin.read() if args.token_file == "-" else Path(args.token_file).read_text()
    elif not token:
        # A local `up` hands its token out by itself; else ask, but only where someone can answer.
        token = find_target(address=args.server).token
        if not token and sys.stdin.isatty():
            token = getpass("Token (empty for none): ")
    return Target(
        address=address,
        token=token.strip(),
        tls=tls,
        ca_file=str(Path(ca_file).absolute()) if ca_file else "",
        insecure=insecure,
    )


async def _login(client: Client, args: argparse.Namespace) -> None:
    await client.ping()
    path = save_login(client.target)
    print(f"Logged in to {clean(client.target.address)} {_describe_identity(client.target.token)}.")
    print(f"Kept in {path}; `boatyard logout` forgets it.")


def logout(args: argparse.Namespace) -> int:
    print("Logged out." if delete_login() else "You were not logged in.")
    return DONE


def whoami(args: argparse.Namespace) -> int:
    try:
        target = read_target(args)
    except BoatyardError as error:
        return report_error(error)
    return call_server(args, _whoami, target=target)


async def _whoami(client: Client, args: argparse.Namespace) -> None:
    target = client.target
    await client.ping()
    claims = decode_token_claims(target.token)
    facts = [
        ("server", f"{target.address} ({'TLS' if target.tls else 'no TLS'})"),
        ("found by", target.source),
        ("user", str(claims.get("sub", "anonymous" if not target.token else "?"))),
        ("tenant", str(claims.get("tenant", ""))),
        ("role", str(claims.get("role", ""))),
        ("expires", _format_expiry(claims.get("exp"), terminal_now())),
    ]
    for label, text in facts:
        if text:
            print(f"{label + ':':<10}{clean(text)}")


def _describe_identity(token: str) -> str:
    claims = decode_token_claims(token)
    if not claims:
        return "with a token" if token else "without a token"
    role, tenant = clean(str(claims.get("role", ""))), clean(str(claims.get("tenant", "")))
    return f"as {clean(str(claims.get('sub', '?')))}, {role} of {tenant}"


def _format_expiry(moment: object, now: datetime) -> str:
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return ""
    seconds = moment - now.timestamp()
    if seconds <= 0:
        return "already"
    try:
        day = datetime.fromtimestamp(moment, UTC).date()
    except (OverflowError, ValueError):
        return ""
    return f"in {format_duration(seconds)}, on {day}"
