"""A token bucket that limits events per second. Keeps only its own count; time is an argument."""

from __future__ import annotations


class TokenBucket:
    """Gains `per_second` tokens per second, and holds at most those of one second, but at least one."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._tokens = self._capacity
        self._last_taken_at: float | None = None

    def take(self, now: float) -> float:
        """Takes a token and returns 0; when there is none, returns the seconds until there is one."""
        if self._last_taken_at is not None:
            # A clock that was set back adds no tokens.
            new_tokens = max(0.0, now - self._last_taken_at) * self._per_second
            self._tokens = min(self._capacity, self._tokens + new_tokens)
        self._last_taken_at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self._per_second
