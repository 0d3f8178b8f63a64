"""Makes JSON that a YAML parser reads the same way. Pure; used by the client for server-side apply.

An API server parses the body of an apply as YAML. Some characters that JSON allows unescaped end a line in YAML or
are not allowed there; as \\u escapes they arrive unchanged.
"""

from __future__ import annotations

import re

_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def escape_for_yaml(json: bytes) -> bytes:
    """The same JSON with these characters escaped. They occur only in strings, where the escape means the same."""
    text = json.decode()
    if text.isascii() and "\x7f" not in text:
        return json
    return _SPECIAL.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
