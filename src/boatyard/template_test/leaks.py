"""Finds a secret in a text, also reversed, in part or encoded. Pure; used by the secrets question."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SHORTEST_PIECE = 12  # characters of a secret, or of a piece of it, that are no coincidence


def secret_texts(value: Any) -> Iterator[str]:
    """Every text in the value that is long enough to be recognised."""
    match value:
        case str() if len(value) >= SHORTEST_PIECE:
            yield value
        case list():
            for entry in value:
                yield from secret_texts(entry)
        case dict():
            for entry in value.values():
                yield from secret_texts(entry)


class SecretFinder:
    """Searches for the values of secret parameters in all known encodings."""

    def __init__(self, secrets: Mapping[str, Any]) -> None:
        self._forms: dict[str, tuple[str, str]] = {}
        for name, value in secrets.items():
            for text in secret_texts(value):
                for encoding, form in _encoded_forms(text):
                    self._forms.setdefault(form.casefold(), (name, encoding))

    def find(self, text: str) -> Iterable[tuple[str, str]]:
        """Each parameter whose value is in the text, with the encoding."""
        folded = text.casefold()
        return dict(leak for form, leak in self._forms.items() if form in folded).items()


def _encoded_forms(text: str) -> Iterator[tuple[str, str]]:
    for encoding, encoded in (
        ("as it is", text),
        ("backwards", text[::-1]),
        ("in hexadecimal", text.encode().hex()),
        ("in rot13", codecs.encode(text, "rot13")),
    ):
        for start in range(len(encoded) - SHORTEST_PIECE + 1):
            yield (
                encoding if encoding != "as it is" else "in clear",
                encoded[start : start + SHORTEST_PIECE],
            )
    data = text.encode()
    for shift in range(3):  # base64 differs with the offset in a group of three bytes
        base64_text = base64.b64encode(b"\0" * shift + data).decode()
        middle = base64_text[4 if shift else 0 : len(base64_text) // 4 * 4 - 4]
        if len(middle) >= SHORTEST_PIECE:
            yield "in base64", middle
