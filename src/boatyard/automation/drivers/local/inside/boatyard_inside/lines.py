"""Cuts what a run prints into lines that are not too long. Used by the supervisor."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Splits bytes into lines. A line that is too long is cut, and the rest of it is dropped.

    A cut line is longer than `longest` by `over`: a secret at the cut must be complete to be recognised.
    """

    def __init__(self, longest: int, over: int) -> None:
        self._most = longest + over
        self._held = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for part in data.splitlines(keepends=True):
            is_complete = part.endswith((b"\n", b"\r"))
            if not self._dropping:
                self._held += part.rstrip(b"\r\n") if is_complete else part
                if is_complete or len(self._held) > self._most:
                    yield bytes(self._held[: self._most])
                    self._held.clear()
                    self._dropping = not is_complete
            elif is_complete:
                self._dropping = False

    def rest(self) -> Iterator[bytes]:
        if self._held:
            yield bytes(self._held)
            self._held.clear()
