"""Spares an API server that fails: few requests reach it, the others are answered at once. Used by the transport.

Without it a hub that is down is asked by every order that is due on it, and each of them holds a worker for as
long as its patience lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from boatyard.model.errors import Unavailable

FAILURES = 3  # in a row; one lost connection is no outage
# Seconds between two requests to a server that fails. A little more than half of one: what is sent evenly does not
# arrive so, and within no five seconds shall more than two a second be counted there.
SPACING = 0.55

FAILING = "Failing"  # the reason of what is answered here


class Gate:
    """One per API server. Open while the server answers; one good answer opens it again."""

    def __init__(
        self,
        *,
        failures: int = FAILURES,
        spacing: float = SPACING,
        time: Callable[[], float] | None = None,
    ) -> None:
        self._allowed = failures
        self._spacing = spacing
        self._time = time
        self._failed = 0
        self._next = 0.0
        self._why = ""

    @property
    def failing(self) -> bool:
        return self._failed >= self._allowed

    def enter(self, operation: str) -> None:
        """Called before each request. Unavailable, with the last failure's words, when it is not to be sent now."""
        if not self.failing:
            return
        now = self._now()
        if now < self._next:
            raise Unavailable(
                f"{operation}: not asked, for the API server fails: {self._why}", reason=FAILING
            )
        self._next = now + self._spacing

    def answered(self, code: int) -> None:
        """An answer of the server itself; one that says that it is overloaded or broken is a failure."""
        if code == 429 or code >= 500:
            self.failed(f"it answered {code}")
        else:
            self._failed = 0

    def failed(self, error_text: str) -> None:
        """No answer: not reached, cut, too late."""
        self._failed += 1
        self._why = error_text
        if self._failed == self._allowed:
            self._next = self._now() + self._spacing

    def _now(self) -> float:
        return (self._time or asyncio.get_running_loop().time)()
