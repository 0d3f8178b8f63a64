"""The pass of a run: where it asks, whom it trusts there, and what is said when none can be made."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from boatyard.api.authentication import TokenChecker, TokenIssuer
from boatyard.model.caller import OrderRun
from boatyard.model.errors import Refused, Unauthenticated, Unavailable
from boatyard.wiring.api_server import ServedApi
from boatyard.wiring.run_tokens import (
    ApiEndpoint,
    RunTokenMaker,
    find_api_endpoint,
    read_api_endpoint,
)
from boatyard.wiring.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def settings(tmp_path: Path, **more: Any) -> Settings:
    return Settings(data=str(tmp_path), **more)


def passes(tmp_path: Path, url: str = "http://127.0.0.1:8080", **more: Any) -> RunTokenMaker:
    return RunTokenMaker(settings(tmp_path), ApiEndpoint(url=url, **more), lambda: NOW)


def doors(tmp_path: Path, rest: str, ca_file: str = "") -> ServedApi:
    issuer = TokenIssuer.load_or_create(tmp_path / "issuer.key")
    return ServedApi(grpc="", rest=rest, ca_file=ca_file, issuer=issuer, now=lambda: NOW)


def test_a_pass_is_for_one_attempt_of_one_run_and_as_long_as_that_may_take(tmp_path: Path) -> None:
    issuer = TokenIssuer.load_or_create(tmp_path / "issuer.key")
    made = passes(tmp_path)("o-1/role", 3, 90.0)
    moment = [NOW]
    checker = TokenChecker(issuer.public_key(), lambda: moment[0])

    assert checker.check(made.token).run == OrderRun(order="o-1", item="role", attempt=3)
    moment[0] = NOW + timedelta(seconds=100)
    with pytest.raises(Unauthenticated, match="expired"):
        checker.check(made.token)
    assert made.token not in repr(made)


@pytest.mark.parametrize(
    "url, ca_file, key, reason, words",
    [
        pytest.param("http://x", "", False, "NoIssuerKey", "issuer.key", id="no key"),
        pytest.param("", "", True, "NoApiUrl", "BOATYARD_API_URL", id="no address"),
        pytest.param(
            "http://x", "gone.pem", True, "NoCertificate", "gone.pem", id="no certificate"
        ),
    ],
)
def test_what_is_missing_is_said_to_operators_and_not_to_tenants(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    url: str,
    ca_file: str,
    key: bool,
    reason: str,
    words: str,
) -> None:
    caplog.set_level(logging.ERROR)
    if key:
        TokenIssuer.load_or_create(tmp_path / "issuer.key")
    none = passes(tmp_path, url, ca_file=ca_file)

    assert words in none.find_problem()
    with pytest.raises(Unavailable) as refused:
        none("o-1/role", 1, 60.0)

    assert refused.value.reason == reason
    assert str(tmp_path) not in str(refused.value)
    assert words not in str(refused.value)
    assert words in caplog.records[-1].__dict__["why"]


def test_a_key_that_comes_later_is_found(tmp_path: Path) -> None:
    late = passes(tmp_path)
    assert late.find_problem()
    TokenIssuer.load_or_create(tmp_path / "issuer.key")
    assert late.find_problem() == ""
    assert late("o-1/role", 1, 60.0).token


@pytest.mark.parametrize(
    "rest, url",
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://boatyard.example:443", "https://boatyard.example:443"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("https://[::]:8080", "https://[::1]:8080"),
    ],
)
def test_up_knows_its_own_door(tmp_path: Path, rest: str, url: str) -> None:
    assert find_api_endpoint(doors(tmp_path, rest), settings(tmp_path)) == ApiEndpoint(url=url)


def test_runs_trust_what_the_server_shows(tmp_path: Path) -> None:
    own = doors(tmp_path, "https://127.0.0.1:1", ca_file="own.crt")
    given = doors(tmp_path, "https://127.0.0.1:1")
    cert = {"tls_cert": "given.pem", "tls_key": "given.key"}
    assert find_api_endpoint(own, settings(tmp_path)).ca_file == "own.crt"
    assert find_api_endpoint(given, settings(tmp_path, **cert)).ca_file == "given.pem"
    assert find_api_endpoint(own, settings(tmp_path, api_ca="other.pem")).ca_file == "other.pem"


def test_a_worker_is_told_the_way(tmp_path: Path) -> None:
    assert read_api_endpoint(settings(tmp_path)) == ApiEndpoint(url="")
    told = settings(tmp_path, api_url="https://boatyard.example:8080/")
    assert read_api_endpoint(told) == ApiEndpoint(url="https://boatyard.example:8080")
    tls = settings(tmp_path, api_url="https://127.0.0.1:8080", tls=True)
    assert read_api_endpoint(tls).ca_file == str(tmp_path / "tls.crt")
    assert (
        find_api_endpoint(doors(tmp_path, "http://127.0.0.1:1"), told).url
        == "https://boatyard.example:8080"
    )


@pytest.mark.parametrize("url", ["boatyard:8080", "ftp://x", "http://", "http://x/api", "/api"])
def test_an_address_that_is_none_is_refused_at_start(tmp_path: Path, url: str) -> None:
    with pytest.raises(Refused, match="api_url"):
        read_api_endpoint(settings(tmp_path, api_url=url))
