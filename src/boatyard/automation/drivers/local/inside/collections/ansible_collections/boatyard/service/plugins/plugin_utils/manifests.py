"""Checks manifests, names them, and removes their secrets from messages. Used by the action plugin `apply`."""

from __future__ import annotations

import base64
import binascii

HIDDEN = "********"
_SHORTEST = 3  # a shorter secret would blot out half of every message, and protects nothing


def mistakes(manifests):
    """Everything that is wrong with the structure of the manifests, each with its path."""
    problems = []
    for index, manifest in enumerate(manifests):
        path = f"manifests[{index}]"
        if not isinstance(manifest, dict):
            problems.append(f"{path}: is no mapping; give manifests as data, not as text")
            continue
        for field in ("apiVersion", "kind"):
            if not isinstance(manifest.get(field), str) or not manifest[field]:
                problems.append(f"{path}.{field}: is missing")
        if isinstance(manifest.get("items"), list) and str(manifest.get("kind", "")).endswith(
            "List"
        ):
            problems.append(f"{path}.kind: is a list of objects; give its items")
            continue
        metadata = manifest.get("metadata")
        if not isinstance(metadata, dict):
            problems.append(f"{path}.metadata: is missing")
            continue
        problems += _wrong_name(metadata, "name", path, required=True)
        problems += _wrong_name(metadata, "namespace", path, required=False)
    return problems


def _wrong_name(metadata, field, path, *, required):
    value = metadata.get(field)
    if value is None and not required:
        return []
    if not isinstance(value, str) or not value:
        remedy = "; name it, so that it is there once however often it is asked for"
        return [f"{path}.metadata.{field}: is missing{remedy if required else ''}"]
    if "/" in value or "%" in value or value in (".", ".."):
        return [f"{path}.metadata.{field}: is no name"]
    return []


def called(manifest, namespace=""):
    prefix = f"{namespace}/" if namespace else ""
    return f"{manifest['kind']} {prefix}{manifest['metadata']['name']}"


def told(manifest, text):
    """The text without the contents of a Secret: API servers quote values that they refuse."""
    if manifest.get("kind") != "Secret":
        return text
    for secret in sorted(_secrets(manifest), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(manifest):
    secrets = set()
    for field in ("data", "stringData"):
        for text in _leaves(manifest.get(field)):
            secrets |= {text, base64.b64encode(text.encode()).decode(), _decoded(text)}
            secrets |= {line.strip() for line in text.splitlines()}
    # Also as in quotes, where Go and JSON write a newline as \n.
    secrets |= {repr(secret)[1:-1] for secret in secrets}
    return {secret for secret in secrets if len(secret) >= _SHORTEST}


def _leaves(value):
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [leaf for entry in value for leaf in _leaves(entry)]
    return [] if value is None else [str(value)]


def _decoded(text):
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
