"""How many events may leave at once and per second. Pure but for its own count; time is an argument."""

from __future__ import annotations


class Bucket:
    """Fills with `per_second` tokens a second, and holds those of one second, at least one."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second)
        self._tokens = self._most
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Takes a token; 0 when there was one, else in how many seconds there is."""
        if self._at is not None:
            # A clock that was set back fills nothing.
            new_tokens = max(0.0, now - self._at) * self._per_second
            self._tokens = min(self._most, self._tokens + new_tokens)
        self._at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self._per_second
