"""Takes out of every text what must be shown nowhere. Used by the supervisor on all that is written down."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

SHOWN = "********"
SHORTEST = 3  # a shorter one would blot out half of every text, and guards nothing
_SHORTEST_LINE = 8


class Hiding:
    """Knows each secret as it is, by lines, and as it looks in JSON, in addresses and in base64."""

    def __init__(self, hidden: Iterable[str]) -> None:
        forms: set[str] = set()
        for one in hidden:
            lines = [line.strip() for line in one.splitlines()]
            for text in (one, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
                if len(text) >= SHORTEST:
                    forms.update(_forms(text))
        ordered = sorted(forms, key=len, reverse=True)
        self.longest = len(ordered[0].encode(errors="replace")) if ordered else 0
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(SHOWN, text)


def _forms(text: str) -> Iterable[str]:
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    data = text.encode("utf-8", "surrogatepass")
    yield quote(data, safe="")
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode()
