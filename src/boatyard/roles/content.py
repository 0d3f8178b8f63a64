"""The content of a role as one value: its files, their digest, and the packed form that is stored and sent. Pure.

The digest covers the names of the files, their bytes and whether they are executable. Owners, times and the order of
a directory listing make no difference.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from boatyard.model.errors import Refused

MAX_FILES = 1000
LARGEST_FILE = 1024 * 1024
LARGEST_CONTENT = 3 * 1024 * 1024  # all files together; the API accepts 4 MiB
LONGEST_PATH = 240

_HEAD = b"boatyard role 1\n"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_OVERHEAD_BYTES = len(_HEAD) + MAX_FILES * (4 * LONGEST_PATH + 32)


@dataclass(frozen=True)
class RoleFileContent:
    data: bytes
    executable: bool = False


Files = Mapping[str, RoleFileContent]  # by path relative to the role, separated by /


def digest_of(files: Files) -> str:
    return _digest(_canonical(files))


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def pack_files(files: Files) -> tuple[str, bytes]:
    """The digest, and the bytes from which `unpack` makes the same files again."""
    plain = _canonical(files)
    return _digest(plain), zlib.compress(plain, 6)


def unpack_files(packed: bytes, digest: str) -> Files:
    """The files. Refused when their digest is not `digest`, or the bytes cannot be unpacked."""
    stream = zlib.decompressobj()
    largest = LARGEST_CONTENT + _MAX_OVERHEAD_BYTES
    try:
        plain = stream.decompress(packed, largest)
    except zlib.error as error:
        raise Refused("the content cannot be unpacked", reason="BadContent") from error
    if not stream.eof or stream.unused_data or _digest(plain) != digest:
        raise Refused(f"the content is not that of {digest}", reason="BadContent")
    return _parse_canonical_bytes(plain)


def path_problem(path: str) -> str:
    """Why this cannot be the path of a file in a role; empty when it can."""
    if not path or len(path) > LONGEST_PATH or len(path.encode(errors="replace")) > LONGEST_PATH:
        return f"has a name of more than {LONGEST_PATH} bytes"
    if not path.isprintable() or "\\" in path:
        return "has a character in its name that is not good in one"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "has a name that leads elsewhere"
    return ""


def size_problem(files: Files) -> str:
    if len(files) > MAX_FILES:
        return f"has {len(files)} files, more than {MAX_FILES}"
    size = sum(len(file.data) for file in files.values())
    return f"has {size} bytes, more than {LARGEST_CONTENT}" if size > LARGEST_CONTENT else ""


def _canonical(files: Files) -> bytes:
    """The files as bytes. Each part is preceded by its length, so that two sets of files never give the same bytes."""
    parts = [_HEAD]
    for path, name in sorted((path.encode(), path) for path in files):
        file = files[name]
        parts += [b"%d %d %d\n" % (len(path), file.executable, len(file.data)), path, file.data]
    return b"".join(parts)


def _parse_canonical_bytes(plain: bytes) -> Files:
    """Parses the output of `_canonical`. The caller has checked the digest, so the bytes are well formed."""
    files: dict[str, RoleFileContent] = {}
    position = len(_HEAD)
    while position < len(plain):
        end = plain.index(b"\n", position)
        length, executable, size = (int(number) for number in plain[position:end].split())
        start = end + 1 + length
        path = plain[end + 1 : start].decode()
        if path_problem(path):
            raise Refused("the content has a file that leads elsewhere", reason="BadContent")
        files[path] = RoleFileContent(plain[start : start + size], bool(executable))
        position = start + size
    return files


def _digest(plain: bytes) -> str:
    return f"sha256:{hashlib.sha256(plain).hexdigest()}"
