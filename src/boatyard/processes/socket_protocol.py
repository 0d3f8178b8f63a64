"""Encoding of calls and answers over a unix socket: msgpack in length-prefixed frames.

A call is [number, verb, arguments], its answer [number, code, body]. Used by server and client.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from boatyard.model.errors import BoatyardError, NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Waiting

VALUE, DONE, WAITING, REFUSED, UNAVAILABLE, NOT_FOUND = range(6)
LONGEST_FRAME = 64 * 1024 * 1024
LONGEST_SOCKET_PATH = 107  # what fits into the kernel's sockaddr_un

_LENGTH = struct.Struct(">I")
_encoder = msgspec.msgpack.Encoder()
_call_decoder = msgspec.msgpack.Decoder(tuple[int, str, dict[str, Any]])
_response_decoder = msgspec.msgpack.Decoder(tuple[int, int, Any])


class BadFrame(ValueError):
    """The bytes received are not of this protocol. The connection must be closed."""


class FrameDecoder:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > LONGEST_FRAME:
                raise BadFrame(f"a frame of {length} bytes")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            yield bytes(buffer[start + _LENGTH.size : end])
            start = end
        del buffer[:start]


def encode_call(number: int, verb: str, args: Mapping[str, Any]) -> bytes:
    return _frame((number, verb, args))


def decode_call(payload: bytes) -> tuple[int, str, dict[str, Any]]:
    try:
        return _call_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise BadFrame(f"a call that is none: {error}") from error


def encode_response(number: int, value: Any, error: BoatyardError | None) -> bytes:
    match error, value:
        case None, Done(facts=facts):
            return _frame((number, DONE, facts))
        case None, Waiting(why=why, look_again=look_again, reason=reason):
            return _frame((number, WAITING, (why, look_again, reason)))
        case None, value:
            return _frame((number, VALUE, value))
        case Unavailable() as error, _:
            return _frame((number, UNAVAILABLE, (str(error), error.reason)))
        case NotFound() as error, _:
            return _frame((number, NOT_FOUND, (str(error), "")))
        case error, _:
            reason = error.reason if isinstance(error, Refused) else "Refused"
            return _frame((number, REFUSED, (str(error), reason)))


def decode_response(payload: bytes) -> tuple[int, Any, BoatyardError | None]:
    """Returns the number of the call, its value, and its error (None when the call succeeded)."""
    try:
        number, code, body = _response_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise BadFrame(f"an answer that is none: {error}") from error
    match code:
        case 0:  # VALUE
            return number, body, None
        case 1:  # DONE
            return number, Done(body), None
        case 2:  # WAITING
            return number, Waiting(*body), None
        case 3:  # REFUSED
            return number, None, Refused(body[0], reason=body[1])
        case 4:  # UNAVAILABLE
            return number, None, Unavailable(body[0], reason=body[1])
        case 5:  # NOT_FOUND
            return number, None, NotFound(body[0])
    raise BadFrame(f"an answer with code {code}")


def check_socket_path(path: Path) -> None:
    """Refuses a socket path that is too long for the kernel."""
    if len(str(path).encode()) > LONGEST_SOCKET_PATH:
        raise Refused(
            f"the socket path {path} is longer than {LONGEST_SOCKET_PATH} bytes; "
            "choose a shorter directory"
        )


def _frame(message: Any) -> bytes:
    payload = _encoder.encode(message)
    return _LENGTH.pack(len(payload)) + payload
