"""Who may do what: one table of verb × kind × role. Read by policy.py."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from boatyard.model.caller import CallerRole


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


_OPERATOR = frozenset({CallerRole.OPERATOR})
_ADMIN = _OPERATOR | {CallerRole.ADMIN}
_MEMBER = _ADMIN | {CallerRole.MEMBER}
_VIEWER = _MEMBER | {CallerRole.VIEWER}
_RUN = frozenset({CallerRole.RUN})  # a run of a template's role; in the row of RoleRun only

Row = Mapping[Verb, frozenset[CallerRole]]


def _row(
    read: frozenset[CallerRole], write: frozenset[CallerRole], **others: frozenset[CallerRole]
) -> Row:
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
