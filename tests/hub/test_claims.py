"""Claims on a hub stay single also when somebody dies in the middle, or hears late of what happened."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.errors import Unavailable
from boatyard.orderbook.kube.claims import HubClaims, get_claim_owner
from boatyard.orderbook.kube.kinds import CLAIMS
from tests.contracts.order_books import NOW, KubeBookHarness
from tests.support.kube_hub.api_server import until

POOL, OWNER = "hub-1/hosts", "o-1/host/0"


async def held(harness: KubeBookHarness) -> dict[str, str]:
    """Every claim there is: the item and who holds it."""
    listed = await harness.client.list(CLAIMS, harness.system)
    return {claim["spec"]["item"]: get_claim_owner(claim) for claim in listed.items}


async def test_one_who_died_right_after_claiming_holds_what_it_claimed(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = HubClaims(harness.client, harness.system)
    look = claims._list_owner_claims
    looks = 0

    async def dies(pool: str, owner: str) -> list[dict[str, Any]]:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise Unavailable("died after the claim was made")
        return await look(pool, owner)

    monkeypatch.setattr(claims, "_list_owner_claims", dies)
    with pytest.raises(Unavailable):
        await claims.claim(POOL, ["a"], OWNER, now=NOW)
    heir = HubClaims(harness.client, harness.system)
    assert await heir.claim(POOL, ["b"], OWNER, now=NOW) == "a"
    assert await held(harness) == {"a": OWNER}


async def test_of_two_claims_of_one_owner_the_first_one_counts(harness: KubeBookHarness) -> None:
    """As two leave them who both died before they looked what the other had done."""
    claims = HubClaims(harness.client, harness.system)
    for item in ("c", "a", "b"):
        await claims._create(POOL, item, OWNER, NOW)
    assert await claims.claim(POOL, ["d"], OWNER, now=NOW) == "c"
    assert await held(harness) == {"c": OWNER}


async def test_without_the_second_look_an_owner_would_hold_two(
    harness: KubeBookHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: whoever has made a claim does not look at the others of its owner."""
    claims = HubClaims(harness.client, harness.system)

    async def sees_nothing(pool: str, owner: str) -> list[dict[str, Any]]:
        return []

    monkeypatch.setattr(claims, "_list_owner_claims", sees_nothing)
    for item in ("a", "b"):
        await claims.claim(POOL, [item], OWNER, now=NOW)
    assert await held(harness) == {"a": OWNER, "b": OWNER}


async def test_what_was_given_back_is_not_held_because_a_watch_says_so_late(
    harness: KubeBookHarness,
) -> None:
    claims = HubClaims(harness.client, harness.system, cache=harness.view)
    assert await claims.claim(POOL, ["a"], OWNER, now=NOW) == "a"
    (claim,) = harness.view.list_claims(OWNER)
    await until(lambda: len(harness.view.informers[2]) == 1, "the watch has told")
    await claims.release(OWNER)
    harness.view._handle_claim_change(None, dict(claim))  # told again, too late
    assert harness.view.list_claims(OWNER) == []
    assert await claims.claim(POOL, ["b"], OWNER, now=NOW) == "b"
    assert await held(harness) == {"b": OWNER}


async def test_what_is_known_to_be_held_is_not_asked_for(harness: KubeBookHarness) -> None:
    claims = HubClaims(harness.client, harness.system, cache=harness.view)
    await claims.claim(POOL, ["a"], OWNER, now=NOW)
    silent = HubClaims(harness.client, "nowhere", cache=harness.view)
    assert await silent.claim(POOL, ["b"], OWNER, now=NOW) == "a"


async def test_claims_known_to_be_taken_are_tried_last(harness: KubeBookHarness) -> None:
    claims = HubClaims(harness.client, harness.system, cache=harness.view)
    await claims.claim(POOL, ["a"], "o-2/host/0", now=NOW)
    assert claims._sort_by_cached_claim(POOL, ["a", "b"]) == ["b", "a"]
    assert await claims.claim(POOL, ["a", "b"], OWNER, now=NOW) == "b"
    assert await claims.claim(POOL, ["a"], "o-3/host/0", now=NOW) is None


async def test_giving_back_an_owner_gives_back_those_below_it(harness: KubeBookHarness) -> None:
    for known in (None, harness.view):
        claims = HubClaims(harness.client, harness.system, cache=known)
        await claims.claim(POOL, ["a"], "o-1/host/0", now=NOW)
        await claims.claim(POOL, ["b"], "o-1/host/0/deep", now=NOW)
        await claims.claim(POOL, ["c"], "o-1/host/01", now=NOW)
        await claims.release("o-1/host/0")
        assert await held(harness) == {"c": "o-1/host/01"}
        await claims.release("o-1")
        assert await held(harness) == {}
