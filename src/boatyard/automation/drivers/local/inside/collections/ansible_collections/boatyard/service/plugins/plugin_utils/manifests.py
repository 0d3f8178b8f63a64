"""Manifests as data: what is wrong with them, what they are called, and what must not be told of them."""

from __future__ import annotations

import base64
import binascii

HIDDEN = "********"
_SHORTEST = 3  # a shorter text would blot out half of every sentence, and guards nothing


def mistakes(manifests):
    """Everything that is wrong with their shape, each with its place."""
    found = []
    for index, one in enumerate(manifests):
        here = f"manifests[{index}]"
        if not isinstance(one, dict):
            found.append(f"{here}: is no mapping; give manifests as data, not as text")
            continue
        for field in ("apiVersion", "kind"):
            if not isinstance(one.get(field), str) or not one[field]:
                found.append(f"{here}.{field}: is missing")
        if isinstance(one.get("items"), list) and str(one.get("kind", "")).endswith("List"):
            found.append(f"{here}.kind: is a list of objects; give its items")
            continue
        metadata = one.get("metadata")
        if not isinstance(metadata, dict):
            found.append(f"{here}.metadata: is missing")
            continue
        found += _wrong_name(metadata, "name", here, required=True)
        found += _wrong_name(metadata, "namespace", here, required=False)
    return found


def _wrong_name(metadata, field, here, *, required):
    value = metadata.get(field)
    if value is None and not required:
        return []
    if not isinstance(value, str) or not value:
        remedy = "; name it, so that it is there once however often it is asked for"
        return [f"{here}.metadata.{field}: is missing{remedy if required else ''}"]
    if "/" in value or "%" in value or value in (".", ".."):
        return [f"{here}.metadata.{field}: is no name"]
    return []


def called(manifest, namespace=""):
    place = f"{namespace}/" if namespace else ""
    return f"{manifest['kind']} {place}{manifest['metadata']['name']}"


def told(manifest, words):
    """The words without anything that a Secret holds: API servers quote what they do not like."""
    if manifest.get("kind") != "Secret":
        return words
    for one in sorted(_secrets(manifest), key=len, reverse=True):
        words = words.replace(one, HIDDEN)
    return words


def _secrets(manifest):
    found = set()
    for field in ("data", "stringData"):
        for text in _leaves(manifest.get(field)):
            found |= {text, base64.b64encode(text.encode()).decode(), _decoded(text)}
            found |= {line.strip() for line in text.splitlines()}
    # As it is, and as it stands in quotes: Go and JSON write a line's end as \n.
    found |= {repr(one)[1:-1] for one in found}
    return {one for one in found if len(one) >= _SHORTEST}


def _leaves(value):
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [] if value is None else [str(value)]


def _decoded(text):
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
