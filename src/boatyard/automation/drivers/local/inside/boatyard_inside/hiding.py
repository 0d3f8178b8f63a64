"""Removes secrets from texts. Used by the supervisor on everything that it writes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

SHOWN = "********"
SHORTEST = 3  # a shorter secret would blot out half of every text, and protects nothing
_SHORTEST_LINE = 8
_SHORTEST_PART = 6  # characters of base64 that are no coincidence


class Hiding:
    """Replaces each secret, as it is, by lines, and as it looks in JSON, in URLs and in base64.

    Not replaced: secrets shorter than `SHORTEST`, base64 that is broken into lines, and secrets that are reversed or
    encoded in another way.
    """

    def __init__(self, hidden: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in hidden:
            lines = [line.strip() for line in secret.splitlines()]
            for text in (secret, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
                if len(text) >= SHORTEST:
                    forms.update(_forms(text))
            forms.update(_parts(secret))
        self._forms = sorted(forms, key=len, reverse=True)
        self.longest = len(self._forms[0].encode(errors="replace")) if self._forms else 0
        pattern = "|".join(map(re.escape, self._forms))
        self._pattern = re.compile(pattern) if self._forms else None

    def __call__(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(SHOWN, text)

    def in_cut(self, text: str) -> str:
        """For a text that was cut: replaces also the beginning of a secret at its end."""
        body = text.rstrip("\ufffd")  # half a character, if the cut went through one
        start = min((_tail(body, form) for form in self._forms), default=len(body))
        return self(text) if start == len(body) else self(body[:start]) + SHOWN


def _tail(text: str, form: str) -> int:
    """Where the text ends with the beginning of `form`; the length of the text when it does not."""
    start = max(0, len(text) - len(form))
    while (start := text.find(form[:SHORTEST], start)) >= 0:
        if form.startswith(text[start:]):
            return start
        start += 1
    return len(text)


def _parts(text: str) -> Iterable[str]:
    """The parts of the base64 that do not depend on the bytes around the secret, such as in user:password."""
    data = text.encode("utf-8", "surrogatepass")
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        last = 8 * (offset + len(data)) // 6  # what comes after shares a character with the end
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            part = encode(bytes(offset) + data).decode()[first:last]
            if len(part) >= _SHORTEST_PART:
                yield part


def _forms(text: str) -> Iterable[str]:
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(json.dumps(text)[1:-1])[1:-1]  # JSON as a text in JSON
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    data = text.encode("utf-8", "surrogatepass")
    yield quote(data, safe="")
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode()
