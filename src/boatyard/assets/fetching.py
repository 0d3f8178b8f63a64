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

from boatyard.assets.asking import hash_of
from boatyard.assets.mirrors import Offer
from boatyard.assets.telling import Teller, Unit
from boatyard.model.errors import Refused, Unavailable

_CHUNK = 1 << 18
_MOST_TEXT = 1 << 20


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server that does not answer."""

    reach: float = 6.0  # for a whole small file, including the lookup of the host name
    silence: float = 30.0  # between two bytes of a large file
    tries: int = 4  # in a row without a new byte
    pause: Callable[[float], None] = time.sleep


class _Cut(Exception):
    """The connection ended before the file did."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a partial file is part of; stored beside it."""

    url: str
    sha256: str
    size: int = -1
    validator: str = (
        ""  # ETag or date, by which the server knows whether its file is still the same
    )


def read_text(url: str, patience: Patience) -> str:
    """Downloads a small text file. Unavailable after `patience.reach` seconds at the latest, whatever hangs."""
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            with _open(url, {}, patience.reach) as response:
                answers.put(response.read(_MOST_TEXT))
        except (OSError, http.client.HTTPException, Refused) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            answers.put(error)

    # The lookup of a host name has no time limit, so it runs in a thread that nobody waits for.
    threading.Thread(target=work, name="boatyard-reach", daemon=True).start()
    try:
        answer = answers.get(timeout=patience.reach)
    except queue.Empty:
        raise Unavailable(f"{_host(url)} does not answer within {patience.reach:.0f} s") from None
    if isinstance(answer, Refused):
        raise answer
    if isinstance(answer, Exception):
        raise _unavailable(url, answer) from answer
    return answer.decode("utf-8", "replace")


def fetch(offer: Offer, folder: Path, teller: Teller, patience: Patience) -> Path:
    """Downloads a file into `folder` and checks its checksum. The caller moves it to its place.

    Continues an earlier partial download. Unavailable when the server does not have the file or does not answer
    (the part is kept), Refused when the checksum is wrong (the file is removed).
    """
    part = folder / f"{offer.file}.part"
    fruitless_tries = 0
    while not _complete(part, offer):
        size_before = _size(part)
        try:
            _carry_on(part, offer, teller, patience)
            break
        except _Cut as cut:
            fruitless_tries = 0 if _size(part) > size_before else fruitless_tries + 1
            if fruitless_tries >= patience.tries:
                raise Unavailable(f"{offer.url}: {cut}; what has come is kept") from cut
            patience.pause(min(2.0**fruitless_tries, 10.0) / 4)
    sha256 = hash_of(part)
    if sha256 != offer.sha256:
        forget(part)
        raise Refused(
            f"{offer.url} has the wrong checksum: sha256 is {sha256}, published is {offer.sha256}; "
            "it is removed. Try again; if it stays so, the mirror is damaged or not what it says",
            reason="WrongChecksum",
        )
    return part


def forget(part: Path) -> None:
    """Removes a partial file and its notes."""
    part.unlink(missing_ok=True)
    _notes(part).unlink(missing_ok=True)


def _carry_on(part: Path, offer: Offer, teller: Teller, patience: Patience) -> None:
    """Sends one request for the rest of the file, or for all of it when the server does not support ranges."""
    notes = _read_part(part)
    offset = _size(part)
    if notes is None or (notes.url, notes.sha256) != (offer.url, offer.sha256):
        forget(part)
        offset, notes = 0, _Part(url=offer.url, sha256=offer.sha256)
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    if offset and notes.validator:
        headers["If-Range"] = notes.validator
    try:
        response = _open(offer.url, headers, patience.silence)
    except urllib.error.HTTPError as error:
        with error:
            _judge(error, part)
        raise _unavailable(offer.url, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Cut(_why(error)) from error
    with response:
        if offset and not _continues(response, offset, notes):
            if response.status == HTTPStatus.PARTIAL_CONTENT:
                forget(part)
                raise _Cut("the server gave another piece than the one asked for")
            offset = 0
        size = _announced(response, offset)
        new_notes = msgspec.structs.replace(notes, size=size, validator=_validator(response))
        _notes(part).write_bytes(msgspec.json.encode(new_notes))
        with (
            part.open("ab" if offset else "wb", buffering=0) as file,
            teller.task(
                f"downloading {offer.file}",
                unit=Unit.BYTES,
                total=size if size >= 0 else None,
                done=offset,
            ) as task,
        ):
            while chunk := _read(response):
                file.write(chunk)
                offset += len(chunk)
                task.at(offset)
            os.fsync(file.fileno())
    if 0 <= size != offset:
        raise _Cut(f"the connection ended after {offset} of {size} bytes")


def _judge(error: urllib.error.HTTPError, part: Path) -> None:
    """Raises _Cut when the request, or one from the beginning, may succeed later."""
    if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and _size(part):
        forget(part)
        raise _Cut("the server's file is shorter than what has come")
    if error.code >= 500 or error.code == HTTPStatus.TOO_MANY_REQUESTS:
        raise _Cut(f"the server answers {error.code}")


def _continues(response: http.client.HTTPResponse, offset: int, notes: _Part) -> bool:
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    unit, _, content_range = response.headers.get("Content-Range", "").partition(" ")
    span, _, total = content_range.partition("/")
    total_fits = total in ("*", str(notes.size)) or notes.size < 0
    return unit == "bytes" and span.partition("-")[0] == str(offset) and total_fits


def _announced(response: http.client.HTTPResponse, offset: int) -> int:
    """How large the whole file will be; -1 when the server does not say."""
    length = response.headers.get("Content-Length", "")
    return offset + int(length) if length.isdigit() else -1


def _validator(response: http.client.HTTPResponse) -> str:
    tag: str = response.headers.get("ETag", "")
    # A weak tag may stand for different bytes, so it must not be used for parts of a file.
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _complete(part: Path, offer: Offer) -> bool:
    notes = _read_part(part)
    same_file = notes is not None and (notes.url, notes.sha256) == (offer.url, offer.sha256)
    return same_file and notes is not None and 0 < notes.size == _size(part)


def _read_part(part: Path) -> _Part | None:
    try:
        return msgspec.json.decode(_notes(part).read_bytes(), type=_Part)
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
        raise _Cut(_why(error)) from error


# --- requests ---------------------------------------------------------------------------------


class SameSafety(urllib.request.HTTPRedirectHandler):
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
    opener = urllib.request.build_opener(SameSafety())
    response: http.client.HTTPResponse = opener.open(request, timeout=seconds)
    return response


def _unavailable(url: str, error: Exception) -> Unavailable:
    if isinstance(error, urllib.error.HTTPError):
        return Unavailable(f"{_host(url)} answers {error.code} for {url}")
    return Unavailable(f"{_host(url)} cannot be reached ({_why(error)})")


def _why(error: BaseException) -> str:
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return _why(inner)
    return getattr(error, "strerror", None) or str(inner or error) or type(error).__name__


def _host(url: str) -> str:
    return urlsplit(url).netloc or url
