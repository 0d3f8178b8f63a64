"""Downloads files over HTTP: resumes partial ones, and returns a file only when its checksum is right."""

from __future__ import annotations

import http.client
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from boatyard.assets.mirrors import ReleaseFile
from boatyard.assets.program_identity import hash_file
from boatyard.assets.progress import ProgressReporter, ProgressUnit
from boatyard.model.backoff import Backoff
from boatyard.model.errors import Refused, Unavailable

_BACKOFF = Backoff(first=0.25, longest=2.5)
_CHUNK = 1 << 18
_MAX_TEXT_BYTES = 1 << 20


@dataclass(frozen=True)
class DownloadRetryPolicy:
    """How long to wait for a server that does not answer."""

    small_file_seconds: float = 6.0  # for a whole small file, including the lookup of the host name
    stall_seconds: float = 30.0  # between two bytes of a large file
    max_attempts: int = 4  # in a row without a new byte
    sleep: Callable[[float], None] = time.sleep


class _ConnectionCut(Exception):
    """The connection ended before the file did."""


class _PartialDownload(msgspec.Struct, frozen=True, kw_only=True):
    """What a partial file is part of; stored beside it."""

    url: str
    sha256: str
    size: int = -1
    validator: str = (
        ""  # ETag or date, by which the server knows whether its file is still the same
    )


def download_text(url: str, retry_policy: DownloadRetryPolicy) -> str:
    """Downloads a small text file. Unavailable after `patience.reach` seconds at the latest, whatever hangs."""
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            with _open(url, {}, retry_policy.small_file_seconds) as response:
                answers.put(response.read(_MAX_TEXT_BYTES))
        except (OSError, http.client.HTTPException, Refused) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            answers.put(error)

    # The lookup of a host name has no time limit, so it runs in a thread that nobody waits for.
    threading.Thread(target=work, name="boatyard-reach", daemon=True).start()
    try:
        answer = answers.get(timeout=retry_policy.small_file_seconds)
    except queue.Empty:
        raise Unavailable(
            f"{_host(url)} does not answer within {retry_policy.small_file_seconds:.0f} s"
        ) from None
    if isinstance(answer, Refused):
        raise answer
    if isinstance(answer, Exception):
        raise _to_unavailable(url, answer) from answer
    return answer.decode("utf-8", "replace")


def download_file(
    offer: ReleaseFile, folder: Path, progress: ProgressReporter, retry_policy: DownloadRetryPolicy
) -> Path:
    """Downloads a file into `folder` and checks its checksum. The caller moves it to its place.

    Continues an earlier partial download. Unavailable when the server does not have the file or does not answer
    (the part is kept), Refused when the checksum is wrong (the file is removed).
    """
    part = folder / f"{offer.file_name}.part"
    fruitless_tries = 0
    while not _complete(part, offer):
        size_before = _size(part)
        try:
            _resume_download(part, offer, progress, retry_policy)
            break
        except _ConnectionCut as cut:
            fruitless_tries = 0 if _size(part) > size_before else fruitless_tries + 1
            if fruitless_tries >= retry_policy.max_attempts:
                raise Unavailable(f"{offer.url}: {cut}; what has come is kept") from cut
            retry_policy.sleep(_BACKOFF.pause(fruitless_tries + 1))
    sha256 = hash_file(part)
    if sha256 != offer.sha256:
        remove_partial_file(part)
        raise Refused(
            f"{offer.url} has the wrong checksum: sha256 is {sha256}, published is {offer.sha256}; "
            "it is removed. Try again; if it stays so, the mirror is damaged or not what it says",
            reason="WrongChecksum",
        )
    return part


def remove_partial_file(part: Path) -> None:
    """Removes a partial file and its notes."""
    part.unlink(missing_ok=True)
    _notes(part).unlink(missing_ok=True)


