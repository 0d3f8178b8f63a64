"""Prints until somebody ends it."""

from __future__ import annotations

import os


def shout(text: str) -> str:
    while True:
        os.write(1, (b"x" * 9999 + b"\n") * 10)


class FilterModule:
    def filters(self) -> dict[str, object]:
        return {"shout": shout}
