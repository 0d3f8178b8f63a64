"""What templates and hubs may say about hosted clusters, and what is refused before anything is made."""

from __future__ import annotations

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.config import KubeConfig
from boatyard.model.errors import Refused
from boatyard.platforms.drivers.hosted.driver import HostedPlatform
from boatyard.platforms.drivers.hosted.settings import (
    VmSize,
    check_hub,
    resolve_settings,
    select_hosted_settings,
    to_canonical_duration,
    to_canonical_quantity,
)

NONE = {"hosted.platform": "None"}
AGENT = {"hosted.platform": "Agent", "hosted.agent-namespace": "hosts"}
KUBEVIRT = {"hosted.platform": "KubeVirt"}
SIZE = "cores=4,memory=16Gi,disk=64Gi"


def test_a_template_wins_over_its_hub() -> None:
    hub = {**NONE, "hosted.publish": "NodePort", "hosted.availability": "SingleReplica"}
    choice = resolve_settings({"hosted.publish": "Route"}, hub)
    assert (choice.publish, choice.availability) == ("Route", "SingleReplica")


def test_defaults_are_those_of_the_docs() -> None:
    choice = resolve_settings(NONE, {})
    assert choice.publish == "LoadBalancer"
    assert choice.network_type == "OVNKubernetes"
    assert choice.availability == "HighlyAvailable"
    assert choice.infra_availability == "SingleReplica"
    assert (choice.etcd_size, choice.fips, choice.drain_timeout) == ("8Gi", False, "15m0s")


@pytest.mark.parametrize(
    "template, upgrade, repair",
    [
        pytest.param(AGENT, "InPlace", False, id="a host is not thrown away"),
        pytest.param(NONE, "InPlace", False, id="nor one that joined by itself"),
        pytest.param(KUBEVIRT, "Replace", True, id="a virtual machine is made anew"),
        pytest.param(
            {**KUBEVIRT, "hosted.upgrade-type": "InPlace", "hosted.auto-repair": "false"},
            "InPlace",
            False,
            id="unless somebody says otherwise",
        ),
    ],
)
def test_how_nodes_are_updated_and_repaired(
    template: dict[str, str], upgrade: str, repair: bool
) -> None:
    choice = resolve_settings(template, {})
    assert (choice.upgrade_type, choice.auto_repair) == (upgrade, repair)


def test_a_hub_that_is_set_up_otherwise_does_not_change_its_clusters() -> None:
    kept = resolve_settings(NONE, {}).immutable
    hub = {"hosted.publish": "NodePort", "hosted.etcd-storage-class": "fast"}
    choice = resolve_settings(NONE, {**hub, "hosted.drain-timeout": "1h"}, kept)
    assert (choice.publish, choice.etcd_storage_class) == ("LoadBalancer", "")
    assert choice.drain_timeout == "1h0m0s", "this one may change"


@pytest.mark.parametrize(
    "template, passes",
    [(KUBEVIRT, True), (NONE, False)],
    ids=["virtual machines", "any other platform"],
)
def test_a_domain_passes_through_to_virtual_machines_only(
    template: dict[str, str], passes: bool
) -> None:
    assert (
        resolve_settings({**template, "hosted.base-domain-passthrough": "true"}, {}).passthrough
        is passes
    )
    assert not resolve_settings(template, {}).passthrough


def test_only_what_cannot_be_changed_later_is_kept() -> None:
    kept = resolve_settings(NONE, {"hosted.drain-timeout": "1h"}).immutable
    assert "hosted.platform" in kept
    assert "hosted.drain-timeout" not in kept


def test_a_template_that_says_otherwise_is_heard() -> None:
    choice = resolve_settings({"hosted.publish": "Route"}, {}, resolve_settings(NONE, {}).immutable)
    assert (choice.platform, choice.publish) == ("None", "Route")


