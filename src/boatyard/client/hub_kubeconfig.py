"""The part of a person's kubeconfig that a hub is registered with. Called by the verbs about hubs.

Only one context leaves this machine, and what it names as files goes along: the service has no such files. What it
names as a program cannot go along.
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
_TOKEN = "make a service account and give its token: see docs/guide/hubs.md"
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def flattened(text: bytes, context: str, folder: Path) -> bytes:
    """The kubeconfig with that context (the current one when none is named) and nothing else, files read in.

    Paths are taken relative to `folder`, as kubectl does. Refused with the field that cannot be sent.
    """
    try:
        loaded = load_yaml(text)
    except NotYaml as error:
        raise _refused("", f"cannot be read: {error}", "give a kubeconfig") from None
    if not isinstance(loaded, Mapping):
        raise _refused("", "is not a kubeconfig", "give a kubeconfig")
    name = context or loaded.get("current-context") or ""
    if not name:
        raise _refused("current-context", "there is none", "name one with --context")
    chosen = _named(loaded, "contexts", "context", name, "name another with --context")
    remedy = "mend the file"
    cluster = _named(loaded, "clusters", "cluster", chosen.get("cluster"), remedy)
    user = _named(loaded, "users", "user", chosen.get("user"), remedy)
    for at in ("exec", "auth-provider"):
        if user.get(at):
            what = "names a program of this machine, which the service has not"
            raise _refused(f"users[{chosen.get('user')}].{at}", what, _TOKEN)
    sent = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": _inlined(cluster, folder)}],
        "users": [{"name": "hub", "user": _inlined(user, folder)}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub"}}],
        "current-context": "hub",
    }
    written: str = yaml.safe_dump(sent, sort_keys=False)
    return written.encode()


def _named(
    loaded: Mapping[str, Any], table: str, what: str, name: Any, remedy: str
) -> Mapping[str, Any]:
    entries = loaded.get(table)
    rows = [one for one in entries if isinstance(one, Mapping)] if isinstance(entries, list) else []
    for row in rows:
        found = row.get(what)
        if row.get("name") == name and isinstance(found, Mapping):
            return found
    known = ", ".join(str(row.get("name")) for row in rows)
    there = f"; there is {known}" if known else ""
    raise _refused(table, f"there is no {what} {str(name)!r}{there}", remedy)


def _inlined(said: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    found = {field: value for field, value in said.items() if field not in (*_FILES, "tokenFile")}
    for field, inline in _FILES.items():
        if said.get(field) and not said.get(inline):
            found[inline] = base64.b64encode(_read(said[field], field, folder)).decode()
    if said.get("tokenFile"):
        token = _read(said["tokenFile"], "tokenFile", folder)
        found["token"] = token.decode(errors="replace").strip()
    return found


def _read(path: Any, field: str, folder: Path) -> bytes:
    try:
        return (folder / str(path)).read_bytes()
    except OSError as error:
        why = f"{str(path)!r} cannot be read: {error.strerror}"
        raise _refused(field, why, "mend the file, or put its contents in") from None


def _refused(field: str, what: str, remedy: str) -> Refused:
    return Refused("", Violation(_FIELD, f"{field}: {what}" if field else what, remedy))
