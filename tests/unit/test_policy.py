"""What the table of verbs, kinds and roles says, compared with one that was written by hand."""

from __future__ import annotations

from typing import Any, cast

import pytest

from boatyard.api import policy
from boatyard.api.calls import methods
from boatyard.api.crud import Crud, sees
from boatyard.api.kinds import KINDS
from boatyard.api.policy import TABLE, Verb
from boatyard.model.caller import SHARED, SYSTEM, Caller, OrderRun, Role
from boatyard.model.errors import Denied
from boatyard.model.generated.osac import Cluster, Metadata
from tests.support import permissions
from tests.support.permissions import LETTERS

PEOPLE = (Role.OPERATOR, Role.ADMIN, Role.MEMBER, Role.VIEWER)


def caller(role: Role) -> Caller:
    run = OrderRun("order", "role", 1) if role is Role.RUN else None
    return Caller("ann", SHARED if role is Role.OPERATOR else "acme", role, run)


def letters(verb: Verb, kind: str, *, private: bool) -> str:
    return "".join(
        LETTERS[role] for role in Role if policy.allowed(caller(role), verb, kind, private=private)
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
        for service, calls in methods(
            Crud(cast(Any, None), cast(Any, None)), cast(Any, None)
        ).items()
        for rpc, method in calls.items()
        if method.served
    }

    assert served == set(permissions.calls())


@pytest.mark.parametrize("private", [False, True])
def test_who_may_not_is_denied_in_words_that_name_no_object(private: bool) -> None:
    for (kind, verb), roles in permissions.verbs().items():
        expected = ("O" if roles else "") if private else roles
        for role in Role:
            try:
                policy.check(caller(role), Verb(verb), kind, private=private)
            except Denied:
                assert LETTERS[role] not in expected, f"{role} {verb} {kind}"
            else:
                assert LETTERS[role] in expected, f"{role} {verb} {kind}"


@pytest.mark.parametrize("whose, roles", [
    pytest.param("acme", PEOPLE, id="their own"),
    pytest.param(SHARED, PEOPLE, id="what is shared"),
    pytest.param("globex", (Role.OPERATOR,), id="a stranger's"),
    pytest.param(SYSTEM, (Role.OPERATOR,), id="the service's own"),
    pytest.param("", (Role.OPERATOR,), id="nobody's"),
])  # fmt: skip
def test_people_see_their_own_and_what_is_shared(whose: str, roles: tuple[Role, ...]) -> None:
    document = Cluster(id="c1", metadata=Metadata(tenant=whose))

    for role in PEOPLE:
        tenants = caller(role).visible_tenants
        assert sees(caller(role), document) == (role in roles), role
        assert (tenants is None or whose in tenants) == (role in roles), f"lists for {role}"


@pytest.mark.parametrize("verb", list(Verb))
def test_what_is_shared_is_changed_and_unlocked_by_operators_only(verb: Verb) -> None:
    for role in (Role.ADMIN, Role.MEMBER, Role.VIEWER):
        policy.check_owner(caller(role), verb, "acme")
        with pytest.raises(Denied):
            policy.check_owner(caller(role), verb, SHARED)
    for tenant in ("acme", SHARED, "globex"):
        policy.check_owner(caller(Role.OPERATOR), verb, tenant)
