"""Snapshots of an etcd: takes one from a running etcd, verifies it, and unpacks it into a new data directory."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import msgspec

from boatyard.model.errors import Refused, Unavailable
from boatyard.platforms.drivers.local.records import remove_tree
from boatyard.processes.marked_processes import MARK_VARIABLE

_TIMEOUT_SECONDS = 120.0
_CHECKSUM_BYTES = 32  # a snapshot ends with the sha256 of what comes before it
# Added to the revision by a restore, so that clients notice that their cached objects are outdated.
_REVISION_BUMP = 1_000_000_000


class _SnapshotPart(msgspec.Struct):
    blob: str = ""


class _SnapshotLine(msgspec.Struct):
    result: _SnapshotPart | None = None
    error: object = None


_line_decoder = msgspec.json.Decoder(_SnapshotLine)


class SnapshotInfo(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


async def take(run: Path, socket: str, path: Path) -> SnapshotInfo:
    """Writes a verified snapshot of the etcd behind `run/socket` to `path`, atomically."""
    draft = path.with_name(path.name + ".part")
    directory = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Through a descriptor: the path of a socket may have no more than 107 bytes.
        connector = aiohttp.UnixConnector(f"/proc/self/fd/{directory}/{socket}")
        async with aiohttp.ClientSession(connector=connector) as session:
            await _stream(session, draft)
    except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
        draft.unlink(missing_ok=True)
        raise Unavailable(f"etcd gave no snapshot: {error}") from error
    finally:
        os.close(directory)
    snapshot = await asyncio.to_thread(verify, draft)
    os.replace(draft, path)
    return snapshot


async def _stream(session: aiohttp.ClientSession, draft: Path) -> None:
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    url = "http://etcd/v3/maintenance/snapshot"
    async with session.post(url, data=b"{}", timeout=timeout) as answer:
        answer.raise_for_status()
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            partial_line = b""
            async for chunk in answer.content.iter_chunked(1 << 16):
                *lines, partial_line = (partial_line + chunk).split(b"\n")
                for line in lines:
                    file.write(_decode_line(line))
            file.write(_decode_line(partial_line))
            file.flush()
            os.fsync(file.fileno())


def _decode_line(line: bytes) -> bytes:
    if not line.strip():
        return b""
    part = _line_decoder.decode(line)
    if part.result is None:
        raise Unavailable(f"etcd stopped in the middle of a snapshot: {part.error}")
    return base64.b64decode(part.result.blob)


def verify(path: Path, sha256: str = "") -> SnapshotInfo:
    """Reads a snapshot and checks its checksum. Refused when it is damaged or has another `sha256` than given."""
    whole, content = hashlib.sha256(), hashlib.sha256()
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= _CHECKSUM_BYTES or size % 512 != _CHECKSUM_BYTES:
                raise Refused(f"{path.name} is no snapshot: {size} bytes", reason="BrokenBackup")
            remaining = size - _CHECKSUM_BYTES
            while remaining and (piece := file.read(min(remaining, 1 << 20))):
                whole.update(piece)
                content.update(piece)
                remaining -= len(piece)
            trailer = file.read()
            whole.update(trailer)
    except OSError as error:
        raise Refused(
            f"{path.name} cannot be read: {error.strerror}", reason="BrokenBackup"
        ) from error
    if content.digest() != trailer or (sha256 and whole.hexdigest() != sha256):
        raise Refused(f"{path.name} is damaged: its checksum is wrong", reason="BrokenBackup")
    return SnapshotInfo(bytes=size, sha256=whole.hexdigest())


async def unpack(
    etcdutl: Path,
    snapshot: Path,
    target: Path,
    *,
    name: str,
    peer_url: str,
    initial_cluster: str,
    token: str,
    user: int | None,
    mark: str,
) -> None:
    """Unpacks a snapshot into an etcd data directory beside `target`. It is not used before `swap`."""
    draft = _draft(target)
    await asyncio.to_thread(remove_tree, draft)
    await run_program(
        [
            str(etcdutl),
            "snapshot",
            "restore",
            str(snapshot),
            f"--data-dir={draft}",
            f"--name={name}",
            f"--initial-cluster={initial_cluster}",
            f"--initial-cluster-token={token}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--bump-revision={_REVISION_BUMP}",
            "--mark-compacted",
        ],
        mark=mark,
    )
    if user is not None:
        await asyncio.to_thread(_change_owner, draft, user)


def swap(target: Path) -> None:
    """Replaces `target` by the unpacked directory. May be repeated."""
    draft = _draft(target)
    if draft.exists():
        remove_tree(target)
        os.rename(draft, target)


def _draft(target: Path) -> Path:
    return target.with_name(target.name + ".new")


async def run_program(command: Sequence[str], *, mark: str) -> str:
    """Runs a short-lived program and returns its output. Refused with its last line of stderr when it failed.

    It carries a mark: if the keeper is killed, the next one ends it before it starts again.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env={MARK_VARIABLE: mark},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            output, error_output = await process.communicate()
    except TimeoutError as error:
        raise Unavailable(
            f"{Path(command[0]).name} took longer than {_TIMEOUT_SECONDS:g} s"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = error_output.decode(errors="replace").strip().splitlines()[-1:] or ["without a word"]
        raise Refused(f"{Path(command[0]).name} failed: {last[0][:300]}", reason="BrokenBackup")
    return output.decode(errors="replace")


def _change_owner(directory: Path, user: int) -> None:
    for parent, _, files in os.walk(directory):
        os.chown(parent, user, user)
        for name in files:
            os.chown(os.path.join(parent, name), user, user, follow_symlinks=False)
