"""What the table of verbs, kinds and roles says, compared with one that was written by hand."""

from __future__ import annotations

from typing import Any, cast

import pytest

from boatyard.api import policy
from boatyard.api.crud import Crud, can_see
from boatyard.api.kinds import KINDS
from boatyard.api.methods import build_methods
from boatyard.api.permissions import TABLE, Verb
from boatyard.api.watch import EventWatchers
from boatyard.model.caller import SHARED, SYSTEM, Caller, CallerRole, OrderRun
from boatyard.model.errors import Denied
from boatyard.model.generated.osac import Cluster, Metadata
from tests.support import permissions
from tests.support.permissions import LETTERS

PEOPLE = (CallerRole.OPERATOR, CallerRole.ADMIN, CallerRole.MEMBER, CallerRole.VIEWER)


def caller(role: CallerRole) -> Caller:
    run = OrderRun("order", "role", 1) if role is CallerRole.RUN else None
    return Caller("ann", SHARED if role is CallerRole.OPERATOR else "acme", role, run)


def letters(verb: Verb, kind: str, *, private: bool) -> str:
    return "".join(
        LETTERS[role]
        for role in CallerRole
        if policy.is_allowed(caller(role), verb, kind, private=private)
    )


def test_each_role_may_do_what_is_written_down_and_nothing_else() -> None:
    table = {
        (kind, verb.value): letters(verb, kind, private=False) for kind in TABLE for verb in Verb
    }

    assert table == permissions.verbs()


def test_every_kind_that_is_kept_has_a_row() -> None:
    assert set(KINDS) <= {kind for kind, _verb in permissions.verbs()}


def test_the_private_package_is_for_operators_and_has_the_verbs_of_the_table() -> None:
    expected = {key: "O" if roles else "" for key, roles in permissions.verbs().items()}

    assert expected == {
        (kind, verb.value): letters(verb, kind, private=True) for kind in TABLE for verb in Verb
    }


def test_every_call_that_is_served_is_written_down() -> None:
    served = {
        (service, rpc)
        for service, calls in build_methods(
            Crud(cast(Any, None), cast(Any, None)), EventWatchers(cast(Any, None))
        ).items()
        for rpc, method in calls.items()
        if method.is_served
    }

    assert served == set(permissions.calls())


@pytest.mark.parametrize("private", [False, True])
def test_who_may_not_is_denied_in_words_that_name_no_object(private: bool) -> None:
    for (kind, verb), roles in permissions.verbs().items():
        expected = ("O" if roles else "") if private else roles
        for role in CallerRole:
            try:
                policy.check(caller(role), Verb(verb), kind, private=private)
            except Denied:
                assert LETTERS[role] not in expected, f"{role} {verb} {kind}"
            else:
                assert LETTERS[role] in expected, f"{role} {verb} {kind}"


@pytest.mark.parametrize("whose, roles", [
    pytest.param("acme", PEOPLE, id="their own"),
    pytest.param(SHARED, PEOPLE, id="what is shared"),
    pytest.param("globex", (CallerRole.OPERATOR,), id="a stranger's"),
    pytest.param(SYSTEM, (CallerRole.OPERATOR,), id="the service's own"),
    pytest.param("", (CallerRole.OPERATOR,), id="nobody's"),
])  # fmt: skip
def test_people_see_their_own_and_what_is_shared(whose: str, roles: tuple[CallerRole, ...]) -> None:
    document = Cluster(id="c1", metadata=Metadata(tenant=whose))

    for role in PEOPLE:
        tenants = caller(role).visible_tenants
        assert can_see(caller(role), document) == (role in roles), role
        assert (tenants is None or whose in tenants) == (role in roles), f"lists for {role}"


@pytest.mark.parametrize("verb", list(Verb))
def test_what_is_shared_is_changed_and_unlocked_by_operators_only(verb: Verb) -> None:
    for role in (CallerRole.ADMIN, CallerRole.MEMBER, CallerRole.VIEWER):
        policy.check_owner(caller(role), verb, "acme")
        with pytest.raises(Denied):
            policy.check_owner(caller(role), verb, SHARED)
    for tenant in ("acme", SHARED, "globex"):
        policy.check_owner(caller(CallerRole.OPERATOR), verb, tenant)
