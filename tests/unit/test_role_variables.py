"""Names that parameters of a role may not have, because the run itself would listen to them."""

from __future__ import annotations

import pytest

from boatyard.automation.drivers.local.values import check_names


@pytest.mark.parametrize(
    "name",
    ["ansible_connection", "ansible_become", "boatyard_token", "hostvars", "item", "a-b", "1a", ""],
)
def test_a_parameter_that_would_steer_the_run_is_refused(name: str) -> None:
    (violation,) = check_names("parameters", [name])

    assert violation.path == f"parameters.{name}"


@pytest.mark.parametrize("name", ["replicas", "_hidden", "my_ansible", "Zone2"])
def test_other_names_are_taken(name: str) -> None:
    assert check_names("parameters", [name]) == []
