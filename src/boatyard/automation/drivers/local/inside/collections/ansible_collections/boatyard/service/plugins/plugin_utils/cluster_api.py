"""A small Kubernetes client for the order's own cluster, without Boatyard. Used by the action plugin `apply`."""

from __future__ import annotations

import base64
import binascii
import contextlib
import http.client
import json
import os
import re
import ssl
import tempfile
import time
import urllib.parse

import yaml

MOST_BYTES = 64 * 1024 * 1024  # of one response
_CALL_SECONDS = 30.0
_BUSY = (429, 502, 503, 504)  # not 500, which also answers a manifest with wrong types
_PAUSE_SECONDS = 0.25


class ClusterError(Exception):
    """An error with a message for the author of the role. `code` is the HTTP status, 0 without a response."""

    def __init__(self, message, code=0):
        super().__init__(message)
        self.code = code


class ClusterApi:
    """One connection to the server of a kubeconfig. Retries while the server is away or busy, up to `seconds`."""

    def __init__(self, kubeconfig, seconds):
        address, self._headers, self._context = _read(kubeconfig)
        self._host, self._port, self._root = address
        self._end = time.monotonic() + seconds
        self._connection = None

    def call(self, method, path, body=None, content_type="application/json"):
        """The decoded response. Every call is idempotent and therefore retried."""
        data = None if body is None else _encoded(body)
        headers = {**self._headers, "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        while True:
            try:
                code, answer = self._once(method, path, data, headers)
                if code < 300:
                    return answer
                error = ClusterError(_said(answer, code), code)
            except ssl.SSLCertVerificationError as failure:
                raise ClusterError(f"the cluster is not who it should be: {failure}") from failure
            except (OSError, http.client.HTTPException) as failure:
                error = ClusterError(
                    f"the cluster does not answer: {failure or type(failure).__name__}"
                )
            if error.code not in (0, *_BUSY) or not self.has_time():
                raise error
            self.pause()

    def has_time(self):
        return time.monotonic() + _PAUSE_SECONDS < self._end

    def pause(self):
        time.sleep(_PAUSE_SECONDS)

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(self, method, path, data, headers):
        if self._connection is None:
            seconds_left = max(1.0, min(_CALL_SECONDS, self._end - time.monotonic()))
            self._connection = self._connect(seconds_left)
        try:
            self._connection.request(method, self._root + path, body=data, headers=headers)
            response = self._connection.getresponse()
            text = response.read(MOST_BYTES + 1)
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if len(text) > MOST_BYTES:
            self.close()
            raise ClusterError("the cluster's answer is too long")
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, {"message": text[:500].decode(errors="replace")}

    def _connect(self, seconds):
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=seconds, context=self._context
        )


def _encoded(body):
    """The body as JSON that a YAML parser reads the same way, because the API server parses an apply as YAML.

    YAML has no surrogate pairs, does not allow a plain DEL, and folds line ends that JSON keeps.
    """
    text = json.dumps(body, ensure_ascii=False)
    return _SPECIAL.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


_SPECIAL = re.compile("[\x7f-\uffff]")


def _said(answer, code):
    """The message of the API server."""
    message = answer.get("message") if isinstance(answer, dict) else ""
    return str(message or http.client.responses.get(code, f"answer {code}"))


# --- kubeconfig --------------------------------------------------------------------------------


def _read(path):
    """Address, headers and TLS context of the current context of the file."""
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file) or {}
    context = _named(config, "context", config.get("current-context"))
    cluster = _named(config, "cluster", context.get("cluster"))
    user = _named(config, "user", context.get("user"))
    server = urllib.parse.urlsplit(cluster.get("server") or "")
    if server.scheme not in ("http", "https") or not server.hostname:
        raise ClusterError("the kubeconfig names no server")
    if "exec" in user or "auth-provider" in user:
        raise ClusterError("the kubeconfig wants a program that is not here; a token is needed")
    headers = {}
    token = user.get("token") or _text_of(user.get("tokenFile"))
    if token:
        headers["Authorization"] = f"Bearer {token.strip()}"
    port = server.port or (443 if server.scheme == "https" else 80)
    address = (server.hostname, port, server.path.rstrip("/"))
    return address, headers, _tls(cluster, user) if server.scheme == "https" else None


def _named(config, kind, name):
    for entry in config.get(f"{kind}s") or []:
        if entry.get("name") == name:
            return entry.get(kind) or {}
    raise ClusterError(f"the kubeconfig has no {kind} {name!r}")


def _tls(cluster, user):
    authority = _bytes(cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _bytes(user, "client-certificate"), _bytes(user, "client-key")
    if certificate and key:
        # Python reads them only from a file; the run's own directory is a tmpfs that nobody else can read.
        with _written(certificate + b"\n" + key) as path:
            context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _written(data):
    handle, path = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield path
    finally:
        os.unlink(path)


def _bytes(fields, name):
    inline = fields.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ClusterError(f"the kubeconfig: {name}-data is no base64") from error
    return _text_of(fields.get(name)).encode()


def _text_of(path):
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()
