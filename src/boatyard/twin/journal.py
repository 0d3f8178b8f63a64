"""The twin on disk: an append-only journal, which a snapshot replaces when it gets long.

Blocking by design; the server calls it from one thread. A record that was cut short by a crash at
the end of the journal was never answered, and is dropped; damage anywhere else is Refused.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from boatyard.model.errors import Refused

Entry = tuple[Any, ...]

_HEAD = struct.Struct(">II")  # length and crc32 of what follows
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[list[Any]])

ENTRIES_PER_RECORD = 5_000


class Journal:
    """One directory, held by one process at a time."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._lock = _lock_file(directory / "lock")
        self._generation = max(self._list_generations(), default=0)
        self.size = 0
        self.snapshot_size = 0
        self._file = -1

    def replay(self, apply: Callable[[Entry], None]) -> None:
        """Hands every entry that was ever confirmed to `apply`, in order, and opens the journal."""
        snapshot = self._snapshot_path(self._generation)
        if self._generation:
            self.snapshot_size = _replay_file(snapshot, apply, tail_may_be_torn=False)
        self._remove_old_files()
        path = self._journal_path(self._generation)
        self._file = _open_for_append(path)
        self.size = _replay_file(path, apply, tail_may_be_torn=True)
        os.ftruncate(self._file, self.size)
        os.lseek(self._file, 0, os.SEEK_END)
        self._sync_directory()

    def append(self, entries: list[Entry]) -> None:
        """Writes entries. When it returns they survive a crash of the process and of the machine."""
        record = _encode_record(entries)
        _write_all(self._file, record)
        os.fdatasync(self._file)
        self.size += len(record)

    def replace_by_snapshot(self, snapshot: Iterable[Entry]) -> None:
        """Replaces the journal by a snapshot; after a crash there is either the old or the new one."""
        following = self._generation + 1
        unfinished = self._directory / "snapshot.unfinished"
        self.snapshot_size = _write_snapshot(unfinished, snapshot)
        journal = _open_for_append(self._journal_path(following))
        os.ftruncate(journal, 0)
        os.fsync(journal)
        os.replace(unfinished, self._snapshot_path(following))
        self._sync_directory()
        os.close(self._file)
        self._file, self.size, self._generation = journal, 0, following
        self._remove_old_files()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        os.close(self._lock)

    def _list_generations(self) -> list[int]:
        names = (path.name for path in self._directory.glob("snapshot-*"))
        return [int(name.partition("-")[2]) for name in names]

    def _snapshot_path(self, generation: int) -> Path:
        return self._directory / f"snapshot-{generation}"

    def _journal_path(self, generation: int) -> Path:
        return self._directory / f"journal-{generation}"

    def _remove_old_files(self) -> None:
        """Removes files that a newer snapshot replaces, and a snapshot that was never finished."""
        current_files = {
            self._snapshot_path(self._generation),
            self._journal_path(self._generation),
        }
        for pattern in ("snapshot-*", "journal-*", "snapshot.unfinished"):
            for path in self._directory.glob(pattern):
                if path not in current_files:
                    path.unlink()

    def _sync_directory(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _lock_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise Refused(f"another twin is running on {path.parent}; stop it first") from error
    return descriptor


def _open_for_append(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _encode_record(entries: list[Entry]) -> bytes:
    payload = _encoder.encode(entries)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _write_snapshot(path: Path, entries: Iterable[Entry]) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    size = 0
    try:
        for chunk in _split_chunks(entries):
            record = _encode_record(chunk)
            _write_all(descriptor, record)
            size += len(record)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size


def _split_chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    for entry in entries:
        chunk.append(entry)
        if len(chunk) == ENTRIES_PER_RECORD:
            yield chunk
            chunk = []
    yield chunk


def _replay_file(path: Path, apply: Callable[[Entry], None], *, tail_may_be_torn: bool) -> int:
    """Applies every record of a file. Returns how many of its bytes are good."""
    good_bytes = 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while good_bytes < size:
            payload = _read_record(file.read(_HEAD.size), file.read)
            if payload is None:
                # One record is written at a time: only the last can be torn, and then nothing
                # follows it but what the file system may have filled up with zeros.
                if tail_may_be_torn and not file.read(1 << 20).strip(b"\0"):
                    return good_bytes
                raise Refused(
                    f"{path} is damaged at byte {good_bytes}; restore it or start from nothing"
                )
            for entry in _decoder.decode(payload):
                apply(tuple(entry))
            good_bytes += _HEAD.size + len(payload)
    return good_bytes


def _read_record(head: bytes, read: Callable[[int], bytes]) -> bytes | None:
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    payload = read(length)
    if not length or len(payload) < length or zlib.crc32(payload) != checksum:
        return None
    return payload
