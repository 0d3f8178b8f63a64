"""Decides whether a request is retried, and when. Called by the client after each attempt. Pure."""

from __future__ import annotations

from boatyard.kube.errors import is_disruption_budget, parse_status
from boatyard.kube.transport import KubeRequest, KubeResponse
from boatyard.model.backoff import Backoff

MOST_TRIES = 6
_BACKOFF = Backoff(first=0.2)  # MOST_TRIES bounds it
_SHORTEST, _UNKNOWN = 0.1, 1.0


def pause_before_retry(
    request: KubeRequest, response: KubeResponse | None, tries: int
) -> float | None:
    """Seconds to wait before the next attempt; None when the response is final.

    `response` is None when the connection was cut. After a 429 the server has done nothing: any request is retried.
    In the other cases it may have done it: only idempotent requests are retried.
    """
    if tries >= MOST_TRIES:
        return None
    if response is not None and response.code == 429:
        if is_disruption_budget(parse_status(response.body)):
            return None  # about the pod, not about the server
        return _parse_retry_after(response) or _BACKOFF.pause(tries)
    if request.method == "POST":
        return None
    if response is None:
        return _BACKOFF.pause(tries) if tries <= 2 else None
    if response.code == 504:
        return _parse_retry_after(response) or _BACKOFF.pause(tries)
    if response.code >= 500:
        return _parse_retry_after(response)
    return None


def _parse_retry_after(response: KubeResponse) -> float | None:
    retry_after = response.headers.get("Retry-After")
    if retry_after is None:
        return None
    try:
        return max(float(retry_after), _SHORTEST)
    except ValueError:  # a date: Kubernetes never sends one, a proxy in between might
        return _UNKNOWN
