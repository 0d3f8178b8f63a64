"""What clusters will need of a hub besides its orders: said as a warning, with what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.evaluate import evaluate_prerequisites, evaluate_snapshot
from boatyard.resources.hubs.check.model import WARNED, ClusterPrerequisites, Need, Rights, Roles
from boatyard.resources.hubs.check.requirements import list_needed_crds
from tests.unit.test_hub_judging import NOW, ROLES, a_hub, a_look, said

PODS = Need("", "pods", "get")
HOSTED = {"platform": "hosted"}


@pytest.mark.parametrize(
    "settings, around, expected",
    [
        pytest.param({}, {"storage_classes": {"a": True}}, [], id="a default class"),
        pytest.param({}, {"storage_classes": {"a": False}}, ["storage class"], id="no default"),
        pytest.param({}, {"storage_classes": {}}, ["storage class"], id="no class"),
        pytest.param(
            {"hosted.vm-storage-class": "b"},
            {"storage_classes": {"a": True}},
            ["storage class"],
            id="a class that is not there",
        ),
        pytest.param({}, {"metallb": False}, ["load balancer"], id="no load balancer"),
        pytest.param({"hosted.publish": "Route"}, {"metallb": False}, [], id="and none needed"),
        pytest.param({}, {"address_pools": 0}, ["load balancer"], id="one without addresses"),
        pytest.param(
            {}, {"metallb": False, "has_balanced_service": True}, [], id="another than MetalLB"
        ),
        pytest.param(
            {}, {"metallb": False, "providers": frozenset({"aws"})}, [], id="that of a cloud"
        ),
        pytest.param(
            {}, {"operator_missing_rights": {"f": [PODS]}}, ["operator's rights"], id="rights"
        ),
        pytest.param(
            {}, {"operator_missing_rights": None}, ["operator's rights"], id="rights unseen"
        ),
        pytest.param({}, {"storage_classes": None}, ["storage class"], id="classes unseen"),
        pytest.param(
            {},
            {"metallb": False, "has_balanced_service": None, "providers": None},
            ["load balancer"],
            id="a load balancer unseen",
        ),
    ],
)
def test_what_clusters_will_lack_is_a_warning(
    settings: dict[str, str], around: dict[str, Any], expected: list[str]
) -> None:
    hub = a_hub(drivers=HOSTED, settings=settings)
    served = {(crd.api_version, crd.plural) for crd in list_needed_crds(hub)}
    good: dict[str, Any] = {
        "storage_classes": {"a": True},
        "metallb": True,
        "address_pools": 1,
        "has_balanced_service": False,
        "providers": frozenset(),
        "operator_missing_rights": {},
    }

    found = said(
        hub,
        served_resources=frozenset(served),
        prerequisites=ClusterPrerequisites(**{**good, **around}),
    )

    assert found == dict.fromkeys(expected, (WARNED, ""))


def test_of_an_operator_that_is_not_ours_nothing_is_said() -> None:
    seen = a_look(prerequisites=ClusterPrerequisites(operator_missing_rights={}))
    elsewhere = a_hub(settings={"kube.operator-lease": "none"})

    def lines(hub: Hub, roles: Roles) -> set[str]:
        return {one.check for one in evaluate_snapshot(hub, seen, roles, NOW)}

    assert "operator's rights" in lines(a_hub(), ROLES)
    assert "operator's rights" not in lines(elsewhere, ROLES)
    assert "operator's rights" not in lines(a_hub(), Roles()), "no role of it is known"


def test_each_right_is_granted_by_its_own_file() -> None:
    lacks = {"one.yaml": [PODS], "two.yaml": [], "three.yaml": [Need("", "pods", "list")]}

    (found,) = evaluate_prerequisites(
        a_hub(), ClusterPrerequisites(operator_missing_rights=lacks), ROLES
    )

    assert found.message == "it may not get pods, list pods"
    assert found.remedy == "apply one.yaml and three.yaml to the hub"


@pytest.mark.parametrize(
    "settings, around, expected",
    [
        pytest.param({}, {"automation_missing_rights": ()}, {}, id="no secret is named"),
        pytest.param(
            {},
            {"automation_missing_rights": (PODS,)},
            {"automation's rights": "eda.yaml"},
            id="rights",
        ),
        pytest.param({}, {}, {"automation's rights": "can-i"}, id="rights unseen"),
        pytest.param(
            {"eda.secret": "token"},
            {"automation_missing_rights": (), "has_automation_secret": False},
            {"automation's secret": "create it"},
            id="no secret",
        ),
        pytest.param(
            {"eda.secret": "token"},
            {"automation_missing_rights": ()},
            {"automation's secret": "service.yaml"},
            id="a secret unseen",
        ),
    ],
)
def test_what_playbooks_will_lack(
    settings: dict[str, str], around: dict[str, Any], expected: dict[str, str]
) -> None:
    hub = a_hub(drivers={"automation": "eda"}, settings=settings)
    roles = Roles(automation=Rights(({"verbs": ["get"]},)))

    found = evaluate_prerequisites(hub, ClusterPrerequisites(**around), roles)

    told = {one.check: one.remedy for one in found if one.result == WARNED}
    assert list(told) == list(expected)
    assert all(words in told[check] for check, words in expected.items())