def _resume_download(
    part: Path, offer: ReleaseFile, progress: ProgressReporter, retry_policy: DownloadRetryPolicy
) -> None:
    """Sends one request for the rest of the file, or for all of it when the server does not support ranges."""
    notes = _read_part(part)
    offset = _size(part)
    if notes is None or (notes.url, notes.sha256) != (offer.url, offer.sha256):
        remove_partial_file(part)
        offset, notes = 0, _PartialDownload(url=offer.url, sha256=offer.sha256)
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    if offset and notes.validator:
        headers["If-Range"] = notes.validator
    try:
        response = _open(offer.url, headers, retry_policy.stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            _raise_if_retryable(error, part)
        raise _to_unavailable(offer.url, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise _ConnectionCut(_describe_error(error)) from error
    with response:
        if offset and not _is_continuation(response, offset, notes):
            if response.status == HTTPStatus.PARTIAL_CONTENT:
                remove_partial_file(part)
                raise _ConnectionCut("the server gave another piece than the one asked for")
            offset = 0
        size = _read_total_size(response, offset)
        new_notes = msgspec.structs.replace(notes, size=size, validator=_validator(response))
        _notes(part).write_bytes(msgspec.json.encode(new_notes))
        with (
            part.open("ab" if offset else "wb", buffering=0) as file,
            progress.start_task(
                f"downloading {offer.file_name}",
                unit=ProgressUnit.BYTES,
                total=size if size >= 0 else None,
                done=offset,
            ) as task,
        ):
            while chunk := _read(response):
                file.write(chunk)
                offset += len(chunk)
                task.update(offset)
            os.fsync(file.fileno())
    if 0 <= size != offset:
        raise _ConnectionCut(f"the connection ended after {offset} of {size} bytes")


def _raise_if_retryable(error: urllib.error.HTTPError, part: Path) -> None:
    """Raises _Cut when the request, or one from the beginning, may succeed later."""
    if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and _size(part):
        remove_partial_file(part)
        raise _ConnectionCut("the server's file is shorter than what has come")
    if error.code >= 500 or error.code == HTTPStatus.TOO_MANY_REQUESTS:
        raise _ConnectionCut(f"the server answers {error.code}")


def _is_continuation(
    response: http.client.HTTPResponse, offset: int, notes: _PartialDownload
) -> bool:
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    unit, _, content_range = response.headers.get("Content-Range", "").partition(" ")
    span, _, total = content_range.partition("/")
    total_fits = total in ("*", str(notes.size)) or notes.size < 0
    return unit == "bytes" and span.partition("-")[0] == str(offset) and total_fits


def _read_total_size(response: http.client.HTTPResponse, offset: int) -> int:
    """How large the whole file will be; -1 when the server does not say."""
    length = response.headers.get("Content-Length", "")
    return offset + int(length) if length.isdigit() else -1


def _validator(response: http.client.HTTPResponse) -> str:
    tag: str = response.headers.get("ETag", "")
    # A weak tag may stand for different bytes, so it must not be used for parts of a file.
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _complete(part: Path, offer: ReleaseFile) -> bool:
    notes = _read_part(part)
    same_file = notes is not None and (notes.url, notes.sha256) == (offer.url, offer.sha256)
    return same_file and notes is not None and 0 < notes.size == _size(part)


def _read_part(part: Path) -> _PartialDownload | None:
    try:
        return msgspec.json.decode(_notes(part).read_bytes(), type=_PartialDownload)
    except (OSError, msgspec.DecodeError):
        return None


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _size(part: Path) -> int:
    with suppress(FileNotFoundError):
        return part.stat().st_size
    return 0


def _read(response: http.client.HTTPResponse) -> bytes:
    """The next bytes, empty at the end. Errors of the network become _Cut; errors of the disk do not come from here."""
    try:
        return response.read1(_CHUNK)  # read() would wait until the chunk is full
    except (OSError, http.client.HTTPException) as error:
        raise _ConnectionCut(_describe_error(error)) from error


# --- requests ---------------------------------------------------------------------------------


class SafeRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to a plain address."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise Refused(f"{req.full_url} leads to {newurl}, which is not safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, headers: dict[str, str], seconds: float) -> http.client.HTTPResponse:
    if urlsplit(url).scheme not in ("http", "https"):
        raise Refused(f"a mirror's address begins with https:// or http://; {url} does not")
    request = urllib.request.Request(
        url, headers={"User-Agent": "boatyard", "Accept-Encoding": "identity", **headers}
    )
    opener = urllib.request.build_opener(SafeRedirectHandler())
    response: http.client.HTTPResponse = opener.open(request, timeout=seconds)
    return response


def _to_unavailable(url: str, error: Exception) -> Unavailable:
    if isinstance(error, urllib.error.HTTPError):
        return Unavailable(f"{_host(url)} answers {error.code} for {url}")
    return Unavailable(f"{_host(url)} cannot be reached ({_describe_error(error)})")


def _describe_error(error: BaseException) -> str:
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return _describe_error(inner)
    return getattr(error, "strerror", None) or str(inner or error) or type(error).__name__


def _host(url: str) -> str:
    return urlsplit(url).netloc or url
