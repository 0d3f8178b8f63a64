"""An API server that fails is asked seldom, and whoever is not let through is told at once."""

from __future__ import annotations

import pytest

from boatyard.kube.circuit_breaker import FAILING_REASON, SPACING_SECONDS, CircuitBreaker
from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.kube.kinds import CONFIG_MAPS
from boatyard.model.errors import BoatyardError, Unavailable
from tests.support.scripted_kube import Says, ScriptedKube, Silence, failure, scripted_kube, thing


class SteppedTime:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def passes(circuit_breaker: CircuitBreaker) -> bool:
    try:
        circuit_breaker.check_allowed("GET /x")
    except Unavailable:
        return False
    return True


@pytest.mark.parametrize(
    "codes, failing",
    [
        pytest.param([500, 500], False, id="two failures are no outage"),
        pytest.param([500, 503, 429], True, id="three in a row are one"),
        pytest.param([500, 500, 200, 500, 500], False, id="a good answer begins the count anew"),
        pytest.param([404, 409, 403, 401, 422], False, id="a refusal is an answer"),
    ],
)
def test_when_a_server_counts_as_failing(codes: list[int], failing: bool) -> None:
    gate = CircuitBreaker(time=SteppedTime())

    for code in codes:
        gate.record_response(code)

    assert gate.is_open == failing


def test_a_failing_server_is_asked_twice_a_second_by_all_together() -> None:
    time = SteppedTime()
    gate = CircuitBreaker(time=time)
    for _ in range(3):
        gate.record_failure("gone")

    sent = 0
    for _ in range(1000):  # ten seconds, a hundred tries in each
        time.now += 0.01
        sent += passes(gate)
        gate.record_failure("gone")

    assert 17 <= sent <= 10 / SPACING_SECONDS <= 20


def test_one_good_answer_opens_the_gate_for_all() -> None:
    time = SteppedTime()
    gate = CircuitBreaker(time=time)
    for _ in range(3):
        gate.record_failure("gone")
    assert not passes(gate)

    time.now += SPACING_SECONDS
    assert passes(gate)
    gate.record_response(200)

    assert all(passes(gate) for _ in range(100))


async def test_what_is_not_sent_says_why_the_server_fails() -> None:
    async with scripted_kube() as told:
        client = KubeClient(
            KubeConfig(told.url), circuit_breaker=CircuitBreaker(time=SteppedTime())
        )
        told.tell(*[failure(500, "InternalError", "boom")] * 3)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await client.get(CONFIG_MAPS, "a", "ns")

        with pytest.raises(Unavailable, match="answered 500") as raised:
            await client.get(CONFIG_MAPS, "b", "ns")

        assert raised.value.reason == FAILING_REASON
        assert len(told.asked) == 3
        await client.close()


@pytest.mark.parametrize(
    "answer, failing",
    [
        pytest.param(Silence(cut=True), True, id="cut connections count"),
        pytest.param(Silence(), True, id="silence counts"),
        pytest.param(failure(404, "NotFound"), False, id="what is not there does not"),
    ],
)
async def test_what_the_client_tells_the_gate(answer: Says | Silence, failing: bool) -> None:
    gate = CircuitBreaker(time=SteppedTime())
    async with scripted_kube() as told:
        client = KubeClient(KubeConfig(told.url), circuit_breaker=gate, timeout=0.1)
        await ask_thrice(told, client, answer)
        await client.close()

    assert gate.is_open == failing


async def ask_thrice(told: ScriptedKube, client: KubeClient, answer: Says | Silence) -> None:
    told.tell(*[answer] * 3)
    for _ in range(3):
        with pytest.raises(BoatyardError):
            await client.create(CONFIG_MAPS, thing("a", 1), "ns")


async def test_an_eviction_that_a_budget_keeps_says_nothing_about_the_server() -> None:
    gate = CircuitBreaker(time=SteppedTime())
    async with scripted_kube() as told:
        client = KubeClient(KubeConfig(told.url), circuit_breaker=gate)
        kept = failure(429, details={"causes": [{"reason": "DisruptionBudget"}]})
        told.tell(kept, kept, kept)
        for _ in range(3):
            assert not await client.evict("p", "ns")
        await client.close()

    assert not gate.is_open
