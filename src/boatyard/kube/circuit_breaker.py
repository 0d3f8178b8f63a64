"""A circuit breaker per API server: while the server fails, few requests are sent and the others fail at once.

Used by the transport. Without it every order that is due on a hub that is down calls it, and each call holds a
worker until its timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from boatyard.model.errors import Unavailable

FAILURE_THRESHOLD = 3  # in a row; one lost connection is no outage
# Seconds between two requests to a server that fails. A little more than half a second: requests that are sent evenly
# do not arrive evenly, and within any five seconds at most two per second shall arrive.
SPACING_SECONDS = 0.55

FAILING_REASON = "Failing"  # reason of the Unavailable that is raised here


class CircuitBreaker:
    """One per API server. Lets requests through while the server answers; one good response ends the failing state."""

    def __init__(
        self,
        *,
        failures: int = FAILURE_THRESHOLD,
        spacing: float = SPACING_SECONDS,
        time: Callable[[], float] | None = None,
    ) -> None:
        self._failure_threshold = failures
        self._spacing = spacing
        self._time = time
        self._failure_count = 0
        self._next_allowed_at = 0.0
        self._last_failure = ""

    @property
    def is_open(self) -> bool:
        return self._failure_count >= self._failure_threshold

    def check_allowed(self, operation: str) -> None:
        """Called before each request. Unavailable, with the last failure's text, when it must not be sent now."""
        if not self.is_open:
            return
        now = self._now()
        if now < self._next_allowed_at:
            raise Unavailable(
                f"{operation}: not sent, because the API server fails: {self._last_failure}",
                reason=FAILING_REASON,
            )
        self._next_allowed_at = now + self._spacing

    def record_response(self, code: int) -> None:
        """Records a response of the server. 429 and 5xx count as failures; any other code ends the failing state."""
        if code == 429 or code >= 500:
            self.record_failure(f"it answered {code}")
        else:
            self._failure_count = 0

    def record_failure(self, error_text: str) -> None:
        """Records a request without a response: not reached, connection cut, timed out."""
        self._failure_count += 1
        self._last_failure = error_text
        if self._failure_count == self._failure_threshold:
            self._next_allowed_at = self._now() + self._spacing

    def _now(self) -> float:
        return (self._time or asyncio.get_running_loop().time)()
