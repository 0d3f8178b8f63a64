"""Ids of new documents: UUIDs that sort by time (version 7). Called by the generic create."""

from __future__ import annotations

import os
import re
from datetime import datetime
from uuid import UUID

LONGEST_ID = 128

_CHOSEN_ID_PATTERN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


_last_id_parts = (0, 0)  # millisecond and count within it of the id made last


def new_id(now: datetime) -> str:
    """Returns an id. Ids of one process sort by creation, also while the clock stands still; others to the millisecond.

    62 random bits keep the ids of different processes distinct.
    """
    global _last_id_parts
    millisecond, count = int(now.timestamp() * 1000), int.from_bytes(os.urandom(2)) & 0x7FF
    if millisecond <= _last_id_parts[0]:
        millisecond, count = _last_id_parts[0], _last_id_parts[1] + 1
        if count > 0xFFF:
            millisecond, count = millisecond + 1, 0
    _last_id_parts = (millisecond, count)
    chance = int.from_bytes(os.urandom(8))
    number = (millisecond & (1 << 48) - 1) << 80
    number |= 0x7 << 76 | count << 64
    number |= 0b10 << 62 | chance & (1 << 62) - 1
    return str(UUID(int=number))


def is_valid_chosen_id(id: str) -> bool:
    """Whether an operator may choose this id for a new document."""
    return _CHOSEN_ID_PATTERN.fullmatch(id) is not None
