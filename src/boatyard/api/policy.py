"""Authorization: one table of verb × kind × role. Checked by the API before anything is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from boatyard.model.caller import SHARED, Caller, Role
from boatyard.model.errors import Denied


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    WATCH = "watch"
    SIGNAL = "signal"
    EXPLAIN = "explain"
    RETRY = "retry"
    CREDENTIALS = "credentials"
    ISSUE = "issue"
    HISTORY = "history"
    CHECK = "check"
    PREPARE = "prepare"
    PUBLISH = "publish"
    STORY = "story"
    ASK = "ask"


_OPERATOR = frozenset({Role.OPERATOR})
_ADMIN = _OPERATOR | {Role.ADMIN}
_MEMBER = _ADMIN | {Role.MEMBER}
_VIEWER = _MEMBER | {Role.VIEWER}
_RUN = frozenset({Role.RUN})  # a run of a template's role; in the row of RoleRun only
_NOBODY: frozenset[Role] = frozenset()

Row = Mapping[Verb, frozenset[Role]]


def _row(read: frozenset[Role], write: frozenset[Role], **others: frozenset[Role]) -> Row:
    verbs = {Verb.GET: read, Verb.LIST: read, Verb.WATCH: read}
    verbs |= {Verb.CREATE: write, Verb.UPDATE: write, Verb.DELETE: write}
    return verbs | {Verb(name): roles for name, roles in others.items()}


# A verb that is not in a kind's row is denied to everybody. The private package is for operators only.
TABLE: Mapping[str, Row] = {
    "Cluster": _row(
        _VIEWER,
        _MEMBER,
        signal=_OPERATOR,
        explain=_VIEWER,
        retry=_MEMBER,
        credentials=_MEMBER,
        issue=_VIEWER,  # what it allows in the cluster follows the role
        history=_VIEWER,
        story=_VIEWER,
    ),
    "Project": _row(_VIEWER, _ADMIN, signal=_OPERATOR),
    "Tenant": _row(_VIEWER, _OPERATOR, signal=_OPERATOR),
    "HostType": _row(_VIEWER, _OPERATOR, signal=_OPERATOR),
    "ClusterVersion": _row(_VIEWER, _OPERATOR, signal=_OPERATOR),
    "ClusterTemplate": _row(_VIEWER, _OPERATOR, signal=_OPERATOR, publish=_OPERATOR),
    "Hub": _row(_OPERATOR, _OPERATOR, signal=_OPERATOR, check=_OPERATOR, prepare=_OPERATOR),
    "Backup": {
        Verb.GET: _VIEWER,
        Verb.LIST: _VIEWER,
        Verb.CREATE: _MEMBER,
        Verb.DELETE: _MEMBER,
    },
    "Order": {Verb.GET: _OPERATOR, Verb.LIST: _OPERATOR},
    "Leftover": {Verb.GET: _OPERATOR, Verb.LIST: _OPERATOR},
    "TemplateSource": {Verb.GET: _OPERATOR, Verb.LIST: _OPERATOR},
    "RoleRun": {Verb.GET: _RUN, Verb.ASK: _RUN},
    "Event": {Verb.WATCH: _VIEWER},
    "Capabilities": {Verb.GET: _VIEWER},  # the public ones need no token at all
}


def allowed(caller: Caller, verb: Verb, kind: str, *, private: bool) -> bool:
    if private:
        return caller.is_operator and verb in TABLE[kind]
    return caller.role in TABLE[kind].get(verb, _NOBODY)


def check(caller: Caller, verb: Verb, kind: str, *, private: bool) -> None:
    """Raises Denied when the caller may not; the message is the same for every object of the kind."""
    if allowed(caller, verb, kind, private=private):
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
