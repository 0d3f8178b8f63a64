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
from boatyard.orderbook.kube.mapping import kube_json

Object = dict[str, Any]

OWNER_LABEL = "boatyard.io/owner"  # label: the owner as a label value
ORDER_LABEL = "boatyard.io/order"  # label: the order's id as a label value


class ClaimCache(Protocol):
    """A copy of the claims that a watch keeps up to date; it may lag behind the API server, never be ahead of it."""

    def list_claims(self, owner: str) -> Sequence[Object]:
        """The claims of this owner and of owners below it."""

    def has_claim(self, name: str) -> bool:
        """Whether there is a claim of that name."""

    def add_claim(self, claim: Object) -> None:
        """Adds a claim that this process created."""

    def remove_claim(self, claim: Object) -> None:
        """Removes a claim that this process deleted."""


class HubClaims:
    """The claims on one hub. `cache` saves most requests: a claim in it exists; for others the API server is asked."""

    def __init__(
        self, client: KubeClient, namespace: str, *, cache: ClaimCache | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._cache = cache

    async def claim(
        self, pool: str, candidates: Sequence[str], owner: str, *, now: datetime
    ) -> str | None:
        """The item of the pool that the owner holds, else claims the first free candidate; None if none is free."""
        if self._cache is not None:
            cached_claims = [
                claim
                for claim in self._cache.list_claims(owner)
                if _get_pool_and_owner(claim) == (pool, owner)
            ]
            if len(cached_claims) == 1:
                return _get_claimed_item(cached_claims[0])
        owner_claims = await self._list_owner_claims(pool, owner)
        if owner_claims or not candidates:
            return await self._keep_first_claim(owner_claims)
        for item in self._sort_by_cached_claim(pool, candidates):
            try:
                new_claim = await self._create(pool, item, owner, now)
            except Exists:
                continue
            if self._cache is not None:
                self._cache.add_claim(new_claim)
            return await self._keep_first_claim(await self._list_owner_claims(pool, owner))
        # Another process may have claimed the last one for the same owner meanwhile.
        return await self._keep_first_claim(await self._list_owner_claims(pool, owner))

    async def release(self, owner: str) -> None:
        """Deletes all claims of this owner and of owners below it. No claims: does nothing."""
        claims = (
            await self._list_by_label(ORDER_LABEL, get_order_id(owner))
            if self._cache is None
            else self._cache.list_claims(owner)
        )
        for claim in claims:
            if is_below(get_claim_owner(claim), owner):
                await self._delete(claim)

    def _sort_by_cached_claim(self, pool: str, candidates: Sequence[str]) -> list[str]:
        """The candidates, those with a cached claim last: the claim may be deleted and the cache not know it yet."""
        cache = self._cache
        if cache is None:
            return list(candidates)
        return sorted(
            candidates, key=lambda item: cache.has_claim(hub_names.claim_name(pool, item))
        )

    async def _create(self, pool: str, item: str, owner: str, now: datetime) -> Object:
        spec = HubClaimSpec(pool=pool, item=item, owner=owner, claimed_at=now)
        body: Object = {
            "metadata": {
                "name": hub_names.claim_name(pool, item),
                "labels": {
                    OWNER_LABEL: hub_names.label_value(owner),
                    ORDER_LABEL: hub_names.label_value(get_order_id(owner)),
                },
            },
            "spec": kube_json.dump(spec),
        }
        return await self._client.create(CLAIMS, body, self._namespace)

    async def _list_owner_claims(self, pool: str, owner: str) -> list[Object]:
        claims = await self._list_by_label(OWNER_LABEL, owner)
        return [claim for claim in claims if _get_pool_and_owner(claim) == (pool, owner)]

    async def _list_by_label(self, label: str, value: str) -> list[Object]:
        """Lists claims on the API server: the list is not older than this call."""
        selector = f"{label}={hub_names.label_value(value)}"
        return (await self._client.list(CLAIMS, self._namespace, labels=selector)).items

    async def _keep_first_claim(self, claims: Sequence[Object]) -> str | None:
        if not claims:
            return None
        # A claim is never changed, so its version is that of its creation.
        first, *others = sorted(claims, key=lambda claim: int(claim["metadata"]["resourceVersion"]))
        for other in others:
            await self._delete(other)
        if self._cache is not None:
            self._cache.add_claim(first)
        return _get_claimed_item(first)

    async def _delete(self, claim: Object) -> None:
        metadata = claim["metadata"]
        await self._client.delete(CLAIMS, metadata["name"], self._namespace, uid=metadata["uid"])
        if self._cache is not None:
            self._cache.remove_claim(claim)


def get_order_id(owner: str) -> str:
    return owner.partition("/")[0]


def get_claim_owner(claim: Object) -> str:
    return str(claim["spec"]["owner"])


def is_below(owner: str, prefix: str) -> bool:
    return owner == prefix or owner.startswith(f"{prefix}/")


def _get_pool_and_owner(claim: Object) -> tuple[str, str]:
    return claim["spec"]["pool"], claim["spec"]["owner"]


def _get_claimed_item(claim: Object) -> str:
    return str(claim["spec"]["item"])
