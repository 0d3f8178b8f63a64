"""Authorization by the table of permissions. Checked by the API before anything is looked up."""

from __future__ import annotations

from boatyard.api.permissions import TABLE, Verb
from boatyard.model.caller import SHARED, Caller
from boatyard.model.errors import Denied


def is_allowed(caller: Caller, verb: Verb, kind: str, *, private: bool) -> bool:
    if private:
        return caller.is_operator and verb in TABLE[kind]
    return caller.role in TABLE[kind].get(verb, ())


def check(caller: Caller, verb: Verb, kind: str, *, private: bool) -> None:
    """Raises Denied when the caller may not; the message is the same for every object of the kind."""
    if is_allowed(caller, verb, kind, private=private):
        return
    if private and not caller.is_operator:
        raise Denied("this package is for operators; use the public one")
    raise Denied(f"the role {caller.role.value} may not {verb.value} {kind}")


def check_owner(caller: Caller, verb: Verb, tenant: str) -> None:
    """Raises Denied when a tenant's user acts on a shared object: tenants may only see those."""
    if caller.is_operator or tenant == caller.tenant:
        return
    if tenant == SHARED:
        raise Denied(f"it is shared: only operators may {verb.value} it")
    raise AssertionError("what is not visible must have been answered as not found")
