"""Ansible's environment, made once for all tests, and a site to run roles on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.environment import Environment
from tests.support.automation import Site, processes_with, released


@pytest.fixture(scope="session")
def environment() -> Environment:
    made = Environment()
    made.ensure(lambda _: None)
    return made


@pytest.fixture
async def site(tmp_path: Path, environment: Environment) -> AsyncIterator[Site]:
    """Nothing of it is left at the end, whatever the test did."""
    made = Site(tmp_path, environment)
    yield made
    driver = made.driver()
    for one in {record.key for record in made.shop().records}:
        await released(driver, one)
    for shop in made.shops:
        shop.close()
    assert processes_with(str(made.data)) == {}
