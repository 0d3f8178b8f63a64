"""The platform port's promises, kept by HyperShift (as the player plays it) on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.contracts import test_platform
from tests.contracts.harness import PlatformHarness
from tests.contracts.rules import Rule, rules_of
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.hosted_harness import hosted_harness, played_hub

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

# HyperShift has no rest and no backups; the driver refuses them (tests/kube/test_hosted_wishes.py).
REFUSED = ("rest", "frozen", "backup", "restore", "done_means_that")
# A virtual machine of the player's does not break by itself, and no host stands behind it.
WITHOUT_HOSTS = (
    "a_lost_host_degrades_the_cluster",
    "who_leaves_is_first_who_never_joined_then_not_ready_then_youngest",
)

OFFERED = [
    rule
    for rule in rules_of(vars(test_platform))
    if not any(word in rule.__name__ for word in REFUSED)
]
CASES = [
    pytest.param(rule, platform, id=f"{platform}-{rule.__name__}")
    for platform in ("Agent", "KubeVirt")
    for rule in OFFERED
    if platform == "Agent" or rule.__name__ not in WITHOUT_HOSTS
]


@pytest.fixture(scope="module")
def hub() -> Iterator[ControlPlane]:
    with played_hub() as plane:
        yield plane


# Namespaces take their time to go: all go side by side, and the last test waits for them.
LEAVING: list[asyncio.Task[None]] = []


@pytest_asyncio.fixture(loop_scope="module")
async def harness(hub: ControlPlane, platform: str) -> AsyncIterator[PlatformHarness]:
    there = await hosted_harness(hub, platform)
    yield there.harness
    LEAVING.append(asyncio.create_task(there.take_away()))


@pytest.mark.parametrize("rule, platform", CASES)
async def test_platform_rules(rule: Rule, harness: PlatformHarness, platform: str) -> None:
    await rule(harness)


async def test_nothing_is_left_of_any_of_them() -> None:
    await asyncio.gather(*LEAVING)
