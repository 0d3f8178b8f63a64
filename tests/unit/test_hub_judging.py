"""From what is seen of a hub to what is said of it: rights, versions, failures, conditions, patience."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from boatyard.kube.circuit_breaker import FAILING_REASON
from boatyard.model.errors import BoatyardError, Refused, Unavailable
from boatyard.model.generated.osac import (
    ConditionStatus,
    Hub,
    HubCondition,
    HubConditionType,
    HubSpec,
    HubState,
    HubStatus,
    Metadata,
)
from boatyard.resources.hubs.check.evaluate import (
    evaluate_failure,
    evaluate_snapshot,
    format_settings,
    is_circuit_open,
)
from boatyard.resources.hubs.check.model import (
    FAILED,
    PASSED,
    WARNED,
    ClusterPrerequisites,
    HubCheckFinding,
    HubSnapshot,
    Need,
    OperatorLease,
    Rights,
    Roles,
)
from boatyard.resources.hubs.check.report import (
    KUBERNETES_CONDITIONS,
    compute_state,
    make_conditions,
    make_report,
)
from boatyard.resources.hubs.check.requirements import is_granted, list_needed_crds, list_needs
from boatyard.resources.hubs.reconciler import (
    CHECK_INTERVAL_SECONDS,
    SHORTEST_INTERVAL_SECONDS,
    compute_check_pause,
)
from tests.support.kubeconfigs import kubeconfig

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SERVED = frozenset(
    {
        ("osac.openshift.io/v1alpha1", "clusterorders"),
        ("boatyard.io/v1", "claims"),
        ("boatyard.io/v1", "leftovers"),
    }
)
ROLES = Roles(
    service=Rights(({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]},)),
    system=Rights(({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},)),
    operator=Rights(({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},)),
)
ALL = Rights(({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},))


def a_hub(**spec: Any) -> Hub:
    spec.setdefault("kubeconfig", kubeconfig())
    return Hub(id="one", metadata=Metadata(name="one"), spec=HubSpec(**spec))


def a_look(hub: Hub | None = None, **fields: Any) -> HubSnapshot:
    """Of a hub that lacks nothing."""
    good: dict[str, Any] = {
        "server": "https://hub.example",
        "response_seconds": 0.1,
        "version": "v1.36.3",
        "user": "service",
        "hub_time": NOW,
        "cluster_rights": ALL,
        "system_rights": ALL,
        "served_resources": SERVED,
        "has_namespace": True,
        "settings": {"data": {"hub.json": format_settings(hub or a_hub())}},
        "lease": OperatorLease("operator-1", NOW - timedelta(seconds=3), 15),
    }
    return HubSnapshot(**{**good, **fields})


def said(hub: Hub | None = None, **fields: Any) -> dict[str, tuple[Any, str]]:
    """Check to result and reason, of what is not well."""
    hub = hub or a_hub()
    found = evaluate_snapshot(hub, a_look(hub, **fields), ROLES, NOW)
    return {one.check: (one.result, one.reason) for one in found if one.result != PASSED}


def test_a_hub_that_lacks_nothing() -> None:
    assert said() == {}


def test_of_another_cluster_only_that_is_said() -> None:
    """What it lacks is nobody's business: it is not the hub."""
    hub = msgspec.structs.replace(a_hub(), status=HubStatus(cluster_uid="first"))

    assert said(hub, cluster_uid="first") == {}
    assert said(hub, cluster_uid="") == {}, "we may not see who it is"
    (finding,) = evaluate_snapshot(
        hub, a_look(hub, cluster_uid="second", version="v1.1"), ROLES, NOW
    )
    assert (finding.result, finding.reason) == (FAILED, "OtherCluster")
    assert "register this one as another hub" in finding.remedy


