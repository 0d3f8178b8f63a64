"""Makes the tokens with which runs of roles call the API for their order. Used by `make_local_role_runner.py`."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from boatyard.api.authentication import TokenIssuer
from boatyard.automation.drivers.local.run_token import RunToken
from boatyard.model.caller import OrderRun
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.wiring.api_server import ServedApi
from boatyard.wiring.service_process import ISSUER_KEY
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)

_OWN_CERTIFICATE = "tls.crt"  # in the data directory: what a server with --tls shows


@dataclass(frozen=True)
class ApiEndpoint:
    """How runs on this machine reach the API."""

    url: str  # empty: not set
    ca_file: str = ""  # certificates to trust there (PEM); empty: the system's


def find_api_endpoint(api: ServedApi, settings: Settings) -> ApiEndpoint:
    """How runs reach the API of this process, or the API that the settings name."""
    if settings.api_url:
        return read_api_endpoint(settings)
    certificate = settings.tls_cert or api.ca_file
    return ApiEndpoint(url=_use_loopback(api.rest), ca_file=settings.api_ca or certificate)


def read_api_endpoint(settings: Settings) -> ApiEndpoint:
    """How runs reach the API that the settings name; without one, `url` is empty. Refused when it is no address."""
    if not settings.api_url:
        return ApiEndpoint(url="")
    parts = urlsplit(settings.api_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise Refused(
            f"api_url {settings.api_url!r} is no address of the REST API; "
            "give for example https://boatyard.example:8080"
        )
    certificate = settings.api_ca
    if not certificate and settings.tls:
        certificate = settings.tls_cert or str(settings.data_dir / _OWN_CERTIFICATE)
    return ApiEndpoint(url=f"{parts.scheme}://{parts.netloc}", ca_file=certificate)


class RunTokenMaker:
    """Makes run tokens. Reads key and certificate for each: they may appear or change while the process runs."""

    def __init__(self, settings: Settings, way: ApiEndpoint, now: Callable[[], datetime]) -> None:
        self._key = settings.data_dir / ISSUER_KEY
        self._endpoint = way
        self._now = now

    def __call__(self, key: str, attempt: int, seconds: float) -> RunToken:
        """A token for one attempt of a run. Unavailable when none can be made.

        The reason is only in the log, because tenants read the error in the step's message.
        """
        try:
            issuer, ca_text = self._load_issuer()
        except BoatyardError as error:
            logger.error("token for a run not made", extra={"run": key, "why": str(error)})
            raise Unavailable(
                "the worker that should run the role cannot make a token for it; its log says what is missing",
                reason=getattr(error, "reason", "NoPasses"),
            ) from error
        order, _, item = key.partition("/")
        run, now = OrderRun(order=order, item=item, attempt=attempt), self._now()
        ttl = timedelta(seconds=seconds)
        token = issuer.create_run_token(run, ttl=ttl, now=now)
        expires = time.time() + seconds  # by the clock of this machine, where the run is
        return RunToken(url=self._endpoint.url, token=token, ca=ca_text, expires=expires)

    def find_problem(self) -> str:
        """Why no token can be made now; empty when one can."""
        try:
            self._load_issuer()
        except BoatyardError as error:
            return str(error)
        return ""

    def _load_issuer(self) -> tuple[TokenIssuer, str]:
        if not self._endpoint.url:
            raise Unavailable(
                "where runs of roles reach the API is not set: give BOATYARD_API_URL the address of the REST API",
                reason="NoApiUrl",
            )
        return TokenIssuer.load(self._key), _read_certificate(self._endpoint.ca_file)


def _use_loopback(url: str) -> str:
    """The URL with a wildcard address (0.0.0.0, ::) replaced by the loopback address."""
    parts = urlsplit(url)
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return url
    if not address.is_unspecified:
        return url
    host = "127.0.0.1" if address.version == 4 else "[::1]"
    return f"{parts.scheme}://{host}:{parts.port}"


def _read_certificate(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"cannot read the certificate {path} that runs of roles should trust; give BOATYARD_API_CA another",
            reason="NoCertificate",
        ) from error
