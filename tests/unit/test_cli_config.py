"""The server and the token are found in the promised order, and kept where only their owner reads."""

from __future__ import annotations

import os
import stat

import pytest

from boatyard.client.config import (
    NotConfigured,
    Target,
    config_path,
    decode_token_claims,
    delete_login,
    find_target,
    local_server_path,
    parse_address,
    read_local_server,
    record_local_server,
    remove_local_server,
    save_login,
    write_private_file,
)

ALIVE = os.getpid()
GONE = 2**22 + 12345  # above the largest pid Linux gives


@pytest.fixture
def environ(tmp_path):
    runtime = tmp_path / "run"
    runtime.mkdir()
    return {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(runtime)}


@pytest.fixture
def up(environ, tmp_path):
    """A local `up` that has left its pointer and its token."""
    token = tmp_path / "operator.token"
    token.write_text("operator-token\n")
    record_local_server(
        grpc="127.0.0.1:8000", rest="127.0.0.1:8080", token_file=token, pid=ALIVE, environ=environ
    )


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_without_anything_it_says_how_to_begin(environ):
    with pytest.raises(NotConfigured, match="boatyard up"):
        find_target(environ=environ)


def test_a_local_up_is_found_with_its_token(environ, up):
    target = find_target(environ=environ)
    assert (target.address, target.token, target.tls) == ("127.0.0.1:8000", "operator-token", False)


def test_an_up_that_has_died_is_not_found(environ, tmp_path):
    record_local_server(grpc="127.0.0.1:8000", rest="", token_file="", pid=GONE, environ=environ)
    assert read_local_server(environ) is None


def test_login_comes_before_the_local_up(environ, up):
    save_login(Target("yard.example:8000", token="mine", tls=True), environ)
    target = find_target(environ=environ)
    assert (target.address, target.token, target.tls) == ("yard.example:8000", "mine", True)


def test_the_environment_comes_before_login(environ):
    save_login(Target("yard.example:8000", token="mine", tls=True), environ)
    target = find_target(
        environ=environ | {"BOATYARD_ADDRESS": "127.0.0.1:9000", "BOATYARD_TOKEN": "other"}
    )
    assert (target.address, target.token) == ("127.0.0.1:9000", "other")


def test_flags_come_before_the_environment(environ):
    target = find_target(
        address="127.0.0.1:9001",
        token="flag",
        environ=environ | {"BOATYARD_ADDRESS": "127.0.0.1:9000", "BOATYARD_TOKEN": "other"},
    )
    assert (target.address, target.token) == ("127.0.0.1:9001", "flag")


def test_a_kept_token_is_never_sent_to_another_address(environ, up):
    save_login(Target("yard.example:8000", token="mine", tls=True), environ)
    assert find_target(address="evil.example:8000", environ=environ).token == ""


def test_a_kept_token_goes_with_its_address_however_that_is_named(environ, up):
    save_login(Target("yard.example:8000", token="mine", tls=True), environ)
    assert find_target(address="yard.example:8000", environ=environ).token == "mine"
    assert find_target(address="127.0.0.1:8000", environ=environ).token == "operator-token"


def test_what_is_kept_is_for_its_owner_only(environ, up):
    before = os.umask(0o000)
    try:
        path = save_login(Target("yard.example:8000", token="mine"), environ)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert mode(local_server_path(environ)) == 0o600


def test_a_file_open_to_all_is_closed_when_written_again(tmp_path):
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private_file(path, b"new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_logout_forgets(environ):
    save_login(Target("yard.example:8000", token="mine"), environ)
    assert delete_login(environ)
    assert not delete_login(environ)
    assert not config_path(environ).exists()


def test_only_its_own_pointer_is_cleared(environ, up):
    remove_local_server(pid=ALIVE + 1, environ=environ)
    assert read_local_server(environ) is not None
    remove_local_server(pid=ALIVE, environ=environ)
    assert read_local_server(environ) is None
    remove_local_server(pid=ALIVE, environ=environ)


def test_without_a_runtime_directory_the_pointer_is_in_the_home(tmp_path):
    path = local_server_path({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "missing")})
    assert path == tmp_path / ".local" / "state" / "boatyard" / "current.json"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"token": "x"}'])
def test_a_broken_login_is_said_to_be_broken(environ, content):
    path = config_path(environ)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(NotConfigured):
        find_target(environ=environ)


@pytest.mark.parametrize("text, expected", [
    pytest.param("yard.example", ("yard.example:8000", True), id="far away is TLS, port 8000"),
    pytest.param("yard.example:443", ("yard.example:443", True), id="with a port"),
    pytest.param("localhost:8000", ("localhost:8000", False), id="loopback by name"),
    pytest.param("127.3.2.1:8000", ("127.3.2.1:8000", False), id="loopback by number"),
    pytest.param("[::1]:8000", ("[::1]:8000", False), id="loopback of IPv6"),
    pytest.param("2001:db8::1", ("[2001:db8::1]:8000", True), id="a bare IPv6 address"),
    pytest.param("http://yard.example:80/", ("yard.example:80", False), id="without TLS when said so"),
    pytest.param("https://localhost:8000", ("localhost:8000", True), id="with TLS when said so"),
])  # fmt: skip
def test_an_address_says_whether_tls_is_used(text, expected):
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "ftp://x", "host:0", "host:99999", "host:port", "a b", "host/path"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(NotConfigured):
        parse_address(text)


def test_a_token_does_not_show_in_a_traceback():
    assert "hidden" not in repr(Target("a:1", token="hidden"))


@pytest.mark.parametrize("token", ["", "junk", "a.b.c", "a.!!!.c", "a.W10.c"])
def test_a_token_that_says_nothing_is_no_error(token):
    assert decode_token_claims(token) == {}
