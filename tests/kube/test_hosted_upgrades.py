"""A new version of a hosted cluster: judged first, then the control plane, then its nodes."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.model.errors import Refused
from boatyard.model.outcome import Done
from tests.support.kube_hub.hosted_values import condition, image_of, well, wish
from tests.support.kube_hub.manual_hypershift import ManualHyperShift

OLD, NEW = "4.17.1", "4.17.2"


async def with_a_node(client: KubeClient) -> ManualHyperShift:
    """A cluster at the old version, whose pool has one node."""
    hypershift = ManualHyperShift(client, "KubeVirt")
    await hypershift.host_versions("4.20", "4.19", "4.18", "4.17", "4.16")
    await hypershift.up()
    await hypershift.join("compute-0", "host-0")
    await hypershift.machine("m-0")
    assert isinstance(await hypershift.join("compute-0", "host-0"), Done)
    await hypershift.say_of_pool({"version": OLD, "conditions": []})
    return hypershift


async def ask(hypershift: ManualHyperShift, version: str = NEW) -> Any:
    return await hypershift.ensure(wish("KubeVirt", version))


async def images(hypershift: ManualHyperShift) -> tuple[str, str]:
    """Which version the control plane is asked to have, and which its nodes."""
    things = await hypershift.cluster(), await hypershift.pool()
    cluster, pool = (thing["spec"]["release"]["image"].rpartition(":")[2] for thing in things)
    return cluster, pool


async def test_the_control_plane_first_then_the_nodes(hosting: KubeClient) -> None:
    hypershift = await with_a_node(hosting)
    await ask(hypershift)
    assert await images(hypershift) == (NEW, OLD)
    await hypershift.say(well(history=[(NEW, "Partial"), (OLD, "Completed")]))
    assert (await ask(hypershift)).reason == "Updating"
    assert await images(hypershift) == (NEW, OLD), (
        "the nodes wait until the control plane is complete"
    )
    assert (await hypershift.driver.observe(hypershift.key)).version == OLD

    await hypershift.say(well(history=[(NEW, "Completed"), (OLD, "Completed")]))
    assert (await ask(hypershift)).reason == "UpdatingNodes"
    assert await images(hypershift) == (NEW, NEW)
    updating = [condition("UpdatingVersion", "True")]
    await hypershift.say_of_pool({"version": OLD, "conditions": updating})
    assert (await ask(hypershift)).reason == "UpdatingNodes"
    await hypershift.say_of_pool({"version": NEW, "conditions": []})
    assert await ask(hypershift) == Done({"version": NEW})
    assert (await hypershift.driver.observe(hypershift.key)).version == NEW


async def test_nodes_keep_their_machines(hosting: KubeClient) -> None:
    """Another size in the hub's settings would replace the machines of a tenant who asked for a new version."""
    hypershift = await with_a_node(hosting)
    before = (await hypershift.pool())["spec"]
    hypershift.settings["hosted.vm.default"] = "cores=1,memory=1Gi,disk=1Gi"
    driver = hypershift.another_driver()
    await hypershift.say(well(history=[(NEW, "Completed"), (OLD, "Completed")]))
    wanted = wish("KubeVirt", NEW)
    for _ in range(2):
        await driver.ensure_cluster(hypershift.key, wanted)
    after = (await hypershift.pool())["spec"]
    assert after["platform"] == before["platform"]
    assert after["replicas"] == before["replicas"] == 1
    assert after["release"] == {"image": image_of(NEW)}


@pytest.mark.parametrize(
    "version, reason",
    [
        pytest.param("4.16.9", "VersionStep", id="back"),
        pytest.param("4.19.0", "VersionStep", id="two at once"),
        pytest.param("next", "Refused", id="no version"),
    ],
)
async def test_a_version_out_of_reach_is_refused_and_nothing_changes(
    hosting: KubeClient, version: str, reason: str
) -> None:
    hypershift = await with_a_node(hosting)
    with pytest.raises(Refused) as caught:
        await ask(hypershift, version)
    assert caught.value.reason == reason
    assert await images(hypershift) == (OLD, OLD)


async def test_nodes_that_are_newer_hold_the_control_plane(hosting: KubeClient) -> None:
    hypershift = await with_a_node(hosting)
    await hypershift.say(well(history=[("4.17.5", "Completed")]))
    await hypershift.say_of_pool({"version": "4.17.5", "conditions": []})
    with pytest.raises(Refused, match="older than its nodes"):
        await ask(hypershift, "4.17.4")


async def test_a_release_that_is_not_accepted_is_taken_back(hosting: KubeClient) -> None:
    hypershift = await with_a_node(hosting)
    await ask(hypershift)
    generation = (await hypershift.cluster())["metadata"]["generation"]
    refused = condition("ValidReleaseImage", "False", "InvalidImage", observedGeneration=generation)
    await hypershift.say(well(refused, history=[(OLD, "Completed")]))
    with pytest.raises(Refused) as caught:
        await ask(hypershift)
    assert caught.value.reason == "UpgradeFailed"
    assert await images(hypershift) == (OLD, OLD), "it runs the version of before"

    await ask(hypershift)
    assert await images(hypershift) == (NEW, OLD), "asked again, it is tried again"


async def test_a_verdict_on_an_earlier_wish_is_not_taken_for_this_one(hosting: KubeClient) -> None:
    hypershift = await with_a_node(hosting)
    generation = (await hypershift.cluster())["metadata"]["generation"]
    stale = condition("ValidReleaseImage", "False", "InvalidImage", observedGeneration=generation)
    await ask(hypershift)
    await hypershift.say(well(stale, history=[(OLD, "Completed")]))
    assert (await ask(hypershift)).reason == "Updating"


async def test_a_mind_changed_half_way_goes_back(hosting: KubeClient) -> None:
    hypershift = await with_a_node(hosting)
    await ask(hypershift)
    await hypershift.say(well(history=[(NEW, "Partial"), (OLD, "Completed")]))
    await ask(hypershift, OLD)
    assert await images(hypershift) == (OLD, OLD)


async def test_a_cluster_without_nodes_is_not_waited_for(hosting: KubeClient) -> None:
    """A version is only complete on nodes."""
    hypershift = ManualHyperShift(hosting, "KubeVirt")
    await hypershift.up()
    await ask(hypershift)
    await hypershift.say(well(history=[(NEW, "Partial"), (OLD, "Completed")]))
    assert await ask(hypershift) == Done({"version": NEW})
