"""In which words a change is recorded, where tenants read it."""

from __future__ import annotations

import pytest

from boatyard.api import document_changes
from boatyard.model.caller import SHARED, Caller, CallerRole


def test_tenants_read_an_operator_and_not_which_one() -> None:
    operator = Caller("olga", SHARED, CallerRole.OPERATOR)

    note = document_changes.make_note("Retried", operator, "Retry requested")

    assert (note.reason, note.message) == ("Retried", "Retry requested by an operator")


@pytest.mark.parametrize("role", [CallerRole.ADMIN, CallerRole.MEMBER, CallerRole.VIEWER])
def test_a_tenants_own_people_are_named(role: CallerRole) -> None:
    note = document_changes.make_note("Created", Caller("ann", "acme", role), "Created")

    assert note.message == "Created by ann"
