"""`hub check` on a real API server: a hub that has everything is told so, and each thing taken away is named."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from boatyard.kube.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    CRDS,
    LEASES,
    ROLE_BINDINGS,
    SERVICES,
)
from boatyard.model import hub_names
from boatyard.model.errors import Refused
from boatyard.model.generated.osac import Hub
from boatyard.resources.hubs.check.model import FAILED, PASSED, WARNED, HubCheckFinding
from boatyard.resources.hubs.check.run import check_hub
from boatyard.resources.hubs.preparation import prepare_hub
from tests.support.control_plane import Authority, ControlPlane, base64, control_plane
from tests.support.kube_hub.equipped_hub import (
    HOSTED,
    OPERATOR,
    POOLS,
    STORAGE_CLASSES,
    SYSTEM,
    EquippedHub,
    open_equipped_hub,
)

OURS = ("claims.boatyard.io", "clusterorders.osac.openshift.io", "leftovers.boatyard.io")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def equipped_hub(plane: ControlPlane) -> AsyncIterator[EquippedHub]:
    """A hub that has everything."""
    async with open_equipped_hub(plane) as equipped_hub:
        await equipped_hub.complete()
        hub = equipped_hub.hub()
        await prepare_hub(await equipped_hub.clients.client(hub), hub, equipped_hub.access.crds)
        yield equipped_hub


async def checked(
    equipped_hub: EquippedHub, hub: Hub | None = None, **later: Any
) -> dict[str, HubCheckFinding]:
    hub = hub or equipped_hub.hub()
    looked = await check_hub(hub, equipped_hub.access, datetime.now(UTC) + timedelta(**later))
    return {one.check: one for one in looked.findings}


async def test_a_hub_that_has_everything(equipped_hub: EquippedHub) -> None:
    found = await checked(equipped_hub)

    assert {name: one.message for name, one in found.items() if one.result != PASSED} == {}
    assert found["version"].message == f"v{equipped_hub.plane.version}"
    assert "system:serviceaccount:boatyard-system:boatyard-service" in found["credentials"].message
    assert {f"crd {name}" for name in OURS} <= set(found)
    assert {"operator's rights", "storage class", "load balancer", "clock"} <= set(found)


async def test_a_bare_hub_lacks_everything_and_is_prepared_once() -> None:
    with control_plane() as plane:
        async with open_equipped_hub(plane) as equipped_hub:
            hub = equipped_hub.hub()
            before = await checked(equipped_hub)
            lacking = {name for name, one in before.items() if one.result == FAILED}
            assert {f"crd {name}" for name in OURS} < lacking
            assert {"settings", "operator", "crd hostedclusters.hypershift.openshift.io"} < lacking
            assert all(before[name].remedy for name in lacking)

            client = await equipped_hub.clients.client(hub)
            done = await prepare_hub(client, hub, equipped_hub.access.crds)
            assert [one.rpartition(" ")[2] for one in done] == [*OURS, SYSTEM]
            assert await prepare_hub(client, hub, equipped_hub.access.crds) == []

            after = await checked(equipped_hub)
            assert after["settings"].result == PASSED
            assert {after[f"crd {name}"].result for name in OURS} == {PASSED}


# --- each lack, planted -----------------------------------------------------------------------

Plant = Callable[[EquippedHub], Awaitable[Any]]


async def no_storage_default(equipped_hub: EquippedHub) -> None:
    await equipped_hub.add_storage_class("standard", default=False)


async def no_address_pool(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(POOLS, "pool", SYSTEM)


async def no_metallb(equipped_hub: EquippedHub) -> None:
    await equipped_hub.remove_crd("ipaddresspools", "metallb.io", "v1beta1")


async def no_hosted_clusters(equipped_hub: EquippedHub) -> None:
    await equipped_hub.remove_crd("hostedclusters", "hypershift.openshift.io", "v1beta1")


async def no_agents(equipped_hub: EquippedHub) -> None:
    await equipped_hub.remove_crd("agents", "agent-install.openshift.io", "v1beta1")


async def no_claims(equipped_hub: EquippedHub) -> None:
    await equipped_hub.remove_crd("claims", "boatyard.io", "v1")


async def another_claim(equipped_hub: EquippedHub) -> None:
    await equipped_hub.install_crd("claims", "Claim", "boatyard.io", "v1")


async def no_lease(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(LEASES, OPERATOR, SYSTEM)


async def dead_operator(equipped_hub: EquippedHub) -> None:
    await equipped_hub.renew_lease(ago=60)


async def gone_operator(equipped_hub: EquippedHub) -> None:
    await equipped_hub.renew_lease(holder="")


async def no_orders_allowed(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, "boatyard-service")


async def no_settings_allowed(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(ROLE_BINDINGS, "boatyard-service", SYSTEM)


async def no_looking_allowed(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, "boatyard-service-looking")


async def operator_not_bound(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, OPERATOR)


async def operator_not_bound_at_home(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(ROLE_BINDINGS, OPERATOR, SYSTEM)


async def operator_not_bound_hosted(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, HOSTED)


async def no_settings(equipped_hub: EquippedHub) -> None:
    await equipped_hub.admin.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)


async def another_hub(equipped_hub: EquippedHub) -> None:
    data = {hub_names.HUB_CONFIG_KEY: json.dumps({"id": "other"})}
    await equipped_hub.admin.merge_patch(CONFIG_MAPS, hub_names.HUB_CONFIG, {"data": data}, SYSTEM)


@pytest.mark.parametrize(
    "plant, name, result, words",
    [
        pytest.param(no_storage_default, "storage class", WARNED, "none is the default"),
        pytest.param(no_address_pool, "load balancer", WARNED, "no addresses to give"),
        pytest.param(no_metallb, "load balancer", WARNED, "nothing gives addresses"),
        pytest.param(
            no_hosted_clusters, "crd hostedclusters.hypershift.openshift.io", FAILED, "not served"
        ),
        pytest.param(no_agents, "crd agents.agent-install.openshift.io", FAILED, "not served"),
        pytest.param(no_claims, "crd claims.boatyard.io", FAILED, "not served"),
        pytest.param(another_claim, "crd claims.boatyard.io", WARNED, "not as this Boatyard"),
        pytest.param(no_lease, "operator", FAILED, "no operator has run"),
        pytest.param(dead_operator, "operator", FAILED, "alive since"),
        pytest.param(gone_operator, "operator", FAILED, "alive since"),
        pytest.param(no_orders_allowed, "rights", FAILED, "get clusterorders.osac.openshift.io"),
        pytest.param(no_settings_allowed, "rights", FAILED, "get configmaps in boatyard-system"),
        pytest.param(no_looking_allowed, "rights to look", WARNED, "list nodes"),
        pytest.param(no_looking_allowed, "storage class", WARNED, "may not see"),
        pytest.param(no_looking_allowed, "operator's rights", WARNED, "may not ask"),
        pytest.param(operator_not_bound, "operator's rights", WARNED, "clusterorders/status"),
        pytest.param(
            operator_not_bound_at_home, "operator's rights", WARNED, "create claims.boatyard.io"
        ),
        pytest.param(
            operator_not_bound_hosted, "operator's rights", WARNED, "patch nodepools.hypershift"
        ),
        pytest.param(no_settings, "settings", FAILED, "not in boatyard-system yet"),
        pytest.param(another_hub, "settings", FAILED, "registered as hub 'other'"),
    ],
)
async def test_what_is_taken_away_is_named(
    equipped_hub: EquippedHub, plant: Plant, name: str, result: Any, words: str
) -> None:
    await plant(equipped_hub)
    try:
        found = (await checked(equipped_hub))[name]
    finally:
        await mended(equipped_hub)

    assert (found.result, words in found.message) == (result, True), found
    assert found.remedy or "may not see" in found.message


async def mended(equipped_hub: EquippedHub) -> None:
    for crd in equipped_hub.access.crds:
        await equipped_hub.admin.delete(CRDS, crd["metadata"]["name"])
        version = crd["spec"]["versions"][0]["name"]
        names = crd["spec"]["names"]["plural"], crd["spec"]["group"]
        await equipped_hub.until_served(f"/apis/{names[1]}/{version}", names[0], there=False)
    await equipped_hub.admin.delete(CONFIG_MAPS, hub_names.HUB_CONFIG, SYSTEM)
    await equipped_hub.admin.delete(CLUSTER_ROLE_BINDINGS, OPERATOR)


@pytest.mark.parametrize(
    "plant, file",
    [
        pytest.param(operator_not_bound, "deploy/rbac/operator.yaml", id="everywhere"),
        pytest.param(operator_not_bound_at_home, "deploy/rbac/operator.yaml", id="at home"),
        pytest.param(operator_not_bound_hosted, "deploy/rbac/hosted.yaml", id="hosted"),
    ],
)
async def test_the_remedy_is_the_file_that_grants_it(
    equipped_hub: EquippedHub, plant: Plant, file: str
) -> None:
    await plant(equipped_hub)

    found = (await checked(equipped_hub))["operator's rights"]

    assert found.remedy == f"apply {file} to the hub"


# --- what may be instead ----------------------------------------------------------------------


async def test_a_storage_class_that_the_settings_name(equipped_hub: EquippedHub) -> None:
    await equipped_hub.add_storage_class("fast", default=False)
    settings = {"hosted.platform": "Agent", "hosted.etcd-storage-class": "fast"}
    assert (await checked(equipped_hub, equipped_hub.hub(settings=settings)))[
        "storage class"
    ].result == PASSED

    gone = {**settings, "hosted.etcd-storage-class": "gone"}
    found = (await checked(equipped_hub, equipped_hub.hub(settings=gone)))["storage class"]
    assert (found.result, "'gone'" in found.message) == (WARNED, True)
    await equipped_hub.admin.delete(STORAGE_CLASSES, "fast")


async def test_other_ways_to_publish_need_no_load_balancer(equipped_hub: EquippedHub) -> None:
    await no_metallb(equipped_hub)
    settings = {"hosted.platform": "Agent", "hosted.publish": "NodePort"}

    found = (await checked(equipped_hub, equipped_hub.hub(settings=settings)))["load balancer"]

    assert found.result == PASSED


async def test_a_service_that_was_given_an_address_shows_a_load_balancer(
    equipped_hub: EquippedHub,
) -> None:
    await no_metallb(equipped_hub)
    await equipped_hub.add_balanced_service()

    found = (await checked(equipped_hub))["load balancer"]

    assert found.result == PASSED
    await equipped_hub.admin.delete(SERVICES, "balanced", "default")


async def test_clocks_that_differ_are_told(equipped_hub: EquippedHub) -> None:
    behind = (await checked(equipped_hub, seconds=90))["clock"]
    ahead = (await checked(equipped_hub, seconds=-90))["clock"]

    assert (behind.result, "behind" in behind.message) == (WARNED, True)
    assert (ahead.result, "ahead" in ahead.message) == (WARNED, True)


async def test_credentials_that_end_soon_are_told(equipped_hub: EquippedHub) -> None:
    hub = equipped_hub.hub(kubeconfig=await equipped_hub.service_kubeconfig(seconds=3600))

    found = (await checked(equipped_hub, hub))["credentials"]

    assert (found.result, "UTC" in found.message) == (WARNED, True)


# --- hubs that do not work --------------------------------------------------------------------


async def broken(equipped_hub: EquippedHub, **fields: Any) -> HubCheckFinding:
    """What is said of a hub whose kubeconfig differs in these: server, authority or user."""
    config = json.loads(equipped_hub.kubeconfig)
    config["clusters"][0]["cluster"] |= fields.get("cluster", {})
    config["users"][0]["user"] |= fields.get("user", {})
    hub = equipped_hub.hub("broken", kubeconfig=json.dumps(config).encode())
    found = [one for one in (await checked(equipped_hub, hub)).values() if one.result == FAILED]
    assert len(found) == 1
    assert found[0].remedy
    return found[0]


async def test_an_address_where_nobody_is(equipped_hub: EquippedHub) -> None:
    found = await broken(equipped_hub, cluster={"server": "https://127.0.0.1:1"})

    assert (found.check, found.reason) == ("reachable", "Unreachable")


async def test_a_server_that_another_authority_vouches_for(equipped_hub: EquippedHub) -> None:
    other = base64(Authority("other").pem)

    found = await broken(equipped_hub, cluster={"certificate-authority-data": other})

    assert (found.check, found.reason) == ("reachable", "CertificateNotTrusted")


async def test_credentials_that_are_not_taken(equipped_hub: EquippedHub) -> None:
    found = await broken(equipped_hub, user={"token": "nobody's"})

    assert (found.check, found.reason) == ("credentials", "Unauthorized")
    assert "nobody" not in found.message


async def test_a_stranger_who_may_do_nothing(equipped_hub: EquippedHub) -> None:
    hub = equipped_hub.hub(
        "weak", kubeconfig=json.dumps(equipped_hub.plane.kubeconfig("weak", ())).encode()
    )

    found = (await checked(equipped_hub, hub))["rights"]

    assert (found.result, " more" in found.message) == (FAILED, True)


async def test_preparing_without_rights_says_what_was_refused(equipped_hub: EquippedHub) -> None:
    hub = equipped_hub.hub(
        "weak", kubeconfig=json.dumps(equipped_hub.plane.kubeconfig("weak", ())).encode()
    )

    with pytest.raises(Refused) as raised:
        await prepare_hub(await equipped_hub.clients.client(hub), hub, equipped_hub.access.crds)

    assert raised.value.reason == "Forbidden"
