"""Which requests to an API server are tried again, and after how long."""

from __future__ import annotations

import msgspec
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from boatyard.kube.retry_policy import MOST_TRIES, pause_before_retry
from boatyard.kube.transport import KubeRequest, KubeResponse

GET, POST = KubeRequest("GET", "/api/v1/pods"), KubeRequest("POST", "/api/v1/pods")


def answer(code: int, body: bytes = b"", **headers: str) -> KubeResponse:
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return KubeResponse(code, CIMultiDictProxy(named), body)


BUDGET = msgspec.json.encode(
    {"kind": "Status", "details": {"causes": [{"reason": "DisruptionBudget"}]}}
)


@pytest.mark.parametrize(
    "question, response, tries, pause",
    [
        pytest.param(GET, None, 1, 0.2, id="a connection that was cut is tried again"),
        pytest.param(GET, None, 2, 0.4, id="more slowly"),
        pytest.param(GET, None, 3, None, id="and no more than twice"),
        pytest.param(POST, None, 1, None, id="a create that was cut may have been done"),
        pytest.param(GET, answer(500), 1, None, id="a server that fails is not asked again"),
        pytest.param(GET, answer(503, Retry_After="2"), 1, 2.0, id="unless it says when"),
        pytest.param(POST, answer(503, Retry_After="2"), 1, None, id="a create not even then"),
        pytest.param(GET, answer(504), 1, 0.2, id="a gateway that waited too long"),
        pytest.param(POST, answer(429), 1, 0.2, id="of a busy server a create is asked again"),
        pytest.param(POST, answer(429), 3, 0.8, id="ever more slowly"),
        pytest.param(POST, answer(429, Retry_After="0"), 1, 0.1, id="never at once"),
        pytest.param(POST, answer(429, BUDGET), 1, None, id="a budget's no is an answer"),
        pytest.param(POST, answer(429), MOST_TRIES, None, id="not for ever"),
        pytest.param(GET, answer(404), 1, None, id="an answer stands"),
    ],
)
def test_the_pause_before_the_next_try(
    question: KubeRequest, response: KubeResponse | None, tries: int, pause: float | None
) -> None:
    assert pause_before_retry(question, response, tries) == pytest.approx(pause)
