"""The log of a run on disk: one JSON line per event, numbered without gaps, bounded. Written by the supervisor."""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime

from boatyard_inside.hiding import Hiding

LONGEST_TEXT = 4000  # characters
LONGEST_NAME = 300
KEPT_FOR_THE_END = 16 * 1024  # bytes reserved, so that the end is always logged
ALWAYS = ("failed", "end")
# What cannot be stored: NUL, and the surrogates with which Python represents bytes that are not text.
_UNWRITABLE = dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd")
_CONTROLS = _UNWRITABLE | {
    number: "\ufffd" for number in (*range(32), *range(127, 160)) if chr(number) not in "\n\t"
}


class Story:
    """Continues the log of an earlier start of the same run.

    Each line names the start that wrote it. Numbers begin again after a run was released, and the last lines may be
    lost in a power failure: a reader that copies the log recognises the same line by its number and start.
    """

    def __init__(self, path: str, limit: int, hide: Hiding, attempt: int = 1) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._number = self._mend()
        self._left = limit
        self._cut = False
        self._attempt = attempt
        self._start = secrets.token_hex(6)
        self.hide = hide

    def tell(self, kind: str, task: str = "", text: str = "", remark: str = "") -> None:
        """Writes one event, unless the log is full. `remark` follows the text, however long that is."""
        line = self._line(kind, task, text, remark)
        reserve = 0 if kind in ALWAYS else KEPT_FOR_THE_END
        if self._left - len(line) < reserve:
            if self._cut or kind in ALWAYS:
                if kind in ALWAYS and self._left > len(line):
                    self._write(line)
                return
            self._cut = True
            line = self._line("output", "", "the run tells more than is kept; the rest is left out")
        self._write(line)

    def clean(self, text: str, longest: int = LONGEST_TEXT) -> str:
        """The text without secrets and control characters, at most `longest` characters long."""
        # The sender cuts long texts, perhaps in the middle of a secret.
        may_be_cut = len(text) >= LONGEST_TEXT or len(text.encode(errors="replace")) >= LONGEST_TEXT
        text = (self.hide.in_cut(text) if may_be_cut else self.hide(text)).translate(_CONTROLS)
        return text if len(text) <= longest else text[: longest - 1] + "…"

    def keep(self, text: str) -> str:
        """The whole text, without secrets and characters that cannot be stored."""
        return self.hide(text).translate(_UNWRITABLE)

    def _line(self, kind: str, task: str, text: str, remark: str = "") -> bytes:
        event = {
            "number": self._number + 1,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "kind": kind,
            "task": self.clean(task, LONGEST_NAME),
            "text": self.clean(text) + remark,
            "attempt": self._attempt,
            "start": self._start,
        }
        return json.dumps(event).encode() + b"\n"

    def _write(self, line: bytes) -> None:
        os.write(self._file, line)
        self._number += 1
        self._left -= len(line)

    def _mend(self) -> int:
        """Removes an incomplete last line. Returns the number of the last complete line."""
        size = os.fstat(self._file).st_size
        start = max(0, size - 64 * 1024)
        tail = os.pread(self._file, size - start, start)
        complete_lines = tail[: tail.rfind(b"\n") + 1]
        os.ftruncate(self._file, start + len(complete_lines))
        lines = complete_lines.splitlines()
        return int(json.loads(lines[-1])["number"]) if lines else 0
