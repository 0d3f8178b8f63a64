"""What a hub must be like to be registered, and what of it may change."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from boatyard.model import hub_names
from boatyard.model.caller import SHARED, Caller, CallerRole
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import Hub, HubSpec, HubStatus, Metadata
from boatyard.resources.admission_context import AdmissionContext
from boatyard.resources.hubs import settings
from boatyard.resources.hubs.rules import HubRules
from boatyard.wiring.driver_factory import load_setting_checks
from tests.support.kubeconfigs import account_token, kubeconfig, pair

NOW = datetime.now(UTC)
WORLD = AdmissionContext(now=NOW, caller=Caller(user="op", tenant=SHARED, role=CallerRole.OPERATOR))
GOOD = kubeconfig()


def a_hub(**spec: Any) -> Hub:
    return Hub(id="h", metadata=Metadata(name="h"), spec=HubSpec(**spec))


def replace_world(**fields: Any) -> AdmissionContext:
    return dataclasses.replace(WORLD, **fields)


def refused(*hubs: Hub, context: AdmissionContext = WORLD) -> dict[str, str]:
    """Path to words of what is refused; two hubs are a change from one to the other."""
    try:
        if len(hubs) == 1:
            HubRules().admit_create(hubs[0], context)
        else:
            old, new = hubs
            HubRules().admit_update(old, new, context)
    except Refused as error:
        return {one.path: str(one) for one in error.violations}
    return {}


@pytest.mark.parametrize(
    "hub, path",
    [
        pytest.param(a_hub(kubeconfig=GOOD), "", id="a Kubernetes hub"),
        pytest.param(a_hub(drivers={"dns": "sim", "platform": "local"}), "", id="an embedded hub"),
        pytest.param(a_hub(kubeconfig=GOOD, drivers={"dns": "sim"}), "", id="with drivers"),
        pytest.param(a_hub(), "spec.kubeconfig", id="neither"),
        pytest.param(a_hub(kubeconfig=b"x" * 300_000), "spec.kubeconfig", id="too long"),
        pytest.param(a_hub(kubeconfig=b"secret"), "spec.kubeconfig", id="no kubeconfig"),
        pytest.param(
            a_hub(kubeconfig=kubeconfig(user=pair(days=-0.1))), "spec.kubeconfig", id="ended"
        ),
        pytest.param(
            a_hub(kubeconfig=kubeconfig(token=account_token(ends=NOW - timedelta(minutes=1)))),
            "spec.kubeconfig",
            id="a token that has ended",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, settings={"kube.context": "y"}), "spec.kubeconfig", id="context"
        ),
        pytest.param(
            a_hub(
                kubeconfig=kubeconfig("http://127.0.0.1:8001"), settings={"kube.insecure": "true"}
            ),
            "",
            id="without TLS, and said so",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, settings={"kube.insecure": "yes"}),
            "spec.settings.kube.insecure",
            id="neither true nor false",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, namespace="Bad"), "spec.namespace", id="no namespace's name"
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, namespace="boatyard-acme"), "spec.namespace", id="a tenant's"
        ),
        pytest.param(a_hub(kubeconfig=GOOD, namespace="boatyard-system"), "", id="our own"),
        pytest.param(
            a_hub(kubeconfig=GOOD, settings={"kube.namespace": "a" * 30}),
            "spec.settings.kube.namespace",
            id="a namespace in which clusters could not be named",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, settings={"kube.namespace": "osac"}), "", id="one for all"
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, settings={"kube.operator-lease": "a/b"}),
            "spec.settings.kube.operator-lease",
            id="no Lease's name",
        ),
        pytest.param(a_hub(drivers={"dns": "simm"}), "spec.drivers.dns", id="no such driver"),
        pytest.param(a_hub(drivers={"dsn": "sim"}), "spec.drivers.dsn", id="no such port"),
        pytest.param(
            a_hub(kubeconfig=GOOD, drivers={"automation": "eda"}), "", id="with automation"
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, drivers={"automation": "edda"}),
            "spec.drivers.automation",
            id="no such automation",
        ),
        pytest.param(
            a_hub(drivers={"automation": "eda"}),
            "spec.drivers.automation",
            id="automation that an embedded hub cannot have",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD, capacity={"small": -1}), "spec.capacity.small", id="negative"
        ),
    ],
)
def test_what_can_be_registered(hub: Hub, path: str) -> None:
    assert list(refused(hub)) == ([path] if path else [])


AGENTS = {"hosted.platform": "Agent", "hosted.agent-namespace": "hosts"}
RULEBOOK = {"eda.url": "http://eda:5000", "eda.callback-url": "http://operator:8082"}


@pytest.mark.parametrize(
    "drivers, given, paths",
    [
        pytest.param({"platform": "hosted"}, AGENTS, [], id="hosted on agents"),
        pytest.param({"platform": "hosted"}, {"hosted.platform": "None"}, [], id="on nothing"),
        pytest.param({"platform": "hosted"}, {}, ["hosted.platform"], id="nobody knows on what"),
        pytest.param(
            {"platform": "hosted"},
            {"hosted.platform": "Agent"},
            ["hosted.agent-namespace"],
            id="agents from nowhere",
        ),
        pytest.param(
            {"platform": "hosted"},
            {"hosted.platform": "Nonsense", "hosted.vm.small": "large", "hosted.typo": "1"},
            ["hosted.typo", "hosted.platform", "hosted.vm.small"],
            id="all that is wrong",
        ),
        pytest.param({"automation": "eda"}, RULEBOOK, [], id="playbooks"),
        pytest.param(
            {"automation": "eda"},
            {**RULEBOOK, "eda.url": "x", "eda.per-second": "-1"},
            ["eda.url", "eda.per-second"],
            id="a rulebook that is nowhere",
        ),
        pytest.param({"platform": "sim"}, {"hosted.platform": "Nonsense"}, [], id="not asked for"),
    ],
)
def test_settings_with_which_a_driver_cannot_work_are_refused(
    drivers: dict[str, str], given: dict[str, str], paths: list[str]
) -> None:
    hub = a_hub(kubeconfig=GOOD, drivers=drivers, settings=given)
    asking = replace_world(setting_checks=load_setting_checks())
    expected = [f"spec.settings.{path}" for path in paths]

    assert list(refused(hub, context=asking)) == expected
    assert list(refused(a_hub(kubeconfig=GOOD), hub, context=asking)) == expected
    cordoned = replace(hub, spec=replace(hub.spec, cordoned=True))
    assert refused(hub, cordoned, context=asking) == {}, "what was kept is not judged again"


def test_everything_wrong_is_told_with_a_remedy() -> None:
    told = refused(a_hub(kubeconfig=b"{", namespace="Bad", drivers={"dns": "x"}))

    assert list(told) == ["spec.namespace", "spec.drivers.dns", "spec.kubeconfig"]
    assert "there is sim" in told["spec.drivers.dns"]


ENDED = kubeconfig(user=pair(days=-0.1))


@pytest.mark.parametrize(
    "old, new, path",
    [
        pytest.param(
            a_hub(kubeconfig=GOOD), a_hub(kubeconfig=kubeconfig(token="new")), "", id="renewed"
        ),
        pytest.param(
            a_hub(kubeconfig=ENDED),
            a_hub(kubeconfig=ENDED, cordoned=True),
            "",
            id="credentials that have ended do not forbid a cordon",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD), a_hub(kubeconfig=ENDED), "spec.kubeconfig", id="to ended ones"
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD), a_hub(kubeconfig=b"{"), "spec.kubeconfig", id="to bad ones"
        ),
        pytest.param(
            a_hub(kubeconfig=kubeconfig("http://hub"), settings={"kube.insecure": "true"}),
            a_hub(kubeconfig=kubeconfig("http://hub")),
            "spec.kubeconfig",
            id="no longer without TLS",
        ),
        pytest.param(
            a_hub(kubeconfig=GOOD),
            a_hub(drivers={"dns": "sim"}),
            "spec.kubeconfig",
            id="orders do not move from Kubernetes into the ledger",
        ),
        pytest.param(
            a_hub(drivers={"dns": "sim"}),
            a_hub(kubeconfig=GOOD),
            "spec.kubeconfig",
            id="nor the other way",
        ),
    ],
)
def test_what_of_a_hub_may_change(old: Hub, new: Hub, path: str) -> None:
    assert list(refused(old, new)) == ([path] if path else [])


HOSTED = {"platform": "hosted", "dns": "sim"}


@pytest.mark.parametrize(
    "old, new, path",
    [
        pytest.param(
            {"kubeconfig": GOOD},
            {"kubeconfig": GOOD, "settings": {"kube.namespace": "osac"}},
            "spec.settings.kube.namespace",
            id="to one namespace for all",
        ),
        pytest.param(
            {"kubeconfig": GOOD, "settings": {"kube.namespace": "osac"}},
            {"kubeconfig": GOOD},
            "spec.settings.kube.namespace",
            id="and back",
        ),
        pytest.param(
            {"kubeconfig": GOOD},
            {"kubeconfig": GOOD, "namespace": "ours"},
            "spec.namespace",
            id="where claims are",
        ),
        pytest.param(
            {"kubeconfig": GOOD, "drivers": HOSTED},
            {"kubeconfig": GOOD, "drivers": {**HOSTED, "platform": "sim"}},
            "spec.drivers.platform",
            id="another platform",
        ),
        pytest.param(
            {"kubeconfig": GOOD, "drivers": HOSTED},
            {"kubeconfig": GOOD},
            "spec.drivers.platform",
            id="a platform left out is the simulated one",
        ),
        pytest.param(
            {"drivers": {"platform": "sim"}},
            {"drivers": {"platform": "local"}},
            "spec.drivers.platform",
            id="of an embedded hub",
        ),
        pytest.param(
            {"kubeconfig": GOOD},
            {"kubeconfig": GOOD, "namespace": "boatyard-system", "drivers": {"dns": "sim"}},
            "",
            id="said in other words",
        ),
        pytest.param(
            {"kubeconfig": GOOD, "drivers": HOSTED},
            {
                "kubeconfig": kubeconfig(token="new"),
                "drivers": {**HOSTED, "checks": "hosted"},
                "settings": {"hosted.publish": "NodePort"},
                "zone": "lyon",
            },
            "",
            id="what moves nothing",
        ),
    ],
)
def test_what_clusters_have_stays_where_it_is(
    old: dict[str, Any], new: dict[str, Any], path: str
) -> None:
    used = HubStatus(used={"bm-small": 2, "clusters": 1})
    before, after = a_hub(**old), a_hub(**new)

    told = refused(replace(before, status=used), replace(after, status=used))

    assert list(told) == ([path] if path else [])
    assert all("register another hub" in words for words in told.values())
    assert refused(before, after) == {}, "a hub with nothing on it may be made another"
    assert HubRules().fields_fixed_in_use(before, after) == path


def test_a_kubernetes_hub_has_a_namespace_of_ours_unless_it_names_one() -> None:
    assert HubRules().fill_defaults(a_hub(kubeconfig=GOOD)).spec.namespace == "boatyard-system"
    assert (
        HubRules().fill_defaults(a_hub(kubeconfig=GOOD, namespace="ours")).spec.namespace == "ours"
    )
    assert HubRules().fill_defaults(a_hub(drivers={"dns": "sim"})).spec.namespace == ""


def test_the_names_are_those_of_the_objects_on_the_hub() -> None:
    """The rules are pure and so cannot ask."""
    assert settings.SYSTEM_NAMESPACE == hub_names.SYSTEM_NAMESPACE
    assert settings.LONGEST_ORDERS_NAMESPACE == hub_names.LONGEST_ORDER_NAMESPACE
    assert hub_names.tenant_namespace("acme").startswith("boatyard-")
