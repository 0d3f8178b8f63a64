"""What a cluster is on the hub: names, marks and fields as others expect them."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.platforms.drivers.hosted import cluster_manifests
from boatyard.platforms.drivers.hosted.kinds import HOSTED_CLUSTERS
from boatyard.platforms.drivers.hosted.settings import resolve_settings
from tests.support.kube_hub.hosted_values import (
    CLUSTER_ID,
    ORDER,
    PLACE,
    SETTINGS,
    cluster,
    image_of,
    pool,
    wish,
)


def with_settings(**settings: str) -> dict[str, Any]:
    named = {f"hosted.{name.replace('_', '-')}": value for name, value in settings.items()}
    return cluster(wanted=wish(settings={"hosted.platform": "None", **named}))


def test_every_object_carries_the_key_whole_and_as_a_label() -> None:
    ground = [one.manifest for one in cluster_manifests.render_prerequisites(PLACE)]
    secret = cluster_manifests.render_pull_secret(PLACE, "pull", "{}").manifest
    for manifest in (*ground, secret, cluster(), pool()):
        about = manifest["metadata"]
        assert about["annotations"][hub_names.KEY] == PLACE.key
        assert about["annotations"][hub_names.CLUSTER] == CLUSTER_ID
        assert about["annotations"][hub_names.TENANT] == "acme"
        assert about["labels"][hub_names.KEY] == hub_names.label_value(PLACE.key)
        assert about["labels"][hub_names.ORDER] == ORDER
        assert about["labels"][hub_names.ORDER_UUID] == CLUSTER_ID
        assert about["labels"][hub_names.HUB] == "hub-1"


def test_a_cluster_has_a_ground_of_its_own() -> None:
    namespace, account, admin, access, policy = (
        one.manifest for one in cluster_manifests.render_prerequisites(PLACE)
    )
    assert namespace["metadata"]["name"] == f"boatyard-acme-{ORDER}"
    assert "namespace" not in namespace["metadata"]
    assert account["metadata"]["name"] == "osac"
    assert (admin["metadata"]["name"], admin["roleRef"]["name"]) == ("osac", "admin")
    assert admin["subjects"][0]["name"] == "osac"
    assert access["metadata"]["name"] == "hub-access"
    assert access["roleRef"]["name"] == "boatyard-hub-access"
    assert access["subjects"] == [
        {"kind": "ServiceAccount", "name": "hub-access", "namespace": "boatyard-acme"}
    ]
    assert policy["metadata"]["name"] == "boatyard"
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}], "nobody from elsewhere"


def test_names_are_those_that_existing_tools_know() -> None:
    manifest = cluster()
    assert manifest["metadata"]["name"] == ORDER
    assert manifest["metadata"]["namespace"] == PLACE.namespace
    assert manifest["spec"]["pullSecret"] == {"name": f"pullsecret-cluster-{ORDER}"}
    assert manifest["spec"]["sshKey"] == {"name": f"sshkey-cluster-{ORDER}"}
    assert pool()["metadata"]["name"] == f"nodepool-{ORDER}-compute"


def test_a_wish_becomes_a_spec() -> None:
    spec = cluster()["spec"]
    assert spec["release"] == {"image": image_of("4.17.1")}
    assert spec["networking"] == {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": "10.128.0.0/14"}],
        "serviceNetwork": [{"cidr": "172.30.0.0/16"}],
        "machineNetwork": [{"cidr": "10.4.0.0/24"}],
    }
    assert spec["dns"] == {"baseDomain": "boston.example", "baseDomainPrefix": "one"}
    assert (spec["clusterID"], spec["infraID"]) == (CLUSTER_ID, ORDER)


def test_what_is_not_asked_for_is_left_to_hypershift() -> None:
    wanted = wish(pod_cidr="", service_cidr="", machine_cidr="", ssh_public_key="")
    place = replace(PLACE, cluster_id="not-a-uuid")
    spec = cluster_manifests.render_hosted_cluster(
        place,
        wanted,
        resolve_settings(SETTINGS["None"], {}),
        image="image",
        pull_secret_name="pull",
        ssh_key_name="",
    )["spec"]
    assert spec["networking"] == {"networkType": "OVNKubernetes"}
    assert "sshKey" not in spec
    assert "clusterID" not in spec


@pytest.mark.parametrize(
    "platform, expected",
    [
        ("Agent", {"type": "Agent", "agent": {"agentNamespace": "hosts"}}),
        ("KubeVirt", {"type": "KubeVirt", "kubevirt": {}}),
        ("None", {"type": "None"}),
    ],
)
def test_platforms(platform: str, expected: dict[str, Any]) -> None:
    assert cluster(platform)["spec"]["platform"] == expected


def test_a_domain_that_passes_through_is_hypershifts_own() -> None:
    settings = {**SETTINGS["KubeVirt"], "hosted.base-domain-passthrough": "true"}
    spec = cluster(wanted=wish(settings=settings))["spec"]
    assert spec["platform"]["kubevirt"] == {"baseDomainPassthrough": True}
    assert "dns" not in spec


@pytest.mark.parametrize(
    "settings, api, others",
    [
        pytest.param(
            {},
            {"type": "LoadBalancer", "loadBalancer": {"hostname": "api.one.boston.example"}},
            {"type": "Route"},
            id="a load balancer for the API, routes for the rest",
        ),
        pytest.param(
            {"publish": "NodePort"},
            {"type": "NodePort", "nodePort": {"address": "api.one.boston.example"}},
            {"type": "NodePort", "nodePort": {"address": "api.one.boston.example"}},
            id="node ports at the API's name",
        ),
        pytest.param(
            {"publish": "NodePort", "publish_address": "192.0.2.7"},
            {"type": "NodePort", "nodePort": {"address": "192.0.2.7"}},
            {"type": "NodePort", "nodePort": {"address": "192.0.2.7"}},
            id="node ports at the hub's address",
        ),
        pytest.param(
            {"publish": "Route"},
            {"type": "Route", "route": {"hostname": "api.one.boston.example"}},
            {"type": "Route"},
            id="all by routes",
        ),
    ],
)
def test_services_are_published(
    settings: dict[str, str], api: dict[str, Any], others: dict[str, Any]
) -> None:
    first, *rest = with_settings(**settings)["spec"]["services"]
    assert first == {"service": "APIServer", "servicePublishingStrategy": api}
    assert [one["service"] for one in rest] == ["OAuthServer", "Konnectivity", "Ignition"]
    assert all(one["servicePublishingStrategy"] == others for one in rest)


def test_routes_have_names_of_their_own_in_a_domain() -> None:
    services = with_settings(route_domain="apps.hub.example")["spec"]["services"]
    hosts = [one["servicePublishingStrategy"].get("route", {}).get("hostname") for one in services]
    assert hosts[1:] == [
        f"{name}-{ORDER}.apps.hub.example" for name in ("oauthserver", "konnectivity", "ignition")
    ]


def test_an_ingress_name_that_hypershift_cannot_serve_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        cluster(wanted=wish(ingress_name="web.one.example"))
    assert caught.value.violations[0].path == "ingress_name"


@pytest.mark.parametrize(
    "catalogue, pattern, expected",
    [
        pytest.param("registry.invalid/a:1", "", "registry.invalid/a:1", id="the catalogue's"),
        pytest.param("a:1", "b:{version}", "a:1", id="the catalogue's first"),
        pytest.param("", "b:{version}-x86_64", "b:4.17.1-x86_64", id="by the hub's pattern"),
    ],
)
def test_the_image_of_a_version(catalogue: str, pattern: str, expected: str) -> None:
    hub = {"hosted.release-image": pattern} if pattern else {}
    choice = resolve_settings(SETTINGS["None"], hub)
    assert cluster_manifests.choose_release_image(wish(release_image=catalogue), choice) == expected


def test_a_version_without_an_image_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        cluster_manifests.choose_release_image(
            wish(release_image=""), resolve_settings(SETTINGS["None"], {})
        )
    assert (caught.value.reason, caught.value.violations[0].path) == ("NoRelease", "release_image")


def test_node_pools_of_the_three_platforms() -> None:
    agent, virtual, none = (pool(name)["spec"]["platform"] for name in SETTINGS)
    name = f"nodepool-{ORDER}-compute"
    assert agent["agent"] == {
        "agentLabelSelector": {"matchLabels": {cluster_manifests.JOIN_LABEL: name}}
    }
    assert virtual["kubevirt"]["compute"] == {"cores": 2, "memory": "8Gi"}
    assert virtual["kubevirt"]["rootVolume"]["persistent"] == {"size": "32Gi"}
    assert none == {"type": "None"}


def test_a_host_type_is_the_size_of_its_virtual_machines() -> None:
    kubevirt = pool("KubeVirt", host_type="large")["spec"]["platform"]["kubevirt"]
    assert kubevirt["compute"] == {"cores": 8, "memory": "64Gi"}
    assert kubevirt["rootVolume"]["persistent"] == {"size": "120Gi"}


def test_storage_classes_are_the_hubs_own_unless_they_are_named() -> None:
    volume = cluster()["spec"]["etcd"]["managed"]["storage"]["persistentVolume"]
    disk = pool("KubeVirt")["spec"]["platform"]["kubevirt"]["rootVolume"]["persistent"]
    assert (set(volume), set(disk)) == ({"size"}, {"size"})
    named = with_settings(etcd_storage_class="fast")["spec"]["etcd"]["managed"]["storage"]
    assert named["persistentVolume"]["storageClassName"] == "fast"
    choice = resolve_settings({**SETTINGS["KubeVirt"], "hosted.vm-storage-class": "large"}, {})
    made = cluster_manifests.render_node_pool(
        PLACE, cluster("KubeVirt"), choice, "compute", "", image="image"
    )
    root = made["spec"]["platform"]["kubevirt"]["rootVolume"]
    assert root["persistent"]["storageClass"] == "large"


def test_a_place_without_a_known_tenant_says_nothing_of_one() -> None:
    nobody = cluster_manifests.render_pull_secret(replace(PLACE, tenant=""), "pull", "{}").manifest
    assert hub_names.TENANT not in nobody["metadata"]["annotations"]


def test_how_many_nodes_a_pool_has_is_not_said_with_its_other_fields() -> None:
    assert "replicas" not in pool()["spec"]


def test_a_pool_that_follows_its_cluster_keeps_its_machines() -> None:
    there = pool("KubeVirt", host_type="large")
    there["spec"]["management"]["upgradeType"] = "InPlace"
    smaller = resolve_settings(
        {**SETTINGS["KubeVirt"], "hosted.vm.large": "cores=1,memory=1Gi,disk=1Gi"}, {}
    )
    newer = cluster_manifests.render_updated_pool(
        PLACE, cluster("KubeVirt"), smaller, there, image=image_of("4.17.2")
    )
    assert newer["spec"]["release"] == {"image": image_of("4.17.2")}
    assert newer["spec"]["platform"] == there["spec"]["platform"]
    assert newer["spec"]["management"]["upgradeType"] == "InPlace"
    assert newer["metadata"]["name"] == there["metadata"]["name"]


def test_what_a_cluster_was_made_with_is_found_again() -> None:
    template, kept = cluster_manifests.read_stored_settings(cluster("Agent"))
    assert template == SETTINGS["Agent"]
    assert kept == resolve_settings(SETTINGS["Agent"], {}).immutable


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"template": 1, "kept": 2}'])
def test_what_was_taken_away_by_hand_is_not_guessed(text: str | None) -> None:
    manifest = cluster()
    if text is None:
        del manifest["metadata"]["annotations"][cluster_manifests.SETTINGS_ANNOTATION]
    else:
        manifest["metadata"]["annotations"][cluster_manifests.SETTINGS_ANNOTATION] = text
    assert cluster_manifests.read_stored_settings(manifest) == ({}, None)


def test_secrets_are_what_hypershift_looks_for() -> None:
    pull = cluster_manifests.render_pull_secret(PLACE, "pull", "{}").manifest
    key = cluster_manifests.render_ssh_key(PLACE, "key", "ssh-ed25519 AAAA").manifest
    assert base64.b64decode(pull["data"][".dockerconfigjson"]) == b"{}"
    assert pull["type"] == "kubernetes.io/dockerconfigjson"
    assert base64.b64decode(key["data"]["id_rsa.pub"]) == b"ssh-ed25519 AAAA"


def test_other_contents_have_another_name() -> None:
    first, second = (
        cluster_manifests.make_new_secret_name("pull", "a"),
        cluster_manifests.make_new_secret_name("pull", "b"),
    )
    assert len({"pull", first, second}) == 3
    assert hub_names.is_label(first)


@pytest.mark.parametrize(
    "annotations, labels, ours",
    [
        pytest.param({hub_names.KEY: PLACE.key}, {}, True, id="its annotation"),
        pytest.param(
            {hub_names.KEY: "other/cluster"},
            cluster_manifests.owner_labels(PLACE),
            False,
            id="another's",
        ),
        pytest.param(
            {}, cluster_manifests.owner_labels(PLACE), True, id="its label, the annotation is gone"
        ),
        pytest.param({}, {}, False, id="nothing at all"),
    ],
)
def test_whose_an_object_is(annotations: Any, labels: Any, ours: bool) -> None:
    thing = {"metadata": {"name": "x", "annotations": annotations, "labels": labels}}
    assert cluster_manifests.belongs_to(PLACE, thing) is ours
    if ours:
        cluster_manifests.refuse_other_owner(PLACE, HOSTED_CLUSTERS, thing)
    else:
        with pytest.raises(Refused) as caught:
            cluster_manifests.refuse_other_owner(PLACE, HOSTED_CLUSTERS, thing)
        assert caught.value.reason == "HeldByAnother"


@pytest.mark.parametrize(
    "existing, wanted, enough",
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": None}, True),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1, 2]}, {"a": [1, 3]}, False),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": {}}, {"a": {"b": 1}}, False),
        (None, {"a": 1}, False),
    ],
)
def test_whether_an_object_says_all_that_a_manifest_says(
    existing: Any, wanted: Any, enough: bool
) -> None:
    assert cluster_manifests.contains_manifest(existing, wanted) is enough
