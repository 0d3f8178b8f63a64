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
from boatyard.model.yaml_text import NotYaml, load_yaml

_FIELD = "--kubeconfig"
_TOKEN_REMEDY = "make a service account and give its token: see docs/guide/hubs.md"
_FILE_FIELDS = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def flatten_kubeconfig(text: bytes, context: str, folder: Path) -> bytes:
    """The kubeconfig with that context (the current one when none is named) and nothing else, files read in.

    Paths are taken relative to `folder`, as kubectl does. Refused with the field that cannot be sent.
    """
    try:
        config = load_yaml(text)
    except NotYaml as error:
        raise _make_refusal("", f"cannot be read: {error}", "give a kubeconfig") from None
    if not isinstance(config, Mapping):
        raise _make_refusal("", "is not a kubeconfig", "give a kubeconfig")
    name = context or config.get("current-context") or ""
    if not name:
        raise _make_refusal("current-context", "there is none", "name one with --context")
    context_body = _find_named(config, "contexts", "context", name, "name another with --context")
    remedy = "mend the file"
    cluster = _find_named(config, "clusters", "cluster", context_body.get("cluster"), remedy)
    user = _find_named(config, "users", "user", context_body.get("user"), remedy)
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


def _find_named(
    config: Mapping[str, Any], table: str, part: str, name: Any, remedy: str
) -> Mapping[str, Any]:
    entries = config.get(table)
    rows = [row for row in entries if isinstance(row, Mapping)] if isinstance(entries, list) else []
    for row in rows:
        body = row.get(part)
        if row.get("name") == name and isinstance(body, Mapping):
            return body
    row_names = ", ".join(str(row.get("name")) for row in rows)
    hint = f"; there is {row_names}" if row_names else ""
    raise _make_refusal(table, f"there is no {part} {str(name)!r}{hint}", remedy)


def _inline_files(body: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    inlined = {
        field: value for field, value in body.items() if field not in (*_FILE_FIELDS, "tokenFile")
    }
    for field, inline in _FILE_FIELDS.items():
        if body.get(field) and not body.get(inline):
            inlined[inline] = base64.b64encode(_read_file(body[field], field, folder)).decode()
    if body.get("tokenFile"):
        token = _read_file(body["tokenFile"], "tokenFile", folder)
        inlined["token"] = token.decode(errors="replace").strip()
    return inlined


def _read_file(path: Any, field: str, folder: Path) -> bytes:
    try:
        return (folder / str(path)).read_bytes()
    except OSError as error:
        problem = f"{str(path)!r} cannot be read: {error.strerror}"
        raise _make_refusal(field, problem, "mend the file, or put its contents in") from None


def _make_refusal(field: str, problem: str, remedy: str) -> Refused:
    return Refused("", Violation(_FIELD, f"{field}: {problem}" if field else problem, remedy))
