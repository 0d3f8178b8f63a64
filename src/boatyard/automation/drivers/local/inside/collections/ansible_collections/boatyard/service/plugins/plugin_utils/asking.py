"""Requests steps of the order through Boatyard's REST API, with the standard library only. Used by our tasks.

A call without an answer is repeated until the task's time is up: Boatyard may be restarting, and it carries out what
it has acknowledged. Requests are idempotent.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from urllib.parse import quote, urlsplit

STEPS = ("hosts", "network", "addresses", "names", "platform")
DONE = "STEP_STATE_DONE"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two looks
CALL_SECONDS = 20.0
LARGEST_ANSWER = 4 * 1024 * 1024
# Retried: a server or a database that stops, a concurrent write, too many calls.
_AGAIN = frozenset({409, 429, 500, 502, 503, 504})
_PATH = "/api/boatyard/v1/role_runs/"


class Failed(Exception):
    """The task has failed; the message is shown in the log of the run."""


class Asking:
    """The calls of one task. `api` is the variable `boatyard_api`; `seconds`, if any, is the timeout of the task."""

    def __init__(self, api, seconds=None):
        url = urlsplit(str(api["url"]))
        self._host, self._port = url.hostname, url.port
        self._token = str(api["token"])
        self._order = quote(str(api["order"]), safe="")
        self._context = _trusting(str(api.get("ca") or "")) if url.scheme == "https" else None
        seconds_left = float(api["expires"]) - time.time()
        seconds_left -= min(
            10.0, seconds_left / 20
        )  # so that it can still say why, before the run's own time is up
        self.seconds = seconds_left if seconds is None else min(seconds, seconds_left)
        self._until = time.monotonic() + self.seconds

    def ask(self, step):
        """Requests the step and all it needs. True when something of that had not been requested before."""
        return bool(self._call("POST", f"{self._order}/ask", {"step": step}).get("steps"))

    def look(self, kubeconfig=False):
        """The state of the order's steps and what is known of the cluster."""
        query = "?kubeconfig=true" if kubeconfig else ""
        return self._call("GET", self._order + query)

    def wait(self, steps):
        """Waits until all of these steps are done and returns the state. Failed with the message of a blocked step."""
        pause = FIRST_PAUSE
        while True:
            run = self.look()
            steps_by_name = {step["name"]: step for step in run.get("steps", ())}
            waiting = [
                steps_by_name[name] for name in steps if not _is_done(steps_by_name[name], run)
            ]
            if not waiting:
                return run
            for step in waiting:
                if step.get("blocked"):
                    raise Failed(step["blocked"])
            if self._left() <= 0:
                raise Failed(
                    f"not done after {self.seconds:.0f} s: {', '.join(map(_words, waiting))}"
                )
            pause = self._pause(pause)

    def _call(self, method, path, body=None):
        pause = FIRST_PAUSE
        while True:
            try:
                status, data = self._once(method, path, body)
                if status not in _AGAIN:
                    return _answer(status, data)
                problem = _message(data) or f"it answered {status}"
            except ssl.SSLCertVerificationError as error:
                raise Failed(
                    f"Boatyard's certificate is not trusted: {error.verify_message}"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                problem = str(error) or type(error).__name__
            if self._left() <= 0:
                raise Failed(f"Boatyard did not answer for {self.seconds:.0f} s: {problem}")
            pause = self._pause(pause)

    def _once(self, method, path, body):
        # http.client follows neither proxies nor redirects: the token reaches only this address.
        seconds = max(1.0, min(CALL_SECONDS, self._left()))
        if self._context is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        else:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=seconds, context=self._context
            )
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, _PATH + path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(LARGEST_ANSWER)
        finally:
            connection.close()

    def _left(self):
        return self._until - time.monotonic()

    def _pause(self, pause):
        time.sleep(max(0.0, min(pause, self._left())))
        return min(pause * 1.5, LONGEST_PAUSE)


def _trusting(ca):
    if not ca:
        return ssl.create_default_context()
    context = ssl.create_default_context(cadata=ca)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the server's own certificate is enough
    return context


def _is_done(step, run):
    if step.get("state") != DONE:
        return False
    return step["name"] != "platform" or bool(run.get("has_kubeconfig"))


def _words(step):
    state = str(step.get("state", "")).removeprefix("STEP_STATE_").lower()
    message = step.get("message") or step.get("detail") or state
    return f"{step['name']} ({message})"


def _answer(status, data):
    if 200 <= status < 300:
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return answer
        raise Failed("what answers at Boatyard's address is not Boatyard")
    raise Failed(_message(data) or f"Boatyard answered {status}")


def _message(data):
    try:
        message = json.loads(data).get("message", "")
    except (ValueError, AttributeError):
        return ""
    return message if isinstance(message, str) else ""
