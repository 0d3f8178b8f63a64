"""What is sent over a socket between our processes arrives as it was, however it is cut."""

from __future__ import annotations

import pytest

from boatyard.model.errors import BoatyardError, NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.processes.socket_protocol import (
    LONGEST_FRAME,
    BadFrame,
    FrameDecoder,
    decode_call,
    decode_response,
    encode_call,
    encode_response,
)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(Done({"vlan": "7"}), id="done"),
        pytest.param(Waiting("not yet", 2.5, reason="Booting"), id="waiting"),
        pytest.param(["a", 1, None], id="a plain value"),
    ],
)
def test_an_answer_arrives_as_it_was(value: object) -> None:
    [frame] = FrameDecoder().feed(encode_response(3, value, None))

    assert decode_response(frame) == (3, value, None)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Refused("no", reason="Taken"), id="refused"),
        pytest.param(Unavailable("away", reason="Failing"), id="unavailable"),
        pytest.param(NotFound("nowhere"), id="not found"),
    ],
)
def test_an_error_keeps_its_kind_words_and_reason(error: BoatyardError) -> None:
    [frame] = FrameDecoder().feed(encode_response(3, None, error))

    number, value, arrived = decode_response(frame)
    assert (number, value, type(arrived), str(arrived)) == (3, None, type(error), str(error))
    assert getattr(arrived, "reason", "") == getattr(error, "reason", "")


def test_frames_are_the_same_however_the_stream_is_cut() -> None:
    stream = b"".join(encode_call(number, "look", {"key": "x" * number}) for number in range(4))

    for size in (1, 3, 7, len(stream)):
        frames = FrameDecoder()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        calls = [decode_call(frame) for piece in pieces for frame in frames.feed(piece)]
        assert calls == [(number, "look", {"key": "x" * number}) for number in range(4)]


def test_a_whole_frame_does_not_wait_for_the_next() -> None:
    assert len(list(FrameDecoder().feed(encode_call(1, "look", {})))) == 1


def test_what_is_longer_than_any_frame_is_refused_before_it_is_collected() -> None:
    with pytest.raises(BadFrame):
        list(FrameDecoder().feed((LONGEST_FRAME + 1).to_bytes(4, "big")))
