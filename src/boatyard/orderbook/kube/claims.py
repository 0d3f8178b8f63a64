"""Claims on scarce items of a Kubernetes hub, one object per claim. Used by the order book `kube` and the hub's queue.

The name of a claim is made of pool and item, so the API server allows one claim per item. No such key ensures that an
owner holds one item of a pool: whoever creates a claim then lists all claims of its owner. Of several the one created
first counts and the others are deleted. Two that claim at the same time see the same first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from boatyard.kube.client import KubeClient
from boatyard.model import hub_names
from boatyard.model.errors import Exists
from boatyard.model.generated.boatyard import HubClaimSpec
from boatyard.orderbook.kube.kinds import CLAIMS
from boatyard.orderbook.kube.mapping import camel

Object = dict[str, Any]

OWNER = "boatyard.io/owner"  # label: the owner as a label value
ORDER = "boatyard.io/order"  # label: the order's id as a label value


class KnownClaims(Protocol):
    """A copy of the claims that a watch keeps up to date; it may lag behind the API server, never be ahead of it."""

    def of(self, owner: str) -> Sequence[Object]:
        """The claims of this owner and of owners below it."""

    def holds(self, name: str) -> bool:
        """Whether there is a claim of that name."""

    def made(self, claim: Object) -> None:
        """Adds a claim that this process created."""

    def gone(self, claim: Object) -> None:
        """Removes a claim that this process deleted."""


class HubClaims:
    """The claims on one hub. `cache` saves most requests: a claim in it exists; for others the API server is asked."""

    def __init__(
        self, client: KubeClient, namespace: str, *, cache: KnownClaims | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._known = cache

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        """The item of the pool that the owner holds, else claims the first free candidate; None if none is free."""
        if self._known is not None:
            cached_claims = [
                claim for claim in self._known.of(owner) if _spec(claim) == (pool, owner)
            ]
            if len(cached_claims) == 1:
                return _item(cached_claims[0])
        owner_claims = await self._held(pool, owner)
        if owner_claims or not candidates:
            return await self._first(owner_claims)
        for item in self._likely_first(pool, candidates):
            try:
                new_claim = await self._create(pool, item, owner, now)
            except Exists:
                continue
            if self._known is not None:
                self._known.made(new_claim)
            return await self._first(await self._held(pool, owner))
        # Another process may have claimed the last one for the same owner meanwhile.
        return await self._first(await self._held(pool, owner))

    async def release(self, owner: str) -> None:
        """Deletes all claims of this owner and of owners below it. No claims: does nothing."""
        claims = (
            await self._listed(ORDER, order_of(owner))
            if self._known is None
            else self._known.of(owner)
        )
        for claim in claims:
            if is_below(owner_of(claim), owner):
                await self._delete(claim)

    def _likely_first(self, pool: str, candidates: Sequence[str]) -> list[str]:
        """The candidates, those with a cached claim last: the claim may be deleted and the cache not know it yet."""
        cache = self._known
        if cache is None:
            return list(candidates)
        return sorted(candidates, key=lambda item: cache.holds(hub_names.claim_name(pool, item)))

    async def _create(self, pool: str, item: str, owner: str, now: datetime) -> Object:
        spec = HubClaimSpec(pool=pool, item=item, owner=owner, claimed_at=now)
        body: Object = {
            "metadata": {
                "name": hub_names.claim_name(pool, item),
                "labels": {
                    OWNER: hub_names.label_value(owner),
                    ORDER: hub_names.label_value(order_of(owner)),
                },
            },
            "spec": camel.dump(spec),
        }
        return await self._client.create(CLAIMS, body, self._namespace)

    async def _held(self, pool: str, owner: str) -> list[Object]:
        claims = await self._listed(OWNER, owner)
        return [claim for claim in claims if _spec(claim) == (pool, owner)]

    async def _listed(self, label: str, value: str) -> list[Object]:
        """Lists claims on the API server: the list is not older than this call."""
        selector = f"{label}={hub_names.label_value(value)}"
        return (await self._client.list(CLAIMS, self._namespace, labels=selector)).items

    async def _first(self, claims: Sequence[Object]) -> str | None:
        if not claims:
            return None
        # A claim is never changed, so its version is that of its creation.
        first, *others = sorted(claims, key=lambda claim: int(claim["metadata"]["resourceVersion"]))
        for other in others:
            await self._delete(other)
        if self._known is not None:
            self._known.made(first)
        return _item(first)

    async def _delete(self, claim: Object) -> None:
        metadata = claim["metadata"]
        await self._client.delete(CLAIMS, metadata["name"], self._namespace, uid=metadata["uid"])
        if self._known is not None:
            self._known.gone(claim)


def order_of(owner: str) -> str:
    return owner.partition("/")[0]


def owner_of(claim: Object) -> str:
    return str(claim["spec"]["owner"])


def is_below(owner: str, prefix: str) -> bool:
    return owner == prefix or owner.startswith(f"{prefix}/")


def _spec(claim: Object) -> tuple[str, str]:
    return claim["spec"]["pool"], claim["spec"]["owner"]


def _item(claim: Object) -> str:
    return str(claim["spec"]["item"])
