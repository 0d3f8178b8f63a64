"""Bugs that tests of faults must find, each planted in a real operator process by `command.py`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from boatyard.kube.circuit_breaker import CircuitBreaker
from boatyard.operator.leadership import Leadership
from boatyard.orderbook.kube.book import KubeOrderBook


def leads_for_ever() -> None:
    """Once the leader, it never asks again whether it still is."""
    Leadership.is_leader = property(lambda self: self._is_leading)  # type: ignore[assignment,method-assign]


def no_gate() -> None:
    """A hub that fails is asked as if it did not."""
    CircuitBreaker.check_allowed = lambda self, what: None  # type: ignore[method-assign,misc]


def claims_of_a_process() -> None:
    """Who has claimed something is known to one process only: the next one claims another."""
    claim = KubeOrderBook.claim

    async def forgetful(
        self: KubeOrderBook, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        return await claim(self, pool, candidates, f"{owner}/{os.getpid()}", now=now)

    KubeOrderBook.claim = forgetful  # type: ignore[method-assign]
