"""Authentication: issues Boatyard's own tokens and checks them. Called by the gRPC and REST servers on every call."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from boatyard.model.caller import SHARED, SYSTEM, Caller, CallerRole, OrderRun
from boatyard.model.errors import Refused, Unauthenticated, Unavailable, Violation
from boatyard.resources.metadata import is_label

ISSUER = "boatyard"
AUDIENCE = "boatyard"
RUN_AUDIENCE = "boatyard/role-runs"  # of tokens for runs of roles, which no other service accepts
ALGORITHM = "ES256"
TOKEN_TYPE = "at+jwt"
LONGEST_TOKEN = 8192
LONGEST_USER = 256
LEEWAY_SECONDS = 5  # seconds of clock difference that are tolerated
MOST_CACHED_TOKENS = 10_000

ANONYMOUS = Caller(user="anonymous", tenant=SHARED, role=CallerRole.OPERATOR)

# Only the fields that we write ourselves: a key that the token names (jku, jwk, x5u, x5c) is never used.
_HEADER_FIELDS = frozenset({"alg", "kid", "typ"})


class TokenIssuer:
    """Signs tokens with the key in the data directory; the public key checks them."""

    def __init__(self, key: ECKey) -> None:
        self._key = key
        self.kid = key.thumbprint()

    @classmethod
    def load(cls, path: Path) -> TokenIssuer:
        """Loads the key in `path`, which the API server has created. Unavailable when there is no file."""
        if not path.exists():
            raise Unavailable(
                f"the key that signs tokens is missing: {path}; put issuer.key of the API server's data directory"
                " there, with mode 0600",
                reason="NoIssuerKey",
            )
        return cls.load_or_create(path)

    @classmethod
    def load_or_create(cls, path: Path) -> TokenIssuer:
        """Loads the key in `path`, and creates it on first use with mode 0600.

        May be called by several processes at once: all of them end up with the same key.
        """
        if not path.exists():
            _write_if_absent(path, ECKey.generate_key("P-256").as_pem(private=True))
        if path.stat().st_mode & 0o077:
            raise Refused(
                f"the token key {path} is open to others than its owner; run: chmod 600 {path}"
            )
        return cls(ECKey.import_key(path.read_bytes()))

    def create_token(
        self, *, tenant: str, user: str, role: CallerRole, ttl: timedelta, now: datetime
    ) -> str:
        """Returns a token for `user` of `tenant`; operators belong to the provider and need no tenant."""
        if role is CallerRole.OPERATOR:
            tenant = tenant or SHARED
        _check_identity(tenant, user, role, ttl)
        claims = {"aud": AUDIENCE, "sub": user, "tenant": tenant, "role": role.value}
        return self._sign(claims, ttl, now)

    def create_run_token(self, run: OrderRun, *, ttl: timedelta, now: datetime) -> str:
        """Returns a token for one attempt of a run: it allows calls about the run's own order, until the run ends."""
        claims = {
            "aud": RUN_AUDIENCE,
            "sub": f"{run.order}/{run.item}",
            "order": run.order,
            "item": run.item,
            "attempt": run.attempt,
        }
        return self._sign(claims, ttl, now)

    def _sign(self, claims: dict[str, Any], ttl: timedelta, now: datetime) -> str:
        issued_at = int(now.timestamp())
        times = {
            "iat": issued_at,
            "nbf": issued_at,
            "exp": issued_at + math.ceil(ttl.total_seconds()),
        }
        header = {"alg": ALGORITHM, "kid": self.kid, "typ": TOKEN_TYPE}
        payload = {"iss": ISSUER, **claims, **times}
        return jwt.encode(header, payload, self._key, algorithms=[ALGORITHM])

    def public_key(self) -> ECKey:
        return ECKey.import_key(self._key.as_dict(private=False))


