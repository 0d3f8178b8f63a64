"""Bugs for the crash proof with orders on a Kubernetes hub, planted in its workers. Each must be found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from boatyard.orderbook.kube.book import KubeOrderBook
from boatyard.orderbook.kube.claims import HubClaims


def inputs_forgotten() -> None:
    """What was written before an order that never came is nobody's business."""

    async def careless(self: KubeOrderBook, order_id: str, tenant: str) -> None:
        return None

    KubeOrderBook._delete_inputs = careless  # type: ignore[method-assign]


def claims_forgotten() -> None:
    """What was claimed is never given back."""

    async def greedy(self: HubClaims, owner: str) -> None:
        return None

    HubClaims.release = greedy  # type: ignore[method-assign]


def effect_without_its_key() -> None:
    """A host that stands for a key is known to one process only: the next takes another for it."""
    claim = HubClaims.claim

    async def forgetful(
        self: HubClaims, pool: str, candidates: Sequence[str], owner: str, **how: Any
    ) -> str | None:
        if pool.endswith("/hosts"):
            owner = f"{owner}/{os.getpid()}"
        return await claim(self, pool, candidates, owner, **how)

    HubClaims.claim = forgetful  # type: ignore[method-assign]
