"""JSON that is read the same by a reader of YAML. Pure.

An API server reads what is applied as YAML. Some characters that may stand in JSON as they are break a line there, or
are not allowed; written as numbers they arrive as they were.
"""

from __future__ import annotations

import re

_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def as_yaml(json: bytes) -> bytes:
    """Such characters stand in texts only, where a number means the same."""
    text = json.decode()
    if text.isascii() and "\x7f" not in text:
        return json
    return _SPECIAL.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
