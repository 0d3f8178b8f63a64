"""The platform port's promises, kept by real clusters on this machine."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from boatyard.assets import Assets
from tests.contracts import test_platform
from tests.contracts.harness import PlatformHarness
from tests.contracts.rules import Rule, rules_of
from tests.contracts.twin_surroundings import HUB_LAYOUT
from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import LocalEnvironment

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
HUBS = itertools.count(100)


@pytest_asyncio.fixture(loop_scope="module")
async def harness(shared: LocalEnvironment) -> AsyncIterator[PlatformHarness]:
    """A hub of its own, and afterwards nothing on it."""
    hub = f"boston-{next(HUBS)}"
    await shared.twin.call("twin.add_hub", hub=hub, layout=msgspec.to_builtins(HUB_LAYOUT))
    offered = Assets().versions() or [""]
    harness = shared.harness(hub, version=offered[0], newer_version=offered[-1])
    yield harness
    if not shared.keeper.lives:
        await shared.keeper.start()
    for order in ("order-1", "order-2"):
        key = f"{order}/cluster"
        await harness.until_done(lambda key=key: harness.platform.release_cluster(key))  # type: ignore[misc]
    for backup in ("backup-1", "backup-2"):
        await harness.platform.release_backup(f"{backup}/backup")
    assert await harness.platform.list_owned() == []


# The keeper looks at what is there; nobody stands between it and that who could lie.
RULES = [rule for rule in rules_of(vars(test_platform)) if not rule.__name__.startswith("done_")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
async def test_platform_rules(rule: Rule, harness: PlatformHarness) -> None:
    if "version" in rule.__name__:
        needs_assets("1.35.4", "1.36.3")
    await rule(harness)
