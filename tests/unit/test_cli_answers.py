"""Every way a call can fail ends with its promised exit code, and with words on stderr only."""

from __future__ import annotations

import io

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from boatyard.cli import exit_codes
from boatyard.client.config import NotConfigured
from boatyard.client.grpc_errors import to_model_error
from boatyard.model.errors import Denied, Refused, Violation

Code = grpc.StatusCode


def failed(code: grpc.StatusCode, words: str, *fields: tuple[str, str]) -> grpc.aio.AioRpcError:
    trailers = grpc.aio.Metadata()
    if fields:
        request = error_details_pb2.BadRequest()
        for path, described in fields:
            request.field_violations.add(field=path, description=described)
        detail = any_pb2.Any()
        detail.Pack(request)
        status = status_pb2.Status(code=code.value[0], message=words, details=[detail])
        trailers.add("grpc-status-details-bin", status.SerializeToString())
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, details=words)


@pytest.mark.parametrize("code, expected", [
    (Code.UNAUTHENTICATED, 4), (Code.PERMISSION_DENIED, 4), (Code.NOT_FOUND, 3),
    (Code.ALREADY_EXISTS, 5), (Code.ABORTED, 5), (Code.FAILED_PRECONDITION, 5),
    (Code.RESOURCE_EXHAUSTED, 6), (Code.INVALID_ARGUMENT, 2), (Code.OUT_OF_RANGE, 2),
    (Code.UNIMPLEMENTED, 2), (Code.UNAVAILABLE, 1), (Code.DEADLINE_EXCEEDED, 1),
    (Code.INTERNAL, 1), (Code.UNKNOWN, 1), (Code.DATA_LOSS, 1),
])  # fmt: skip
def test_each_code_of_the_server_has_its_exit_code(code, expected):
    assert (
        exit_codes.exit_code_for(to_model_error(failed(code, "words"), address="a:1")) == expected
    )


@pytest.mark.parametrize("error, expected", [
    (NotConfigured("where?"), 2), (exit_codes.StillRunning("goes on"), 7),
    (exit_codes.Unsuccessful("no"), 1), (exit_codes.Unsuccessful("no room", code=6), 6),
    (OSError("disk"), 1), (FileNotFoundError("file"), 1),
])  # fmt: skip
def test_each_failure_of_our_own_has_its_exit_code(error, expected):
    assert exit_codes.exit_code_for(error) == expected


@pytest.mark.parametrize("words, expected", [
    ("SSL routines: CERTIFICATE_VERIFY_FAILED: self signed", "--ca-file"),
    ("Tls handshake failed: wrong version number", "http://a:1"),
    ("ipv4:127.0.0.1:1: connect: Connection refused (111)", "nothing answers at a:1 (connection"),
    ("Socket closed", "nothing answers at a:1 (Socket closed)"),
])  # fmt: skip
def test_being_unreachable_is_said_shortly(words, expected):
    assert expected in str(to_model_error(failed(Code.UNAVAILABLE, words), address="a:1"))


def test_each_field_violation_has_a_line_with_path_and_remedy():
    error = failed(
        Code.INVALID_ARGUMENT,
        "two things",
        ("metadata.name", "must be lower case; use a-z, 0-9 and -"),
        ("spec.node_sets.compute.size", "must be positive"),
    )
    stream = io.StringIO()
    assert exit_codes.report_error(to_model_error(error, address="a:1"), stream) == 2
    assert stream.getvalue().splitlines() == [
        "boatyard: 2 things are wrong with the request",
        "  metadata.name: must be lower case; use a-z, 0-9 and -",
        "  spec.node_sets.compute.size: must be positive",
    ]


def test_being_refused_says_what_to_do():
    assert any("whoami" in line for line in exit_codes.format_error(Denied("permission denied")))


def test_words_of_the_server_are_not_shown_raw():
    hostile = "no \x1b[2J\r such\u202e thing"
    lines = [
        *exit_codes.format_error(to_model_error(failed(Code.NOT_FOUND, hostile), address="a:1")),
        *exit_codes.format_error(Refused("", Violation(hostile, hostile, hostile))),
    ]
    assert all(line.isprintable() for line in lines)
