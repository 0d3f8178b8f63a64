"""Whether a request is worth another try, and when. Called by the client after each try."""

from __future__ import annotations

from boatyard.kube.errors import disrupts, parse_status
from boatyard.kube.transport import Answer, Question

MOST_TRIES = 6
_FIRST_PAUSE = 0.2
_SHORTEST, _UNKNOWN = 0.1, 1.0


def pause_before_retry(question: Question, answer: Answer | None, tries: int) -> float | None:
    """Seconds to wait before the next try; None when the answer stands.

    No answer means that the connection was cut. 429 means that nothing was done: any request may be asked again.
    After the others it may have been done: only what is the same done twice.
    """
    if tries >= MOST_TRIES:
        return None
    if answer is not None and answer.code == 429:
        if disrupts(parse_status(answer.body)):
            return None  # an answer about the pod, not about the server
        return _asked_for(answer) or _growing(tries)
    if question.method == "POST":
        return None
    if answer is None:
        return _growing(tries) if tries <= 2 else None
    if answer.code == 504:
        return _asked_for(answer) or _growing(tries)
    if answer.code >= 500:
        return _asked_for(answer)
    return None


def _growing(tries: int) -> float:
    return float(_FIRST_PAUSE * 2 ** (tries - 1))


def _asked_for(answer: Answer) -> float | None:
    said = answer.headers.get("Retry-After")
    if said is None:
        return None
    try:
        return max(float(said), _SHORTEST)
    except ValueError:  # a date: Kubernetes never sends one, a proxy between might
        return _UNKNOWN
