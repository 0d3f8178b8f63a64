"""Local clusters are made of real programs; without them every test here says how to have them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.assets import needs_assets
from tests.support.local_site import LocalSite, local_site


@pytest_asyncio.fixture
async def site() -> AsyncIterator[LocalSite]:
    """For one test."""
    async with local_site(needs_assets()) as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[LocalSite]:
    """For the tests of one file, each with clusters of its own."""
    async with local_site(needs_assets()) as site:
        yield site
