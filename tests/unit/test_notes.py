"""In which words a change is recorded, where tenants read it."""

from __future__ import annotations

import pytest

from boatyard.api import writing
from boatyard.model.caller import SHARED, Caller, Role


def test_tenants_read_an_operator_and_not_which_one() -> None:
    operator = Caller("olga", SHARED, Role.OPERATOR)

    note = writing.note("Retried", operator, "Retry requested")

    assert (note.reason, note.message) == ("Retried", "Retry requested by an operator")


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER, Role.VIEWER])
def test_a_tenants_own_people_are_named(role: Role) -> None:
    note = writing.note("Created", Caller("ann", "acme", role), "Created")

    assert note.message == "Created by ann"
