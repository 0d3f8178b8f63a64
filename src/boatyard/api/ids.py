"""Ids of new documents: UUIDs in the order of time (version 7). Called by the generic create."""

from __future__ import annotations

import os
import re
from datetime import datetime
from uuid import UUID

LONGEST_ID = 128

_CHOSEN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


def new_id(now: datetime) -> str:
    """Sorts by creation, to the millisecond; 74 bits of chance keep strangers apart."""
    milliseconds = int(now.timestamp() * 1000)
    chance = int.from_bytes(os.urandom(10))
    number = (milliseconds & (1 << 48) - 1) << 80
    number |= 0x7 << 76 | (chance >> 68 & 0xFFF) << 64
    number |= 0b10 << 62 | chance & (1 << 62) - 1
    return str(UUID(int=number))


def is_choosable(id: str) -> bool:
    """Whether an operator may give this id to something."""
    return _CHOSEN.fullmatch(id) is not None
