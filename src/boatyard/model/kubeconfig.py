"""Finds what a context of a kubeconfig names. Pure; called wherever the values of a kubeconfig are read.

Whether a file or a program that it names may be used is the caller's decision.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from boatyard.model.yaml_text import NotYaml, load_yaml

CONTEXTS, CLUSTERS, USERS = "contexts", "clusters", "users"
_BODIES = {CONTEXTS: "context", CLUSTERS: "cluster", USERS: "user"}
_MOST_NAMES = 10  # that a message lists
_LONGEST_NAME = 80

# Fields that name a file, and the field that takes its contents.
FILE_FIELDS: Mapping[str, str] = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "tokenFile": "token",
}


class KubeconfigError(ValueError):
    """What is wrong with a kubeconfig. The message contains names from it, and no other value."""


class NoCurrentContext(KubeconfigError):
    """No context was asked for, and the kubeconfig does not choose one."""


def load_kubeconfig(text: str | bytes) -> Mapping[str, Any]:
    """The kubeconfig as values. KubeconfigError when the text is not one mapping in YAML."""
    try:
        kubeconfig = load_yaml(text)
    except NotYaml as error:
        raise KubeconfigError(f"cannot be read: {error}") from None
    if not isinstance(kubeconfig, Mapping):
        raise KubeconfigError("is not a kubeconfig")
    return kubeconfig


def choose_context(kubeconfig: Mapping[str, Any], context: str = "") -> str:
    """The name of the context to use: `context`, or the current one when it is empty."""
    name = context or kubeconfig.get("current-context")
    if not name:
        raise NoCurrentContext("has no current-context")
    if not isinstance(name, str):
        raise KubeconfigError("current-context is not a text")
    return name


def find_entry(kubeconfig: Mapping[str, Any], table: str, name: object) -> Mapping[str, Any]:
    """The body of the entry of that name in `contexts`, `clusters` or `users`; an entry without one is empty."""
    body_field = _BODIES[table]
    entries = kubeconfig.get(table) or ()
    if not isinstance(entries, list | tuple):
        raise KubeconfigError(f"{table} is not a list")
    rows = [entry for entry in entries if isinstance(entry, Mapping)]
    for row in rows:
        if isinstance(name, str) and row.get("name") == name:
            body = row.get(body_field) or {}
            if not isinstance(body, Mapping):
                raise KubeconfigError(f"{body_field} {_quote(name)} is not a mapping")
            return body
    names = [_quote(row["name"]) for row in rows[:_MOST_NAMES] if row.get("name")]
    choices = f"; there is {', '.join(names)}" if names else ""
    raise KubeconfigError(f"there is no {body_field} {_quote(name or '')}{choices}")


def decode_field(entry: Mapping[str, Any], field: str) -> bytes:
    """The contents of a field such as client-key-data; empty when it is not there. KubeconfigError if not base64."""
    value = entry.get(field)
    if value is None:
        return b""
    if not isinstance(value, str):
        raise KubeconfigError(f"{field} is not a text")
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"{field} is not base64") from None


def _quote(name: object) -> str:
    """A name as a message shows it: short, on one line, without control characters."""
    return repr(str(name)[:_LONGEST_NAME])