@pytest.mark.parametrize(
    "fields, expected",
    [
        pytest.param({"version": "v1.29.9"}, {"version": (FAILED, "TooOld")}, id="too old"),
        pytest.param({"version": "v1.30.0-rc.1+x"}, {}, id="the oldest that will do"),
        pytest.param({"version": "v2.0.0"}, {}, id="a newer major"),
        pytest.param({"version": "next"}, {"version": (WARNED, "UnknownVersion")}, id="unknown"),
        pytest.param({"version": ""}, {"version": (WARNED, "UnknownVersion")}, id="not told"),
        pytest.param(
            {"served_resources": SERVED - {("boatyard.io/v1", "claims")}},
            {"crd claims.boatyard.io": (FAILED, "CrdMissing")},
            id="a CRD of ours",
        ),
        pytest.param(
            {
                "prerequisites": ClusterPrerequisites(
                    operator_missing_rights={}, outdated_crds={"claims.boatyard.io": True}
                )
            },
            {"crd claims.boatyard.io": (WARNED, "CrdOutdated")},
            id="an older CRD of ours",
        ),
        pytest.param(
            {"cluster_rights": Rights()}, {"rights": (FAILED, "RightsMissing")}, id="rights"
        ),
        pytest.param(
            {"system_rights": Rights()}, {"rights": (FAILED, "RightsMissing")}, id="at home"
        ),
        pytest.param(
            {
                "cluster_rights": Rights(incomplete=True),
                "confirmed_needs": frozenset(
                    {Need("", "secrets", "get"), Need("", "secrets", "create")}
                ),
            },
            {},
            id="rights that no rule names but the hub confirms",
        ),
        pytest.param(
            {"has_namespace": False}, {"settings": (FAILED, "NoNamespace")}, id="namespace"
        ),
        pytest.param({"settings": None}, {"settings": (FAILED, "NoSettings")}, id="settings"),
        pytest.param(
            {"settings": {"data": {"hub.json": '{"id": "two"}'}}},
            {"settings": (FAILED, "OtherHub")},
            id="another hub's settings",
        ),
        pytest.param(
            {"settings": {"data": {"hub.json": "?"}}},
            {"settings": (WARNED, "OldSettings")},
            id="settings that are none",
        ),
        pytest.param({"lease": None}, {"operator": (FAILED, "NoOperator")}, id="no operator yet"),
        pytest.param(
            {"lease": OperatorLease("a", NOW - timedelta(seconds=46), 15)},
            {"operator": (FAILED, "NoOperator")},
            id="an operator that is silent too long",
        ),
        pytest.param(
            {"lease": OperatorLease("a", NOW - timedelta(seconds=44), 15)},
            {},
            id="another takes over",
        ),
        pytest.param(
            {
                "hub_time": NOW - timedelta(hours=1),
                "lease": OperatorLease("a", NOW - timedelta(hours=1), 15),
            },
            {"clock": (WARNED, "")},
            id="the operator is judged by the hub's clock",
        ),
        pytest.param({"hub_time": NOW + timedelta(seconds=5)}, {}, id="clocks that nearly agree"),
    ],
)
def test_what_is_said(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert said(**fields) == expected


HOSTED = {"platform": "hosted"}


@pytest.mark.parametrize(
    "drivers, settings, names",
    [
        pytest.param({"platform": "sim"}, {}, [], id="not hosted"),
        pytest.param(HOSTED, {}, ["hostedclusters", "nodepools"], id="hosted"),
        pytest.param(
            HOSTED,
            {"hosted.platform": "Agent"},
            ["hostedclusters", "nodepools", "agents"],
            id="on agents",
        ),
        pytest.param(
            HOSTED,
            {"hosted.platform": "KubeVirt"},
            ["hostedclusters", "nodepools", "virtualmachines"],
            id="on KubeVirt",
        ),
    ],
)
def test_the_drivers_say_which_crds_are_needed(
    drivers: dict[str, str], settings: dict[str, str], names: list[str]
) -> None:
    found = [crd.plural for crd in list_needed_crds(a_hub(drivers=drivers, settings=settings))]

    assert found == ["clusterorders", "claims", "leftovers", *names]


@pytest.mark.parametrize(
    "rule, granted",
    [
        pytest.param({"resources": ["secrets"]}, True, id="the resource itself"),
        pytest.param({"resources": ["*"]}, True, id="all resources"),
        pytest.param({"resources": ["pods"]}, False, id="another resource"),
        pytest.param({"resources": ["secrets/status"]}, False, id="only a part of it"),
        pytest.param({"resources": ["secrets"], "apiGroups": ["*"]}, True, id="all groups"),
        pytest.param({"resources": ["secrets"], "apiGroups": ["x.io"]}, False, id="another group"),
        pytest.param({"resources": ["secrets"], "verbs": ["list"]}, False, id="another verb"),
        pytest.param({"resources": ["secrets"], "resourceNames": ["a"]}, False, id="one only"),
        pytest.param({"nonResourceURLs": ["*"], "resources": None}, False, id="paths only"),
    ],
)
def test_what_a_rule_grants(rule: dict[str, Any], granted: bool) -> None:
    whole = {"apiGroups": [""], "verbs": ["get"], **rule}

    assert is_granted(Need("", "secrets", "get"), Rights((whole,))) is granted


def test_parts_of_resources_and_single_objects_are_granted_by_themselves() -> None:
    rules = Rights(
        (
            {"apiGroups": ["x"], "resources": ["*/status"], "verbs": ["patch"]},
            {"apiGroups": ["x"], "resources": ["a"], "verbs": ["get"], "resourceNames": ["n"]},
        )
    )

    assert is_granted(Need("x", "a/status", "patch"), rules)
    assert not is_granted(Need("x", "a/scale", "patch"), rules)
    assert is_granted(Need("x", "a", "get", "n"), rules)
    assert list(list_needs(Rights(rules.rules[1:]))) == [Need("x", "a", "get", "n")]


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, check, condition",
    [
        pytest.param(
            Unavailable("GET /version: gone", reason="Unreachable"),
            "reachable",
            HubConditionType.REACHABLE,
            id="nobody there",
        ),
        pytest.param(
            Unavailable("POST /x: late", reason="Timeout"),
            "reachable",
            HubConditionType.REACHABLE,
            id="too late",
        ),
        pytest.param(
            Unavailable("bad", reason="BadKubeconfig"),
            "credentials",
            HubConditionType.AUTHORIZED,
            id="a kubeconfig that cannot be used",
        ),
        pytest.param(
            Refused("GET /version: Unauthorized", reason="Unauthorized"),
            "credentials",
            HubConditionType.AUTHORIZED,
            id="unknown there",
        ),
        pytest.param(
            Refused("POST /x: forbidden", reason="Forbidden"),
            "credentials",
            HubConditionType.AUTHORIZED,
            id="known, and allowed nothing",
        ),
    ],
)
def test_why_a_hub_was_not_seen(
    error: BoatyardError, check: str, condition: HubConditionType
) -> None:
    (failed,) = [one for one in evaluate_failure(a_hub(), error) if one.result == FAILED]

    assert (failed.check, failed.condition) == (check, condition)
    assert failed.remedy
    assert not failed.message.startswith(("GET", "POST"))


