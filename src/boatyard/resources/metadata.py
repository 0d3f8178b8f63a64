"""Rules about what every resource carries: names, labels, annotations. Called by the API for each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from boatyard.model.errors import Violation

LONGEST_NAME = 63
LONGEST_DISPLAY_NAME = 63
LONGEST_DESCRIPTION = 256
LONGEST_PREFIX = 253
LONGEST_ANNOTATIONS = 256 * 1024  # characters, keys and values together
MOST_LABELS = 64
DEEPEST_PROJECT = 4

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_NAME_REMEDY = "use 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"
_LABEL_VALUE_REMEDY = "use 1 to 63 of a-z, 0-9, -, _ and ., with a letter or digit at both ends"


def is_label(text: str) -> bool:
    """Whether it is an RFC 1123 label, as names of resources and tenants are."""
    return _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    return len(text) <= LONGEST_PREFIX and all(map(is_label, text.split(".")))


def quote_text(text: str) -> str:
    """The text quoted, shortened and without control characters, for use in a message."""
    cut = text if len(text) <= 80 else f"{text[:77]}..."
    return repr(cut)


def name_violations(name: str, *, path: str = "metadata.name") -> Iterator[Violation]:
    if not name:
        yield Violation(path, "is required", _NAME_REMEDY)
    elif not is_label(name):
        yield Violation(path, f"{quote_text(name)} is not a valid name", _NAME_REMEDY)


def project_name_violations(name: str) -> Iterator[Violation]:
    """Projects may be nested: up to four labels joined by dots."""
    parts = name.split(".")
    if not name:
        yield Violation("metadata.name", "is required", _NAME_REMEDY)
    elif len(parts) > DEEPEST_PROJECT or not all(map(is_label, parts)):
        yield Violation(
            "metadata.name",
            f"{quote_text(name)} is not a valid project name",
            f"use at most {DEEPEST_PROJECT} names joined by dots, each of a-z, 0-9 and -",
        )


def tag_violations(
    labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Iterator[Violation]:
    """Labels are for selectors, so their values are restricted; annotations are free text under such keys."""
    if len(labels) > MOST_LABELS:
        yield Violation("metadata.labels", f"has {len(labels)} entries", f"{MOST_LABELS} at most")
        return
    for key, value in labels.items():
        yield from _key_violations("metadata.labels", key)
        if value and _LABEL_VALUE.fullmatch(value) is None:
            yield Violation(
                f"metadata.labels[{quote_text(key)}]",
                f"{quote_text(value)} is not a valid value",
                _LABEL_VALUE_REMEDY,
            )
    if sum(len(key) + len(value) for key, value in annotations.items()) > LONGEST_ANNOTATIONS:
        yield Violation(
            "metadata.annotations",
            "is too long",
            f"at most {LONGEST_ANNOTATIONS} characters in all",
        )
        return
    for key in annotations:
        yield from _key_violations("metadata.annotations", key)


def text_violations(display_name: str, description: str) -> Iterator[Violation]:
    for path, text, longest in (
        ("metadata.display_name", display_name, LONGEST_DISPLAY_NAME),
        ("metadata.description", description, LONGEST_DESCRIPTION),
    ):
        if len(text) > longest:
            yield Violation(path, f"has {len(text)} characters", f"at most {longest}")


def name_from_id(id: str) -> str:
    """A name for an object that has an id and no name: `acme.ocp_small` becomes `ocp-small`."""
    return id.rpartition(".")[2].replace("_", "-").lower()


def _key_violations(path: str, key: str) -> Iterator[Violation]:
    prefix, slash, name = key.rpartition("/")
    if (slash and not is_subdomain(prefix)) or _LABEL_VALUE.fullmatch(name) is None:
        yield Violation(
            path,
            f"{quote_text(key)} is not a valid key",
            f"[prefix/]name: the prefix a DNS name, the name: {_LABEL_VALUE_REMEDY}",
        )
