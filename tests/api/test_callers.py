"""Tokens: what is accepted, and every trick that must not be."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from boatyard.api import authentication
from boatyard.api.authentication import Authenticator, TokenChecker, TokenIssuer
from boatyard.model.caller import Caller, CallerRole, OrderRun
from boatyard.model.errors import Refused, Unauthenticated, Unavailable
from tests.api.doors import PUBLIC, ApiEnvironment, Door, Failed

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Moment:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def moment() -> Moment:
    return Moment()


@pytest.fixture
def checker(issuer: TokenIssuer, moment: Moment) -> TokenChecker:
    return TokenChecker(issuer.public_key(), moment)


def _token(issuer: TokenIssuer, **more: Any) -> str:
    asked: dict[str, Any] = {"tenant": "acme", "user": "ann", "role": CallerRole.MEMBER}
    return issuer.create_token(**asked | {"ttl": timedelta(hours=1), "now": NOW} | more)


def _claims(**more: Any) -> dict[str, Any]:
    second = int(NOW.timestamp())
    claims = {
        "iss": "boatyard",
        "aud": "boatyard",
        "sub": "ann",
        "tenant": "acme",
        "role": "member",
        "iat": second,
        "nbf": second,
        "exp": second + 60,
    }
    return {key: value for key, value in (claims | more).items() if value is not None}


def _signed(issuer: TokenIssuer, claims: dict[str, Any], **header: Any) -> str:
    """A token with our true signature over whatever is given."""
    whole = {"alg": "ES256", "kid": issuer.kid, "typ": "at+jwt"} | header
    whole = {key: value for key, value in whole.items() if value is not None}
    parts = [_encoded(json.dumps(part).encode()) for part in (whole, claims)]
    key = issuer._key.get_op_key("sign")
    from joserfc.jws import JWSRegistry

    signature = JWSRegistry.algorithms["ES256"].sign(".".join(parts).encode(), issuer._key)
    assert key is not None
    return ".".join([*parts, _encoded(signature)])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_token_says_who_is_calling(issuer: TokenIssuer, checker: TokenChecker) -> None:
    assert checker.check(_token(issuer)) == Caller("ann", "acme", CallerRole.MEMBER)
    operator = _token(issuer, tenant="", role=CallerRole.OPERATOR, user="root")
    assert checker.check(operator) == Caller("root", "shared", CallerRole.OPERATOR)
    assert checker.check(_signed(issuer, _claims())) == Caller("ann", "acme", CallerRole.MEMBER)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"iss": "https://elsewhere.example"}, id="a foreign issuer"),
        pytest.param({"iss": None}, id="no issuer"),
        pytest.param({"aud": "osac-api"}, id="a foreign audience"),
        pytest.param({"aud": None}, id="no audience"),
        pytest.param({"aud": ["boatyard", "other"]}, id="an audience among others"),
        pytest.param({"exp": int(NOW.timestamp()) - 60}, id="expired"),
        pytest.param({"exp": None}, id="without an end"),
        pytest.param({"exp": "tomorrow"}, id="an end that is no number"),
        pytest.param({"exp": True}, id="an end that is a truth"),
        pytest.param({"exp": 1e300}, id="an end beyond all time"),
        pytest.param({"nbf": int(NOW.timestamp()) + 600}, id="not valid yet"),
        pytest.param({"nbf": None}, id="without a beginning"),
        pytest.param({"sub": None}, id="nobody"),
        pytest.param({"sub": ""}, id="an empty name"),
        pytest.param({"sub": "ann\n"}, id="a name with a line break"),
        pytest.param({"sub": {"a": 1}}, id="a name that is an object"),
        pytest.param({"tenant": None}, id="no tenant"),
        pytest.param({"tenant": "shared"}, id="a member of shared"),
        pytest.param({"tenant": "system"}, id="a member of system"),
        pytest.param({"tenant": "Acme!"}, id="a tenant that is no name"),
        pytest.param({"role": "root"}, id="an unknown role"),
        pytest.param({"role": ["operator"]}, id="a list of roles"),
    ],
)
def test_claims_that_are_refused(
    issuer: TokenIssuer, checker: TokenChecker, claims: dict[str, Any]
) -> None:
    with pytest.raises(Unauthenticated):
        checker.check(_signed(issuer, _claims(**claims)))


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"alg": "none"}, id="alg none"),
        pytest.param({"alg": "NONE"}, id="alg NONE"),
        pytest.param({"alg": "HS256"}, id="alg of a shared secret"),
        pytest.param({"alg": "ES512"}, id="another curve"),
        pytest.param({"kid": "other"}, id="another key"),
        pytest.param({"kid": "../../dev/null"}, id="a key that is a path"),
        pytest.param({"kid": None}, id="no key"),
        pytest.param({"kid": ["a"]}, id="a list of keys"),
        pytest.param({"typ": "JWT"}, id="another type"),
        pytest.param({"typ": None}, id="no type"),
        pytest.param({"jku": "https://evil.example/keys"}, id="keys from elsewhere"),
        pytest.param({"x5u": "https://evil.example/cert"}, id="a certificate from elsewhere"),
        pytest.param({"jwk": {"kty": "oct", "k": "AA"}}, id="a key brought along"),
        pytest.param({"x5c": ["AA"]}, id="a certificate brought along"),
        pytest.param({"crit": ["exp"], "exp": 1}, id="critical extensions"),
        pytest.param({"b64": False}, id="an unencoded payload"),
    ],
)
def test_headers_that_are_refused(
    issuer: TokenIssuer, checker: TokenChecker, header: dict[str, Any]
) -> None:
    with pytest.raises(Unauthenticated):
        checker.check(_signed(issuer, _claims(), **header))


def test_foreign_signatures_are_refused(issuer: TokenIssuer, checker: TokenChecker) -> None:
    header = {"alg": "ES256", "kid": issuer.kid, "typ": "at+jwt"}
    foreign = jwt.encode(header, _claims(), ECKey.generate_key("P-256"))
    rsa = jwt.encode({**header, "alg": "RS256"}, _claims(), RSAKey.generate_key(2048))
    public = issuer.public_key().as_pem(private=False)
    parts = [_encoded(json.dumps(p).encode()) for p in ({**header, "alg": "HS256"}, _claims())]
    mac = hmac.new(public, ".".join(parts).encode(), hashlib.sha256).digest()
    confused = ".".join([*parts, _encoded(mac)])
    secret = jwt.encode({**header, "alg": "HS256"}, _claims(), OctKey.import_key(b"k" * 32))
    for token in (foreign, rsa, confused, secret):
        with pytest.raises(Unauthenticated):
            checker.check(token)


def test_broken_tokens_are_refused(issuer: TokenIssuer, checker: TokenChecker) -> None:
    good = _token(issuer)
    header, payload, signature = good.split(".")
    other = _token(issuer, tenant="globex").split(".")
    for token in (
        "",
        "x",
        "...",
        good[:-4],
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{header}.{other[1]}.{signature}",
        f"{good}.extra",
        good + "é",
        "\x00" + good,
        good.replace(".", " "),
        f"{_encoded(b'[]')}.{payload}.{signature}",
        f"{_encoded(b'{')}.{payload}.{signature}",
        "a" * (1024 * 1024),
        "{" * 4000,
    ):
        with pytest.raises(Unauthenticated):
            checker.check(token)


def test_a_remembered_token_still_expires(
    issuer: TokenIssuer, checker: TokenChecker, moment: Moment
) -> None:
    token = _token(issuer, ttl=timedelta(minutes=1))
    checker.check(token)
    checker.check(token)
    moment.now = NOW + timedelta(minutes=2)
    with pytest.raises(Unauthenticated):
        checker.check(token)


def test_what_is_remembered_is_bounded(
    issuer: TokenIssuer, checker: TokenChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MOST_CACHED_TOKENS", 3)
    for number in range(10):
        checker.check(_token(issuer, user=f"user-{number}"))
    assert len(checker._cached_tokens) == 3


def test_a_failed_check_is_not_remembered_as_good(
    issuer: TokenIssuer, checker: TokenChecker
) -> None:
    bad = _signed(issuer, _claims(aud="other"))
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            checker.check(bad)
    assert not checker._cached_tokens


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", "Token abc", "Bearer a b"],
)
def test_headers_without_a_token(checker: TokenChecker, header: str | None) -> None:
    with pytest.raises(Unauthenticated):
        Authenticator(checker).authenticate(header)


def test_anonymous_is_an_operator_and_a_bad_token_is_still_bad(checker: TokenChecker) -> None:
    anonymous = Authenticator(checker, anonymous=True)
    assert anonymous.authenticate(None).is_operator
    with pytest.raises(Unauthenticated):
        anonymous.authenticate("Bearer rubbish")


@pytest.mark.parametrize(
    "more",
    [
        {"user": ""},
        {"user": "a\x1b[31m"},
        {"tenant": ""},
        {"tenant": "shared"},
        {"tenant": "NOT a name"},
        {"ttl": timedelta(0)},
        {"ttl": timedelta(days=40000)},
    ],
)
def test_tokens_that_are_not_made(issuer: TokenIssuer, more: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        _token(issuer, **more)


def test_the_key_is_the_owners_alone_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / "tokens.pem"
    first = TokenIssuer.load_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert TokenIssuer.load_or_create(path).kid == first.kid
    assert os.listdir(path.parent) == ["tokens.pem"]
    path.chmod(0o644)
    with pytest.raises(Refused, match="chmod 600"):
        TokenIssuer.load_or_create(path)


@pytest.mark.asyncio(loop_scope="module")
async def test_who_is_unknown_learns_nothing_about_what_is_valid(
    environment: ApiEnvironment, door: Door
) -> None:
    """Authentication comes before validation, in both doors."""
    for body in ({"object": {"metadata": {"name": "NOT VALID"}}}, {"object": {}}):
        for token in ("", "rubbish"):
            with pytest.raises(Failed) as failed:
                await door.call(f"{PUBLIC}.Clusters", "Create", body, token=token)
            assert failed.value.code == "UNAUTHENTICATED"
            assert "NOT VALID" not in failed.value.message
    if door.name == "grpc":
        with pytest.raises(Failed) as failed:
            await environment.grpc.raw(f"{PUBLIC}.Clusters", "Create", b"\xff\xff\xff", token="")
        assert failed.value.code == "UNAUTHENTICATED"


RUN = {"aud": "boatyard/role-runs", "order": "o-1", "item": "role", "attempt": 1}


def test_a_runs_token_names_its_run_and_sees_nobodys_objects(
    issuer: TokenIssuer, checker: TokenChecker
) -> None:
    run = OrderRun(order="o-1", item="role", attempt=2)
    token = issuer.create_run_token(run, ttl=timedelta(seconds=1.5), now=NOW)

    caller = checker.check(token)

    assert (caller.run, caller.role, caller.is_operator) == (run, CallerRole.RUN, False)
    assert caller.visible_tenants == ()


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"order": None}, id="no order"),
        pytest.param({"order": ""}, id="an empty order"),
        pytest.param({"item": 7}, id="no item"),
        pytest.param({"attempt": None}, id="no attempt"),
        pytest.param({"attempt": "1"}, id="an attempt in words"),
        pytest.param({"attempt": True}, id="an attempt that is a truth"),
        pytest.param({"aud": "boatyard/other"}, id="another audience"),
    ],
)
def test_a_runs_token_that_does_not_say_which_is_nobodys(
    issuer: TokenIssuer, checker: TokenChecker, claims: dict[str, Any]
) -> None:
    assert checker.check(_signed(issuer, _claims(**RUN))).run is not None
    with pytest.raises(Unauthenticated):
        checker.check(_signed(issuer, _claims(**RUN | claims)))


def test_a_run_is_no_role_of_people(issuer: TokenIssuer, checker: TokenChecker) -> None:
    with pytest.raises(Refused, match="role: is for runs"):
        _token(issuer, role=CallerRole.RUN)
    with pytest.raises(Unauthenticated):
        checker.check(_signed(issuer, _claims(role="run")))
    # What a person's token says of a run beside is not looked at.
    told = {name: value for name, value in RUN.items() if name != "aud"}
    assert checker.check(_signed(issuer, _claims(**told))).run is None


def test_a_key_that_others_make_is_not_made_here(tmp_path: Path, issuer: TokenIssuer) -> None:
    path = tmp_path / "issuer.key"
    with pytest.raises(Unavailable, match=r"issuer\.key of the API server's data directory"):
        TokenIssuer.load(path)
    assert not path.exists()
    made = TokenIssuer.load_or_create(path)
    assert TokenIssuer.load(path).kid == made.kid
