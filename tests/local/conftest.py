"""Local clusters are made of real programs; without them every test here says how to have them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.assets import needs_assets
from tests.support.real_clusters.environment import LocalEnvironment, local_environment


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[LocalEnvironment]:
    """For one test."""
    async with local_environment(needs_assets()) as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[LocalEnvironment]:
    """For the tests of one file, each with clusters of its own."""
    async with local_environment(needs_assets()) as environment:
        yield environment