class TokenChecker:
    """Turns a bearer token into a caller. Caches checked tokens until they expire."""

    def __init__(self, key: ECKey, now: Callable[[], datetime]) -> None:
        self._key = key
        self._kid = key.thumbprint()
        self._now = now
        self._registry = jws.JWSRegistry(algorithms=[ALGORITHM])
        self._cached_tokens: OrderedDict[bytes, _VerifiedToken] = OrderedDict()

    def check(self, token: str) -> Caller:
        """Returns the caller that the token names. Unauthenticated, with the reason, when the token is not valid."""
        if len(token) > LONGEST_TOKEN:
            raise Unauthenticated(f"the token is longer than {LONGEST_TOKEN} characters")
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        now = self._now().timestamp()
        checked = self._cached_tokens.get(digest)
        if checked is None:
            checked = self._verify(token, now)
            self._cached_tokens[digest] = checked
            if len(self._cached_tokens) > MOST_CACHED_TOKENS:
                self._cached_tokens.popitem(last=False)
        elif now > checked.expires + LEEWAY_SECONDS:
            del self._cached_tokens[digest]
            raise Unauthenticated("the token has expired; ask for a new one")
        else:
            self._cached_tokens.move_to_end(digest)
        return checked.caller

    def _verify(self, token: str, now: float) -> _VerifiedToken:
        try:
            signature = jws.extract_compact(token.encode("ascii"), registry=self._registry)
            header = signature.headers()
            if not _HEADER_FIELDS.issuperset(header):
                raise Unauthenticated("the token's header carries fields that are not accepted")
            if header.get("alg") != ALGORITHM:
                raise Unauthenticated(f"the token is not signed with {ALGORITHM}")
            if header.get("kid") != self._kid:
                raise Unauthenticated("the token is signed with a key that is not ours")
            if header.get("typ") != TOKEN_TYPE:
                raise Unauthenticated(f"the token is not of type {TOKEN_TYPE}")
            claims = jwt.decode(token, self._key, algorithms=[ALGORITHM]).claims
        except (JoseError, ValueError) as error:
            raise Unauthenticated("the token is not valid") from error
        return _verify_claims(claims, now)


class Authenticator:
    """Finds the caller for an Authorization header; with `anonymous`, calls without a header are allowed."""

    def __init__(self, checker: TokenChecker, *, anonymous: bool = False) -> None:
        self._checker = checker
        self.anonymous = anonymous

    def authenticate(self, authorization: str | None) -> Caller:
        if not authorization:
            if self.anonymous:
                return ANONYMOUS
            raise Unauthenticated("a token is needed: send 'Authorization: Bearer TOKEN'")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("the Authorization header must be 'Bearer TOKEN'")
        return self._checker.check(token.strip())


@dataclass(frozen=True)
class _VerifiedToken:
    caller: Caller
    expires: float


def _verify_claims(claims: dict[str, Any], now: float) -> _VerifiedToken:
    if claims.get("iss") != ISSUER:
        raise Unauthenticated("the token's issuer is not trusted")
    if claims.get("aud") not in (AUDIENCE, RUN_AUDIENCE):
        raise Unauthenticated("the token is meant for another audience")
    expires = _parse_time(claims, "exp")
    if now > expires + LEEWAY_SECONDS:
        raise Unauthenticated("the token has expired; ask for a new one")
    if _parse_time(claims, "nbf") > now + LEEWAY_SECONDS:
        raise Unauthenticated("the token is not valid yet")
    if claims["aud"] == RUN_AUDIENCE:
        return _VerifiedToken(_parse_run_caller(claims), expires)
    user, tenant, role = (claims.get(claim) for claim in ("sub", "tenant", "role"))
    if not isinstance(user, str) or not isinstance(tenant, str) or role not in list(CallerRole):
        raise Unauthenticated("the token does not say who it is for")
    caller = Caller(user=user, tenant=tenant, role=CallerRole(role))
    try:
        _check_identity(tenant, user, caller.role, timedelta(seconds=1))
    except Refused as error:
        raise Unauthenticated("the token does not say who it is for") from error
    return _VerifiedToken(caller, expires)


def _parse_run_caller(claims: dict[str, Any]) -> Caller:
    order, item, attempt = (claims.get(claim) for claim in ("order", "item", "attempt"))
    has_names = isinstance(order, str) and order and isinstance(item, str) and item
    if not has_names or not isinstance(attempt, int) or isinstance(attempt, bool):
        raise Unauthenticated("the token does not say which run it is for")
    run = OrderRun(order=str(order), item=str(item), attempt=attempt)
    return Caller(user="the template's role", tenant="", role=CallerRole.RUN, run=run)


def _parse_time(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        raise Unauthenticated(f"the token has no valid {name}")
    return float(value)


def _check_identity(tenant: str, user: str, role: CallerRole, ttl: timedelta) -> None:
    violations = []
    if not user or len(user) > LONGEST_USER or not user.isprintable():
        violations.append(Violation("user", f"must be 1 to {LONGEST_USER} printable characters"))
    if not is_label(tenant):
        violations.append(
            Violation("tenant", f"{tenant[:80]!r} is not a tenant's name", "give --tenant NAME")
        )
    if role is not CallerRole.OPERATOR and tenant in (SHARED, SYSTEM):
        violations.append(
            Violation("tenant", f"only operators belong to {tenant!r}", "name a tenant")
        )
    if role is CallerRole.RUN:
        violations.append(
            Violation("role", "is for runs of templates", "name a role that people have")
        )
    if ttl <= timedelta(0) or ttl > timedelta(days=3660):
        violations.append(Violation("ttl", "must be between a second and ten years"))
    if violations:
        raise Refused("", *violations)


def _write_if_absent(path: Path, content: bytes) -> None:
    """Writes the file unless it exists. Of several processes the first to link wins; the others read its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
