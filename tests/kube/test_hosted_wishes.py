"""Making hosted clusters on a real API server with HyperShift's real CRDs, and what is refused first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import (
    CRDS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from boatyard.model import hub_names
from boatyard.model.errors import NotFound, Refused, Unavailable
from boatyard.model.outcome import Done, Waiting
from boatyard.platforms.drivers.hosted.kinds import (
    CLUSTER_ORDERS,
    HOSTED_CLUSTERS,
    NETWORK_POLICIES,
)
from boatyard.platforms.port import DesiredRestore, RestMode
from tests.support.control_plane import base64
from tests.support.kube_hub.hosted_values import condition, image_of, status, well, wish
from tests.support.kube_hub.manual_hypershift import ManualHyperShift, RecordingWriter
from tests.support.scripted_kube import connected, failure


@pytest.mark.parametrize("platform", ["Agent", "KubeVirt", "None"])
@pytest.mark.parametrize("publish", ["LoadBalancer", "NodePort", "Route"])
async def test_every_kind_of_cluster_is_accepted_by_the_real_crds(
    hosting: KubeClient, platform: str, publish: str
) -> None:
    hypershift = ManualHyperShift(hosting, platform, {"hosted.publish": publish})
    assert isinstance(await hypershift.ensure(), Waiting)
    made = await hypershift.cluster()
    assert made["spec"]["platform"]["type"] == platform
    assert made["spec"]["clusterID"] == hypershift.id


async def test_a_cluster_gets_a_namespace_with_all_it_needs(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.ensure()
    names = {
        kind.kind: sorted(one["metadata"]["name"] for one in await hypershift.all(kind))
        for kind in (ROLE_BINDINGS, NETWORK_POLICIES, HOSTED_CLUSTERS)
    }
    assert names == {
        "RoleBinding": ["hub-access", "osac"],
        "NetworkPolicy": ["boatyard"],
        "HostedCluster": [hypershift.order],
    }
    assert "osac" in {one["metadata"]["name"] for one in await hypershift.all(SERVICE_ACCOUNTS)}
    pull = await hosting.get(
        SECRETS, f"pullsecret-cluster-{hypershift.order}", hypershift.namespace
    )
    assert pull["data"][".dockerconfigjson"] == base64(hypershift.wanted.pull_secret.encode())
    key = await hosting.get(SECRETS, f"sshkey-cluster-{hypershift.order}", hypershift.namespace)
    assert key["data"]["id_rsa.pub"] == base64(hypershift.wanted.ssh_public_key.encode())


async def test_it_is_done_when_its_api_is_available(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    first = await hypershift.ensure()
    assert (first.why, first.reason) == ("The control plane has been asked for.", "StageUnknown")
    await hypershift.say(status(condition("InfrastructureReady", "False", "Waiting")))
    assert (await hypershift.ensure()).reason == "PreparingInfrastructure"
    seen = await hypershift.driver.observe(hypershift.key)
    assert (seen.exists, seen.available, bool(seen.message)) == (True, False, True)
    await hypershift.say(well(history=[("4.17.1", "Partial")]))
    assert await hypershift.ensure() == Done({"version": "4.17.1"})
    seen = await hypershift.driver.observe(hypershift.key)
    assert (seen.available, seen.degraded, seen.version) == (True, False, "4.17.1")


async def test_asked_again_it_writes_nothing(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    spy = RecordingWriter(hosting)
    hypershift.client = spy
    driver = hypershift.another_driver()
    assert isinstance(await driver.ensure_cluster(hypershift.key, hypershift.wanted), Done)
    assert spy.written == []


async def test_what_was_taken_away_by_hand_is_put_back_with_the_next_correction(
    hosting: KubeClient,
) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    bare = {
        "metadata": {"labels": {hub_names.ORDER: None, hub_names.KEY: None, hub_names.HUB: None}}
    }
    await hosting.merge_patch(NAMESPACES, hypershift.namespace, bare)
    await hosting.merge_patch(HOSTED_CLUSTERS, hypershift.order, bare, hypershift.namespace)
    driver = hypershift.another_driver()
    assert (await driver.observe(hypershift.key)).available, "found by its name"
    assert isinstance(await driver.ensure_cluster(hypershift.key, hypershift.wanted), Done)
    assert (await hypershift.cluster())["metadata"]["labels"][hub_names.ORDER] == hypershift.order
    namespace = await hosting.get(NAMESPACES, hypershift.namespace)
    assert namespace["metadata"]["labels"][hub_names.ORDER] == hypershift.order


REFUSED: list[Any] = [
    pytest.param({"rest": RestMode.STOPPED}, "NoRest", id="a rest"),
    pytest.param({"restore": DesiredRestore("r", "b")}, "NoBackups", id="a restore"),
    pytest.param({"settings": {}}, "BadSettings", id="no platform"),
    pytest.param({"pull_secret": "oops"}, "BadCluster", id="no pull secret"),
    pytest.param({"pull_secret": ""}, "NoPullSecret", id="no pull secret at all"),
    pytest.param({"release_image": ""}, "NoRelease", id="no image"),
    pytest.param({"service_cidr": "10.128.0.0/16"}, "BadCluster", id="networks that overlap"),
    pytest.param({"ingress_name": "x.example"}, "BadCluster", id="a name it cannot serve"),
    pytest.param({"version": "4.9.1"}, "UnsupportedVersion", id="a version not hosted here"),
    pytest.param(
        {"settings": {"hosted.platform": "KubeVirt"}, "host_types": ("gpu",)},
        "NoVmSize",
        id="a host type without a size",
    ),
]


@pytest.mark.parametrize("change, reason", REFUSED)
async def test_what_is_refused_leaves_nothing_behind(
    hosting: KubeClient, change: dict[str, Any], reason: str
) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.host_versions("4.19", "4.18", "4.17")
    with pytest.raises(Refused) as caught:
        await hypershift.ensure(replace(hypershift.wanted, **change))
    assert caught.value.reason == reason
    assert await hypershift.namespaces() == []


async def test_a_version_that_is_not_hosted_is_refused_with_the_list(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.host_versions("4.19", "4.18", "4.17")
    with pytest.raises(Refused, match=r"4\.19, 4\.18, 4\.17"):
        await hypershift.ensure(wish(version="4.30.0"))


async def test_hypershifts_verdict_is_told_with_its_words(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.ensure()
    words = {"message": "the quota is used up", "observedGeneration": 1}
    await hypershift.say(status(condition("ValidConfiguration", "False", "QuotaExceeded", **words)))
    with pytest.raises(Refused, match="the quota is used up") as caught:
        await hypershift.ensure()
    assert caught.value.reason == "QuotaExceeded"


async def test_an_unknown_field_is_refused_and_not_dropped(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.ensure()
    with pytest.raises(Refused, match="notAField"):
        await hosting.apply(
            HOSTED_CLUSTERS,
            hypershift.order,
            {"spec": {"notAField": 1}},
            hypershift.namespace,
            strict=True,
            manager="another",
        )


async def test_a_namespace_of_somebody_else_is_left_alone(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hosting.create(NAMESPACES, {"metadata": {"name": hypershift.namespace}})
    for ask in (hypershift.ensure(), hypershift.driver.release_cluster(hypershift.key)):
        with pytest.raises(Refused) as caught:
            await ask
        assert caught.value.reason == "HeldByAnother"
    found = await hosting.get(NAMESPACES, hypershift.namespace)
    assert not found["metadata"].get("annotations")
    assert "deletionTimestamp" not in found["metadata"]


async def test_what_a_cluster_keeps_for_life_is_refused_and_stays(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    before = await hypershift.cluster()
    settings = {**hypershift.wanted.settings, "hosted.network-type": "Calico"}
    with pytest.raises(Refused) as caught:
        await hypershift.ensure(replace(hypershift.wanted, settings=settings))
    assert caught.value.reason == "NotChangeable"
    assert (await hypershift.cluster())["metadata"]["generation"] == before["metadata"][
        "generation"
    ]


async def test_a_hub_that_is_set_up_otherwise_keeps_its_clusters(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    hypershift.settings["hosted.publish"] = "NodePort"
    assert isinstance(
        await hypershift.another_driver().ensure_cluster(hypershift.key, hypershift.wanted), Done
    )


async def test_another_pull_secret_has_another_name(hosting: KubeClient) -> None:
    """HyperShift rolls out a new name, and never looks at new contents."""
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    newer = replace(hypershift.wanted, pull_secret='{"auths":{"new":{}}}')
    await hypershift.ensure(newer)
    name = (await hypershift.cluster())["spec"]["pullSecret"]["name"]
    assert name != hub_names.pull_secret_name(hypershift.order)
    secret = await hosting.get(SECRETS, name, hypershift.namespace)
    assert secret["data"][".dockerconfigjson"] == base64(newer.pull_secret.encode())
    assert isinstance(await hypershift.ensure(newer), Done)
    assert (await hypershift.cluster())["spec"]["pullSecret"]["name"] == name


async def test_the_hubs_own_pull_secret_is_taken_where_the_order_has_none(
    hosting: KubeClient,
) -> None:
    hypershift = ManualHyperShift(
        hosting, settings={"hosted.pull-secret": "default/hubs-pull-secret"}
    )
    wanted = replace(hypershift.wanted, pull_secret="")
    with pytest.raises(Unavailable) as caught:
        await hypershift.ensure(wanted)
    assert caught.value.reason == "NoPullSecret"
    data = {".dockerconfigjson": base64(b'{"auths":{"hub":{}}}')}
    await hosting.apply(SECRETS, "hubs-pull-secret", {"data": data}, "default")
    await hypershift.ensure(wanted)
    copied = await hosting.get(
        SECRETS, hub_names.pull_secret_name(hypershift.order), hypershift.namespace
    )
    assert copied["data"] == data


async def test_hosts_get_the_role_that_hypershift_looks_for(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    wanted = wish("Agent")
    with pytest.raises(Unavailable) as caught:
        await hypershift.ensure(wanted)
    assert caught.value.reason == "NoAgents"
    assert await hypershift.namespaces() == []
    await hosting.create(NAMESPACES, {"metadata": {"name": "hosts"}})
    await hypershift.ensure(wanted)
    role = await hosting.get(ROLES, "capi-provider-role", "hosts")
    assert role["rules"][0]["resources"] == ["agents"]


async def test_a_cluster_is_beside_its_order(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hosting.apply(NAMESPACES, "boatyard-acme", {})
    await install_orders(hosting)
    about = {"annotations": {hub_names.CLUSTER: hypershift.id, hub_names.TENANT: "acme"}}
    order = {"metadata": {"name": hypershift.order, **about}, "spec": {"templateID": "t"}}
    await hosting.create(CLUSTER_ORDERS, order, "boatyard-acme")
    try:
        await hypershift.ensure()
        namespace = await hosting.get(NAMESPACES, f"boatyard-acme-{hypershift.order}")
        assert namespace["metadata"]["annotations"][hub_names.TENANT] == "acme"
        assert await hypershift.namespaces() == [f"boatyard-acme-{hypershift.order}"]
    finally:
        await hosting.delete(CRDS, "clusterorders.osac.openshift.io")


async def install_orders(client: KubeClient) -> None:
    """A ClusterOrder with a name and annotations: nothing else of it is looked at."""
    names = {"kind": "ClusterOrder", "plural": "clusterorders", "singular": "clusterorder"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True}
    spec = {
        "group": "osac.openshift.io",
        "names": {**names, "listKind": "ClusterOrderList"},
        "scope": "Namespaced",
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    await client.apply(CRDS, "clusterorders.osac.openshift.io", {"spec": spec})
    for _ in range(200):
        try:
            await client.list(CLUSTER_ORDERS)
        except NotFound:
            await asyncio.sleep(0.05)
        else:
            return
    raise AssertionError("ClusterOrders are not served")


async def test_access_is_what_hypershift_has_published(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    with pytest.raises(NotFound):
        await hypershift.driver.access(hypershift.key)
    await hypershift.give_access("clusters: [{cluster: {server: 'https://api.example:6443'}}]")
    access = await hypershift.driver.access(hypershift.key)
    assert access.api_url == "https://api.example:6443"
    assert (access.username, access.password) == ("kubeadmin", "pass")
    assert access.console_url == "https://console-openshift-console.apps.one.boston.example"


async def test_a_kubeconfig_that_is_none_is_not_handed_out_nor_quoted(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    await hypershift.up()
    await hypershift.give_access("clusters: [secret-word")
    with pytest.raises(Unavailable) as caught:
        await hypershift.driver.access(hypershift.key)
    assert "secret-word" not in repr(caught.value)


async def test_an_image_of_another_version_is_refused(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    wanted = wish(version="4.17.1", release_image=image_of("4.17.2"))
    await hypershift.ensure(wanted)
    await hypershift.say(well(history=[("4.17.2", "Partial")]))
    with pytest.raises(Refused) as caught:
        await hypershift.ensure(wanted)
    assert caught.value.reason == "WrongRelease"


async def test_a_hub_without_hypershift_is_not_ready() -> None:
    async with connected() as (told, client):
        told.tell(failure(404, "NotFound"))
        with pytest.raises(Unavailable) as caught:
            await ManualHyperShift(client).driver.check_ready()
    assert caught.value.reason == "NoHyperShift"


async def test_a_hub_with_it_is_ready(hosting: KubeClient) -> None:
    await ManualHyperShift(hosting).driver.check_ready()
    with pytest.raises(Refused):
        await ManualHyperShift(hosting, settings={"hosted.typo": "1"}).driver.check_ready()


async def test_no_backups(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting)
    with pytest.raises(Refused) as caught:
        await hypershift.driver.ensure_backup("b/backup", hypershift.key)
    assert caught.value.reason == "NoBackups"
    assert await hypershift.driver.release_backup("b/backup") == Done()


async def test_orders_have_a_namespace_that_is_long_enough(hosting: KubeClient) -> None:
    hypershift = ManualHyperShift(hosting, settings={"kube.namespace": "n" * 30})
    with pytest.raises(Refused) as caught:
        await hypershift.ensure()
    assert caught.value.violations[0].path == "kube.namespace"