@pytest.mark.parametrize(
    "template, hub, field",
    [
        pytest.param({}, {}, "hosted.platform", id="no platform"),
        pytest.param({"hosted.platform": "AWS"}, {}, "hosted.platform", id="another's platform"),
        pytest.param(
            {"hosted.platform": "Agent"}, {}, "hosted.agent-namespace", id="hosts from nowhere"
        ),
        pytest.param({**NONE, "hosted.publsih": "Route"}, {}, "hosted.publsih", id="a slip"),
        pytest.param(NONE, {"hosted.flips": "true"}, "hosted.flips", id="a slip of the hub"),
        pytest.param({**NONE, "hosted.fips": "yes"}, {}, "hosted.fips", id="yes is not true"),
        pytest.param({**NONE, "hosted.etcd-size": "8"}, {}, "hosted.etcd-size", id="no unit"),
        pytest.param(
            {**NONE, "hosted.drain-timeout": "15"}, {}, "hosted.drain-timeout", id="no unit of time"
        ),
        pytest.param(
            {**NONE, "hosted.route-domain": "nodots"}, {}, "hosted.route-domain", id="no domain"
        ),
        pytest.param(
            {**NONE, "hosted.release-image": "registry.invalid/release"},
            {},
            "hosted.release-image",
            id="one image for all versions",
        ),
        pytest.param(
            {**NONE, "hosted.pull-secret": "no-namespace"},
            {},
            "hosted.pull-secret",
            id="half a name",
        ),
        pytest.param(
            {**NONE, "hosted.pull-secret": "/name"}, {}, "hosted.pull-secret", id="the other half"
        ),
        pytest.param(
            {**KUBEVIRT, "hosted.vm.small": "cores=4"}, {}, "hosted.vm.small", id="half a size"
        ),
        pytest.param(
            KUBEVIRT,
            {"hosted.vm.small": "cores=0,memory=1Gi,disk=1Gi"},
            "hosted.vm.small",
            id="no cores",
        ),
        pytest.param(
            KUBEVIRT,
            {"hosted.vm.small": "cores=1,memory=much,disk=1Gi"},
            "hosted.vm.small",
            id="no memory",
        ),
        pytest.param(
            KUBEVIRT,
            {"hosted.vm.small": "cores=1,memory=1Gi,disk=large"},
            "hosted.vm.small",
            id="no disk",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_name(
    template: dict[str, str], hub: dict[str, str], field: str
) -> None:
    with pytest.raises(Refused) as caught:
        resolve_settings(template, hub)
    assert caught.value.reason == "BadSettings"
    assert field in {violation.path for violation in caught.value.violations}
    assert all(violation.remedy for violation in caught.value.violations)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Refused) as caught:
        resolve_settings({"hosted.platform": "AWS", "hosted.fips": "yes", "hosted.x": "1"}, {})
    assert len(caught.value.violations) == 3


def test_a_hub_is_judged_before_there_is_an_order() -> None:
    check_hub({"hosted.publish": "Route", "hosted.vm.small": SIZE, "kube.namespace": "x"})
    with pytest.raises(Refused) as caught:
        check_hub({"hosted.publish": "Pigeon", "hosted.vm.small": "4", "hosted.typo": "1"})
    assert {violation.path for violation in caught.value.violations} == {
        "hosted.publish",
        "hosted.vm.small",
        "hosted.typo",
    }


@pytest.mark.parametrize(
    "host_type, expected",
    [
        pytest.param("small", VmSize(4, "16Gi", "64Gi"), id="its own"),
        pytest.param("other", VmSize(2, "8Gi", "32Gi"), id="any other has the default"),
    ],
)
def test_a_host_type_is_a_size_of_virtual_machines(host_type: str, expected: VmSize) -> None:
    hub = {"hosted.vm.small": "cores=1,memory=1Gi,disk=1Gi"}
    default = {"hosted.vm.default": "cores=2,memory=8Gi,disk=32Gi"}
    choice = resolve_settings({**KUBEVIRT, "hosted.vm.small": SIZE}, {**hub, **default})
    assert choice.vm_size(host_type) == expected


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("8Gi", "8Gi"),
        ("1024Mi", "1Gi"),
        ("2048Gi", "2Ti"),
        ("1536Mi", "1536Mi"),
        ("1000M", "1G"),
        ("1048576Mi", "1Ti"),
    ],
)
def test_quantities_are_written_as_kubernetes_writes_them(text: str, canonical: str) -> None:
    assert to_canonical_quantity(text) == canonical


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("15m", "15m0s"),
        ("1h", "1h0m0s"),
        ("90s", "1m30s"),
        ("90m", "1h30m0s"),
        ("45s", "45s"),
        ("500ms", "500ms"),
        ("1s500ms", "1.5s"),
        ("1000ms", "1s"),
        ("0s", "0s"),
    ],
)
def test_so_are_times(text: str, canonical: str) -> None:
    assert to_canonical_duration(text) == canonical


def test_a_host_type_without_a_size_is_refused_by_name() -> None:
    with pytest.raises(Refused) as caught:
        resolve_settings(KUBEVIRT, {"hosted.vm.small": SIZE}).vm_size("gpu")
    assert caught.value.violations[0].path == "hosted.vm.gpu"
    assert caught.value.reason == "NoVmSize"
    with pytest.raises(Refused) as caught:
        resolve_settings(KUBEVIRT, {}).vm_size("")
    assert caught.value.violations[0].path == "hosted.vm.default"


def test_of_a_template_only_what_is_about_hosting_is_remembered() -> None:
    assert select_hosted_settings({**NONE, "control_planes": "3"}) == NONE


@pytest.mark.parametrize(
    "template, hub, needed",
    [
        ({}, "Agent", True),
        ({}, "None", True),
        ({}, "KubeVirt", False),
        ({"hosted.platform": "KubeVirt"}, "Agent", False),
        ({"hosted.platform": "Agent"}, "KubeVirt", True),
        ({"platform": "KubeVirt"}, "Agent", True),
    ],
)
def test_whose_nodes_stand_on_hosts(template: dict[str, str], hub: str, needed: bool) -> None:
    client = KubeClient(KubeConfig("http://127.0.0.1:9"))
    driver = HostedPlatform(client, {"hosted.platform": hub}, "hub-1")
    assert driver.needs_hosts(template) is needed
