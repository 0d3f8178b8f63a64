"""Ansible's environment, made once for all tests, and a site to run roles on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from boatyard.automation.drivers.local.ansible_environment import AnsibleEnvironment
from tests.support.role_runs import RoleEnvironment, processes_with, released


@pytest.fixture(scope="session")
def environment() -> AnsibleEnvironment:
    made = AnsibleEnvironment()
    made.ensure(lambda _: None)
    return made


@pytest.fixture
async def role_environment(
    tmp_path: Path, environment: AnsibleEnvironment
) -> AsyncIterator[RoleEnvironment]:
    """Nothing of it is left at the end, whatever the test did."""
    made = RoleEnvironment(tmp_path, environment)
    yield made
    driver = made.driver()
    for one in {record.key for record in made.shop().records}:
        await released(driver, one)
    for shop in made.shops:
        shop.close()
    assert processes_with(str(made.data)) == {}
