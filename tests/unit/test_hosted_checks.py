"""The questions to a hosted cluster: yes when all is well, no for the fault each is there for."""

from __future__ import annotations

import json

import pytest

from boatyard.checks.drivers.hosted import HostedChecks
from boatyard.checks.port import Subject
from boatyard.model.outcome import Done, Outcome, Waiting
from tests.support.scripted_kube import Answer, Says, failure, listing, scripted_kube


async def ask(name: str, *answers: Answer) -> Outcome:
    async with scripted_kube() as told:
        told.tell(*answers)
        config = {
            "clusters": [{"name": "c", "cluster": {"server": told.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        subject = Subject(
            cluster_key="order-1/cluster",
            api_name="api.one.example",
            api_address="198.51.100.1",
            ingress_name="*.apps.one.example",
            ingress_address="198.51.100.2",
            slots=("compute-0", "compute-1"),
            version="4.17.9",
            kubeconfig=json.dumps(config),
        )
        return await HostedChecks().run_check(name, subject)


def node(name: str, ready: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


async def test_an_api_of_whatever_kubernetes_answers() -> None:
    """4.17 is a release of OpenShift; its API says 1.30."""
    assert await ask("api", Says(b"ok"), Says({"gitVersion": "v1.30.4"})) == Done()


@pytest.mark.parametrize(
    "answer, reason",
    [
        pytest.param(failure(503, "ServiceUnavailable"), "ApiNotAvailable", id="down"),
        pytest.param(failure(401, "Unauthorized"), "Unauthorized", id="does not know us"),
    ],
)
async def test_an_api_that_is_not_well_is_found(answer: Answer, reason: str) -> None:
    outcome = await ask("api", *[answer] * 20)
    assert isinstance(outcome, Waiting)
    assert outcome.reason == reason


async def test_nodes_are_counted_whatever_they_are_called() -> None:
    there = listing(1, node("ip-10-0-0-1", "True"), node("host-7", "True"))
    assert await ask("nodes", there) == Done()


@pytest.mark.parametrize(
    "nodes, reason",
    [
        pytest.param([node("a", "True")], "NodeMissing", id="one is missing"),
        pytest.param([], "NodeMissing", id="none is there"),
        pytest.param([node("a", "True"), node("b", "False")], "NodeNotReady", id="one not ready"),
    ],
)
async def test_too_few_ready_nodes_are_found(nodes: list[dict[str, object]], reason: str) -> None:
    outcome = await ask("nodes", listing(1, *nodes))
    assert isinstance(outcome, Waiting)
    assert outcome.reason == reason
