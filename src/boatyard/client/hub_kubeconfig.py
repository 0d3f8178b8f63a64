"""Extracts the part of a user's kubeconfig that a hub is registered with. Called by the verbs about hubs.

Only one context leaves this machine. The contents of files that it names are included, because the service does not
have these files; programs that it names are refused.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from boatyard.model.errors import Refused, Violation
from boatyard.model.kubeconfig import (
    CLUSTERS,
    CONTEXTS,
    FILE_FIELDS,
    USERS,
    KubeconfigError,
    NoCurrentContext,
    choose_context,
    find_entry,
    load_kubeconfig,
)

_FIELD = "--kubeconfig"
_TOKEN_REMEDY = "make a service account and give its token: see docs/guide/hubs.md"


def flatten_kubeconfig(text: bytes, context: str, folder: Path) -> bytes:
    """The kubeconfig with that context (the current one when none is named) and nothing else, files read in.

    Paths are taken relative to `folder`, as kubectl does. Refused with the field that cannot be sent.
    """
    try:
        kubeconfig = load_kubeconfig(text)
    except KubeconfigError as error:
        raise _make_refusal("", str(error), "give a kubeconfig") from None
    try:
        name = choose_context(kubeconfig, context)
        context_body = find_entry(kubeconfig, CONTEXTS, name)
    except NoCurrentContext:
        raise _make_refusal("current-context", "there is none", "name one with --context") from None
    except KubeconfigError as error:
        raise _make_refusal("", str(error), "name another with --context") from None
    try:
        cluster = find_entry(kubeconfig, CLUSTERS, context_body.get("cluster"))
        user = find_entry(kubeconfig, USERS, context_body.get("user"))
    except KubeconfigError as error:
        raise _make_refusal(f"contexts[{name}]", str(error), "mend the file") from None
    for field in ("exec", "auth-provider"):
        if user.get(field):
            problem = "names a program of this machine, which the service has not"
            raise _make_refusal(
                f"users[{context_body.get('user')}].{field}", problem, _TOKEN_REMEDY
            )
    hub_config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": _inline_files(cluster, folder)}],
        "users": [{"name": "hub", "user": _inline_files(user, folder)}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub"}}],
        "current-context": "hub",
    }
    hub_text: str = yaml.safe_dump(hub_config, sort_keys=False)
    return hub_text.encode()


def _inline_files(body: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    inlined = {field: value for field, value in body.items() if field not in FILE_FIELDS}
    for field, inline in FILE_FIELDS.items():
        # Of a token and its file the file wins, as with kubectl: it can be renewed.
        if not body.get(field) or (body.get(inline) and inline != "token"):
            continue
        content = _read_file(body[field], field, folder)
        if inline == "token":
            inlined[inline] = content.decode(errors="replace").strip()
        else:
            inlined[inline] = base64.b64encode(content).decode()
    return inlined


def _read_file(path: Any, field: str, folder: Path) -> bytes:
    try:
        return (folder / str(path)).read_bytes()
    except OSError as error:
        problem = f"{str(path)!r} cannot be read: {error.strerror}"
        raise _make_refusal(field, problem, "mend the file, or put its contents in") from None


def _make_refusal(field: str, problem: str, remedy: str) -> Refused:
    return Refused("", Violation(_FIELD, f"{field}: {problem}" if field else problem, remedy))