def test_what_was_kept_back_is_told_apart() -> None:
    assert is_circuit_open(Unavailable("x", reason=FAILING_REASON))
    assert not is_circuit_open(Unavailable("x"))


# --- conditions and patience -------------------------------------------------------------------

LOST = [HubCheckFinding("reachable", FAILED, "gone", "wait", "Gone", HubConditionType.REACHABLE)]


def test_a_condition_keeps_its_time_while_it_stays_as_it_is() -> None:
    hub = a_hub()
    first = make_conditions(hub, LOST, KUBERNETES_CONDITIONS, NOW)
    hub = msgspec.structs.replace(hub, status=HubStatus(conditions=first))
    later = make_conditions(hub, LOST, KUBERNETES_CONDITIONS, NOW + timedelta(hours=1))
    well = evaluate_snapshot(a_hub(), a_look(), ROLES, NOW)
    back = make_conditions(hub, well, KUBERNETES_CONDITIONS, NOW + timedelta(hours=2))

    assert later == first
    assert [one.status for one in first] == [
        ConditionStatus.FALSE,
        *[ConditionStatus.UNSPECIFIED] * 4,
    ]
    assert {one.status for one in back} == {ConditionStatus.TRUE}
    assert {one.last_transition_time for one in back} == {NOW + timedelta(hours=2)}


def test_the_state_is_that_of_the_first_thing_to_mend() -> None:
    lacking = HubCheckFinding("x", FAILED, "lacks x", "y", "X", HubConditionType.PREPARED)

    assert compute_state(LOST) == (HubState.UNREACHABLE, "gone")
    assert compute_state([lacking, *LOST]) == (HubState.NOT_READY, "lacks x")
    assert compute_state([HubCheckFinding("x", WARNED, "careful")]) == (HubState.READY, "")
    assert not make_report(a_hub(), "v1", [lacking]).ready
    assert make_report(a_hub(), "v1", [HubCheckFinding("x", WARNED, "careful")]).ready


@pytest.mark.parametrize(
    "seconds, pause",
    [
        pytest.param(0, SHORTEST_INTERVAL_SECONDS, id="at first soon"),
        pytest.param(10, 5, id="then half as long as it has lasted"),
        pytest.param(3600, CHECK_INTERVAL_SECONDS, id="never more seldom than a good hub"),
    ],
)
def test_patience_with_a_hub_that_is_not_well(seconds: float, pause: float) -> None:
    status = HubStatus(
        conditions=(
            HubCondition(
                type=HubConditionType.REACHABLE,
                status=ConditionStatus.FALSE,
                last_transition_time=NOW - timedelta(seconds=seconds),
            ),
        )
    )
    hub = msgspec.structs.replace(a_hub(), status=status)

    assert compute_check_pause(hub, NOW) == timedelta(seconds=pause)
    assert compute_check_pause(a_hub(), NOW) == timedelta(seconds=CHECK_INTERVAL_SECONDS)
