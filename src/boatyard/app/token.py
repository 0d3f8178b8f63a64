"""`boatyard token create`: a token for somebody, signed with the key in the data directory."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from datetime import UTC, datetime, timedelta

from boatyard.api.authentication import TokenIssuer
from boatyard.model.caller import SHARED, CallerRole
from boatyard.model.errors import BoatyardError, Refused
from boatyard.wiring import service_process
from boatyard.wiring.settings import load_settings

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def run(args: Namespace) -> int:
    try:
        sys.stdout.write(_create(args) + "\n")
    except BoatyardError as error:
        sys.stderr.write(f"boatyard: {error}\n")
        return 2
    return 0


def _create(args: Namespace) -> str:
    settings, ttl = load_settings(args), parse_ttl(args.ttl)
    role = CallerRole(args.role)
    tenant = args.tenant or (SHARED if role is CallerRole.OPERATOR else "")
    path = settings.data_dir / service_process.ISSUER_KEY
    if not path.exists():
        raise Refused(
            f"there is no key {path}; give --data the data directory of the server that shall accept the token"
        )
    issuer = TokenIssuer.load_or_create(path)
    return issuer.create_token(
        tenant=tenant, user=args.user, role=role, ttl=ttl, now=datetime.now(UTC)
    )


def parse_ttl(text: str) -> timedelta:
    """`90s`, `15m`, `8h`, `30d`."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None:
        raise Refused(f"--ttl {text!r} is not a time; write for example 15m, 8h or 30d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
