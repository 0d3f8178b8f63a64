"""What HyperShift's CRDs let pass is found before anything is written: every fault is planted here."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from boatyard.model.errors import Refused
from boatyard.platforms.drivers.hosted import validation
from tests.support.kube_hub.hosted_values import PLACE, cluster, pool, wish

Manifest = dict[str, Any]
Spoil = Callable[[Manifest], object]
PLATFORMS = ("Agent", "KubeVirt", "None")


def spec(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]
    return found


def services(manifest: Manifest, change: Callable[[int], Manifest]) -> None:
    for number, one in enumerate(spec(manifest)["services"]):
        one["servicePublishingStrategy"] = change(number)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_we_write_is_in_order(platform: str) -> None:
    validation.check_cluster(cluster(platform))
    validation.check_pool(pool(platform), cluster(platform))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda m: services(
                m, lambda n: {"type": "Route", "route": {"hostname": f"s{n}.example"}}
            ),
            id="a host name for each service",
        ),
        pytest.param(
            lambda m: services(m, lambda n: {"type": "NodePort", "nodePort": {"address": "a"}}),
            id="ports that are found by themselves",
        ),
        pytest.param(
            lambda m: services(
                m, lambda n: {"type": "NodePort", "nodePort": {"address": "a", "port": 30000 + n}}
            ),
            id="a port for each service",
        ),
        pytest.param(
            lambda m: spec(m)["networking"].update(machineNetwork=[{"cidr": "fd00::/64"}]),
            id="networks of both families",
        ),
        pytest.param(lambda m: spec(m)["networking"].clear(), id="networks left to HyperShift"),
        pytest.param(
            lambda m: spec(m).update(secretEncryption={"type": "aescbc", "aescbc": {"a": 1}}),
            id="encryption with its key",
        ),
        pytest.param(lambda m: spec(m)["release"].update(image="ab"), id="an image of two letters"),
        pytest.param(
            lambda m: m["metadata"].update(namespace="n" * 46), id="just room for the control plane"
        ),
    ],
)
def test_what_is_in_order_passes(change: Spoil) -> None:
    manifest = cluster()
    change(manifest)
    validation.check_cluster(manifest)


@pytest.mark.parametrize(
    "platform, spoil, field",
    [
        pytest.param(
            "Agent",
            lambda m: spec(m)["platform"].pop("agent"),
            "hosted.agent-namespace",
            id="Agent without its hosts",
        ),
        pytest.param(
            "KubeVirt",
            lambda m: spec(m)["platform"].pop("kubevirt"),
            "spec.platform.kubevirt",
            id="KubeVirt without its part",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["platform"].update(type="AWS"),
            "hosted.platform",
            id="a platform we do not host",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["networking"].update(serviceNetwork=[{"cidr": "10.130.0.0/16"}]),
            "pod_cidr",
            id="pods and services share addresses",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["networking"].update(machineNetwork=[{"cidr": "172.30.1.0/24"}]),
            "service_cidr",
            id="services and machines share addresses",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["networking"].update(clusterNetwork=[{"cidr": "10.128.0.1/14"}]),
            "pod_cidr",
            id="an address that is no network",
        ),
        pytest.param(
            "None",
            lambda m: services(m, lambda n: {"type": "Route", "route": {"hostname": "a.example"}}),
            "hosted.route-domain",
            id="four services at one host name",
        ),
        pytest.param(
            "None",
            lambda m: services(
                m, lambda n: {"type": "NodePort", "nodePort": {"address": "a", "port": 30000}}
            ),
            "hosted.publish-address",
            id="four services at one port",
        ),
        pytest.param(
            "None",
            lambda m: [one.update(service="APIServer") for one in spec(m)["services"]],
            "hosted.publish",
            id="one service four times",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["services"].pop(),
            "hosted.publish",
            id="three services",
        ),
        pytest.param(
            "None",
            lambda m: m["metadata"].update(name="n" * 64),
            "metadata.name",
            id="a name longer than a label",
        ),
        pytest.param(
            "None",
            lambda m: m["metadata"].update(namespace="n" * 47),
            "metadata.namespace",
            id="no room for the control plane's namespace",
        ),
        pytest.param(
            "None",
            lambda m: spec(m).update(secretEncryption={"type": "aescbc"}),
            "spec.secretEncryption.aescbc",
            id="encryption without a key",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["release"].update(image="x"),
            "release_image",
            id="an image of one letter",
        ),
        pytest.param(
            "None",
            lambda m: spec(m)["release"].update(image="a b"),
            "release_image",
            id="an image with a space",
        ),
    ],
)
def test_a_fault_in_a_cluster_is_refused_with_field_and_remedy(
    platform: str, spoil: Spoil, field: str
) -> None:
    manifest = cluster(platform)
    spoil(manifest)
    with pytest.raises(Refused) as caught:
        validation.check_cluster(manifest)
    assert field in {violation.path for violation in caught.value.violations}
    assert all(violation.remedy for violation in caught.value.violations)


@pytest.mark.parametrize(
    "platform, spoil, field",
    [
        pytest.param(
            "None",
            lambda m: spec(m).update(clusterName="another"),
            "spec.clusterName",
            id="of a missing cluster",
        ),
        pytest.param(
            "None",
            lambda m: m["metadata"].update(namespace="elsewhere"),
            "spec.clusterName",
            id="in another namespace than its cluster",
        ),
        pytest.param(
            "KubeVirt",
            lambda m: spec(m)["platform"].update(kubevirt={}),
            "spec.platform.kubevirt",
            id="virtual machines without a size",
        ),
        pytest.param(
            "Agent",
            lambda m: spec(m)["platform"].update(agent={}),
            "spec.platform.agent.agentLabelSelector",
            id="it would take any host",
        ),
        pytest.param(
            "Agent",
            lambda m: spec(m)["platform"].update(type="None"),
            "hosted.platform",
            id="on another platform than its cluster",
        ),
        pytest.param(
            "None", lambda m: m["metadata"].update(name="n" * 64), "node_set", id="too long a name"
        ),
        pytest.param(
            "None",
            lambda m: spec(m).update(replicas=1, autoScaling={"min": 1, "max": 2}),
            "spec.replicas",
            id="a number and a range",
        ),
        pytest.param(
            "None", lambda m: spec(m)["release"].update(image=""), "release_image", id="no image"
        ),
    ],
)
def test_a_fault_in_a_node_pool_is_refused_with_field_and_remedy(
    platform: str, spoil: Spoil, field: str
) -> None:
    manifest = pool(platform)
    spoil(manifest)
    with pytest.raises(Refused) as caught:
        validation.check_pool(manifest, cluster(platform))
    assert field in {violation.path for violation in caught.value.violations}
    assert all(violation.remedy for violation in caught.value.violations)


@pytest.mark.parametrize("text", ["{}", '{"auths":{}}', '{"auths":{"registry":{"auth":"x"}}}'])
def test_a_pull_secret(text: str) -> None:
    validation.check_pull_secret(text)


@pytest.mark.parametrize("text", ["", "secret-word", "[]", '{"auths":[]}', '"secret-word"'])
def test_what_is_no_pull_secret_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(Refused) as caught:
        validation.check_pull_secret(text)
    assert caught.value.violations[0].path == "pull_secret"
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize(
    "change, field",
    [
        pytest.param({"pod_cidr": "10.160.0.0/14"}, "pod_cidr", id="its pods' network"),
        pytest.param({"service_cidr": "172.29.0.0/16"}, "service_cidr", id="its services'"),
        pytest.param({"machine_cidr": "10.9.0.0/24"}, "machine_cidr", id="its machines'"),
        pytest.param({"ingress_name": "*.apps.two.example"}, "ingress_name", id="its domain"),
        pytest.param(
            {"settings": {"hosted.platform": "KubeVirt"}}, "hosted.platform", id="its platform"
        ),
        pytest.param(
            {"settings": {"hosted.platform": "Agent", "hosted.agent-namespace": "others"}},
            "hosted.agent-namespace",
            id="where its hosts are",
        ),
        pytest.param(
            {"settings": {"hosted.publish": "NodePort"}}, "hosted.publish", id="its publishing"
        ),
        pytest.param(
            {"settings": {"hosted.network-type": "Calico"}}, "hosted.network-type", id="its SDN"
        ),
        pytest.param({"settings": {"hosted.fips": "true"}}, "hosted.fips", id="its cryptography"),
        pytest.param(
            {"settings": {"hosted.availability": "SingleReplica"}},
            "hosted.availability",
            id="its availability",
        ),
        pytest.param(
            {"settings": {"hosted.infra-availability": "HighlyAvailable"}},
            "hosted.infra-availability",
            id="its services' availability",
        ),
        pytest.param({"settings": {"hosted.etcd-size": "16Gi"}}, "hosted.etcd-size", id="its etcd"),
    ],
)
def test_what_a_cluster_keeps_for_life_is_refused(change: dict[str, Any], field: str) -> None:
    existing = cluster("Agent")
    before = wish("Agent")
    if "settings" in change:
        change = {"settings": {**before.settings, **change["settings"]}}
    with pytest.raises(Refused) as caught:
        validation.check_unchanged(existing, cluster(wanted=replace(before, **change)))
    assert caught.value.reason == "NotChangeable"
    assert field in {violation.path for violation in caught.value.violations}


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda m: spec(m).pop("dns"), id="its domain"),
        pytest.param(lambda m: spec(m).pop("services"), id="all its services"),
        pytest.param(lambda m: spec(m)["services"].pop(), id="one of its services"),
        pytest.param(lambda m: m.pop("spec"), id="everything"),
    ],
)
def test_a_cluster_that_has_lost_something_is_not_given_another(lose: Spoil) -> None:
    existing = cluster()
    lose(existing)
    with pytest.raises(Refused):
        validation.check_unchanged(existing, cluster())


@pytest.mark.parametrize("name", ["clusterID", "infraID"])
def test_a_cluster_keeps_its_identity(name: str) -> None:
    existing = cluster()
    existing["spec"][name] = "another"
    with pytest.raises(Refused):
        validation.check_unchanged(existing, cluster())


def test_what_may_change_and_what_hypershift_filled_in_is_no_change() -> None:
    existing = copy.deepcopy(cluster())
    existing["spec"]["issuerURL"] = "https://kubernetes.default.svc"
    volume = existing["spec"]["etcd"]["managed"]["storage"]["persistentVolume"]
    volume["storageClassName"] = "the hub's own"
    existing["spec"]["services"][1]["servicePublishingStrategy"]["route"] = {"hostname": "filled"}
    newer = wish(version="4.17.2", ssh_public_key="another", pull_secret="{}")
    validation.check_unchanged(existing, cluster(wanted=newer))


def test_the_place_is_what_it_says() -> None:
    assert PLACE.control_plane_namespace == f"{PLACE.namespace}-{PLACE.order}"
    assert len(PLACE.control_plane_namespace) <= 63
