"""A circuit breaker per API server: while the server fails, few requests are sent and the others fail at once.

Used by the transport. Without it every order that is due on a hub that is down calls it, and each call holds a
worker until its timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from boatyard.model.errors import Unavailable

FAILURES = 3  # in a row; one lost connection is no outage
# Seconds between two requests to a server that fails. A little more than half a second: requests that are sent evenly
# do not arrive evenly, and within any five seconds at most two per second shall arrive.
SPACING = 0.55

FAILING = "Failing"  # reason of the Unavailable that is raised here


class Gate:
    """One per API server. Lets requests through while the server answers; one good response ends the failing state."""

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
        """Called before each request. Unavailable, with the last failure's text, when it must not be sent now."""
        if not self.failing:
            return
        now = self._now()
        if now < self._next:
            raise Unavailable(
                f"{operation}: not sent, because the API server fails: {self._why}", reason=FAILING
            )
        self._next = now + self._spacing

    def answered(self, code: int) -> None:
        """Records a response of the server. 429 and 5xx count as failures; any other code ends the failing state."""
        if code == 429 or code >= 500:
            self.failed(f"it answered {code}")
        else:
            self._failed = 0

    def failed(self, error_text: str) -> None:
        """Records a request without a response: not reached, connection cut, timed out."""
        self._failed += 1
        self._why = error_text
        if self._failed == self._allowed:
            self._next = self._now() + self._spacing

    def _now(self) -> float:
        return (self._time or asyncio.get_running_loop().time)()
