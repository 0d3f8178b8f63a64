"""The crash proof with orders on a Kubernetes hub: it holds, and it finds bugs that only a hub can show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.proof.kill_points import KillPoint
from boatyard.proof.kube_hub import request_label
from boatyard.proof.platform_profiles import find_profile
from boatyard.proof.runner import ProofOptions, prove
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import hub_plane
from tests.support.soak import soak, soak_cases

pytestmark = pytest.mark.real

# `make soak` proves every point.
EVERY = soak(short=60, long=1)

Only = Callable[[str, KillPoint], bool]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with hub_plane() as plane:
        yield plane


def kubeconfig(plane: ControlPlane) -> bytes:
    return json.dumps(plane.kubeconfig()).encode()


@pytest.mark.timeout(3600)
async def test_service_and_operator_may_die_anywhere_and_nothing_differs(
    plane: ControlPlane, postgres: EmbeddedPostgres
) -> None:
    options = ProofOptions(hub_kubeconfig=kubeconfig(plane), every=EVERY)
    verdict = await prove(options, postgres=postgres)

    assert verdict.differences == []
    points = {(name, point) for name, found in verdict.points.items() for point in found}
    missed = points - set(verdict.killed)
    # How often an order is looked at on its way depends on time; every effect must be met.
    assert {point.category for _, point in missed} <= {"write", "claim"}
    assert len(missed) <= 1 + len(points) * 0.1
    ground = find_profile("sim", hub_kubeconfig=kubeconfig(plane))
    assert {name for name, _ in verdict.killed} == set(ground.journeys)


def at(*labels: str) -> Only:
    return lambda _, point: point.label in labels and point.occurrence == 1


PLANTS = [
    pytest.param(
        "inputs_forgotten",
        "change-of-mind",
        at("before:commit:hub POST clusterorders"),
        "secrets is still there",
        id="inputs of an order that never came",
    ),
    pytest.param("claims_forgotten", "delete", at(), "is still claimed by", id="a claim forgotten"),
    pytest.param(
        "effect_without_its_key",
        "create",
        at("after:effect:inventory.ensure_held host/compute-0"),
        "held/hub-1 host host/compute-0: 2 instead of 1",
        id="an effect without its key",
    ),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant, journey, only, tell_tale", soak_cases(PLANTS, short=1))
async def test_a_planted_bug_is_found(
    plant: str,
    journey: str,
    only: Only,
    tell_tale: str,
    plane: ControlPlane,
    postgres: EmbeddedPostgres,
) -> None:
    options = ProofOptions(
        hub_kubeconfig=kubeconfig(plane),
        journeys=(journey,),
        only=only,
        planted_bug=f"tests.support.planted_bugs.hub:{plant}",
        undisturbed=1,
    )

    verdict = await prove(options, postgres=postgres)

    assert any(tell_tale in words for words in verdict.differences), verdict.differences


@pytest.mark.parametrize(
    "method, path, label",
    [
        ("POST", "/api/v1/namespaces", "commit:hub POST namespaces"),
        ("PATCH", "/api/v1/namespaces/a/secrets/b", "commit:hub PATCH secrets"),
        ("POST", "/apis/boatyard.io/v1/namespaces/a/claims", "claim:hub POST claims"),
        (
            "PATCH",
            "/apis/osac.openshift.io/v1alpha1/namespaces/a/clusterorders/b/status",
            "commit:hub PATCH clusterorders/status",
        ),
    ],
)
def test_a_point_has_no_names_in_it(method: str, path: str, label: str) -> None:
    assert request_label(method, path) == label
