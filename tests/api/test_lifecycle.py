"""Rest, version and restore of a cluster through both doors."""

from __future__ import annotations

from typing import Any

import pytest

from boatyard.model.generated.boatyard import Backup
from boatyard.model.generated.osac import ClusterRest, ClusterState
from tests.api import samples
from tests.api.backups import BACKUPS, finished_backup, finished_cluster, progress
from tests.api.doors import PRIVATE, ApiEnvironment, Door, Failed
from tests.api.roles import BY_KIND, CLUSTERS, As

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def versions() -> dict[str, str]:
    """Versions beside those of the stock, by number; made on first use."""
    return {}


async def _version(environment: ApiEnvironment, versions: dict[str, str], number: str) -> str:
    if number not in versions:
        made = await environment.grpc.call(
            f"{PRIVATE}.ClusterVersions",
            "Create",
            {"object": samples.version(number)},
            token=environment.token("operator"),
        )
        versions[number] = made["id"]
    return versions[number]


async def change(who: As, id: str, mask: str, **spec: object) -> Any:
    return await who(CLUSTERS, "Update", object={"id": id, "spec": spec}, update_mask=mask)


async def refused(who: As, id: str, mask: str, **spec: object) -> Failed:
    return await who.refused(CLUSTERS, "Update", object={"id": id, "spec": spec}, update_mask=mask)


# --- rest ---------------------------------------------------------------------------------------


async def test_a_tenant_puts_a_cluster_to_rest_and_wakes_it(
    environment: ApiEnvironment, member: As
) -> None:
    id = (await finished_cluster(environment))["id"]
    for rest in ("CLUSTER_REST_FROZEN", "CLUSTER_REST_STOPPED", "CLUSTER_REST_AWAKE"):
        shown = await change(member, id, "spec.rest", rest=rest)
        assert shown["spec"].get("rest", "CLUSTER_REST_AWAKE") == rest
        await progress(environment, id, state=ClusterState.HIBERNATED)


async def test_what_rests_changes_in_nothing_else(environment: ApiEnvironment, member: As) -> None:
    id = (await finished_cluster(environment))["id"]
    await change(member, id, "spec.rest", rest="CLUSTER_REST_FROZEN")
    await progress(environment, id, state=ClusterState.HIBERNATED)
    for mask, spec in (
        ("spec.node_sets.compute.size", {"node_sets": {"compute": {"size": 5}}}),
        ("spec.version", {"version": {"name": "v4-17-2"}}),
        ("spec.ssh_public_key", {"ssh_public_key": "ssh-ed25519 AAAA"}),
    ):
        failed = await refused(member, id, mask, **spec)
        assert failed.code == "FAILED_PRECONDITION", mask
        assert "resume it first" in failed.message
    labelled = {"id": id, "metadata": {"labels": {"team": "web"}}}
    await member(CLUSTERS, "Update", object=labelled, update_mask="metadata.labels")
    await member(CLUSTERS, "Delete", id=id)


async def test_only_what_is_finished_is_put_to_rest(
    environment: ApiEnvironment, member: As
) -> None:
    id = (await finished_cluster(environment))["id"]
    await change(member, id, "spec.node_sets.compute.size", node_sets={"compute": {"size": 4}})
    failed = await refused(member, id, "spec.rest", rest="CLUSTER_REST_FROZEN")
    assert (failed.code, "wait until" in failed.message) == ("FAILED_PRECONDITION", True)


async def test_what_rests_issues_no_access(environment: ApiEnvironment, member: As) -> None:
    id = (await finished_cluster(environment))["id"]
    await progress(environment, id, state=ClusterState.HIBERNATED, rest=ClusterRest.FROZEN)
    failed = await member.refused("boatyard.v1.Access", "Issue", cluster=id, user="ann")
    assert (failed.code, "resume it first" in failed.message) == ("FAILED_PRECONDITION", True)


async def test_a_new_cluster_is_awake(member: As) -> None:
    made = BY_KIND["Cluster"].fresh()
    del made["metadata"]["tenant"]
    made["spec"]["rest"] = "CLUSTER_REST_STOPPED"
    failed = await member.refused(CLUSTERS, "Create", object=made)
    assert set(failed.violations) == {"spec.rest"}


async def test_a_viewer_puts_nothing_to_rest(environment: ApiEnvironment, door: Door) -> None:
    id = (await finished_cluster(environment))["id"]
    viewer = As(environment, door, "viewer")
    failed = await refused(viewer, id, "spec.rest", rest="CLUSTER_REST_FROZEN")
    assert failed.code == "PERMISSION_DENIED"


# --- version ------------------------------------------------------------------------------------


async def test_one_minor_at_a_time_with_the_path(
    environment: ApiEnvironment, member: As, versions: dict[str, str]
) -> None:
    for number in ("1.34.2", "1.35.1", "1.35.4", "1.36.3"):
        await _version(environment, versions, number)
    id = (await finished_cluster(environment, version="1.34.2"))["id"]
    failed = await refused(member, id, "spec.version", version={"id": versions["1.36.3"]})
    assert failed.code == "INVALID_ARGUMENT"
    assert "go to 1.35.4 first, then 1.36.3" in failed.violations["spec.version"]
    await change(member, id, "spec.version", version={"id": versions["1.35.4"]})
    await progress(environment, id, state=ClusterState.READY, version="1.35.4")
    failed = await refused(member, id, "spec.version", version={"id": versions["1.34.2"]})
    assert "never goes back a minor" in failed.violations["spec.version"]
    await change(member, id, "spec.version", version={"id": versions["1.35.1"]})


async def test_an_upgrade_that_failed_is_taken_back(
    environment: ApiEnvironment, member: As, versions: dict[str, str]
) -> None:
    for number in ("1.35.4", "1.36.3"):
        await _version(environment, versions, number)
    id = (await finished_cluster(environment, version="1.35.4"))["id"]
    await change(member, id, "spec.version", version={"id": versions["1.36.3"]})
    await progress(environment, id, state=ClusterState.FAILED, version="1.35.4")
    await change(member, id, "spec.version", version={"id": versions["1.35.4"]})


# --- restore ------------------------------------------------------------------------------------


async def test_a_restore_is_a_request_of_its_own(environment: ApiEnvironment, member: As) -> None:
    backup = await finished_backup(environment)
    id = backup["spec"]["cluster"]
    name = backup["metadata"]["name"]
    first = await change(member, id, "spec.restore", restore={"backup": name})
    wish = first["spec"]["restore"]
    assert wish["backup"] == backup["id"]
    again = await change(member, id, "spec.restore", restore=wish)
    assert again["metadata"] == first["metadata"], "the same request is no news"
    second = await change(member, id, "spec.restore", restore={"backup": backup["id"]})
    assert second["spec"]["restore"]["request"] != wish["request"]
    third = await change(member, id, "spec.restore", restore={"backup": name, "request": "mine"})
    assert third["spec"]["restore"]["request"] == "mine"


async def test_a_strangers_backup_is_not_found(environment: ApiEnvironment, door: Door) -> None:
    theirs = await finished_backup(environment, "acme")
    mine = (await finished_cluster(environment, "globex"))["id"]
    stranger = As(environment, door, "admin", "globex")
    answers = []
    for key in (theirs["id"], theirs["metadata"]["name"], "nobody"):
        restore = {"backup": key}
        made = BY_KIND["Cluster"].fresh()
        del made["metadata"]["tenant"]
        made["spec"]["restore"] = restore
        for failed in (
            await refused(stranger, mine, "spec.restore", restore=restore),
            await stranger.refused(CLUSTERS, "Create", object=made),
        ):
            words = failed.violations["spec.restore.backup"].replace(key, "KEY")
            answers.append((failed.code, words))
    assert len(set(answers)) == 1
    assert "not found" in answers[0][1]


async def test_an_operator_does_not_mix_tenants_either(
    environment: ApiEnvironment, operator: As
) -> None:
    theirs = await finished_backup(environment, "acme")
    other = (await finished_cluster(environment, "globex"))["id"]
    failed = await refused(operator, other, "spec.restore", restore={"backup": theirs["id"]})
    assert "not found" in failed.violations["spec.restore.backup"]


async def test_what_cannot_be_restored(
    environment: ApiEnvironment, member: As, operator: As, versions: dict[str, str]
) -> None:
    cluster = await finished_cluster(environment)
    newer = await finished_backup(environment, cluster=cluster["id"], version="4.18.9")
    failed = await refused(member, cluster["id"], "spec.restore", restore={"backup": newer["id"]})
    assert "same or a later minor" in failed.violations["spec.restore.backup"]
    elsewhere = await finished_cluster(environment, hub="hub-2")
    good = await finished_backup(environment)
    failed = await refused(member, elsewhere["id"], "spec.restore", restore={"backup": good["id"]})
    assert "kept elsewhere" in failed.violations["spec.restore.backup"]
    assert "hub" not in failed.message
    body = {"metadata": {"name": f"early-{good['id']}"}, "spec": {"cluster": cluster["id"]}}
    early = await member(BACKUPS, "Create", object=body)
    failed = await refused(member, cluster["id"], "spec.restore", restore={"backup": early["id"]})
    assert "is PENDING" in failed.violations["spec.restore.backup"]
    failed = await refused(member, cluster["id"], "spec.restore", restore={"request": "x"})
    assert set(failed.violations) == {"spec.restore.backup"}


async def test_a_new_cluster_has_the_version_of_its_backup(
    environment: ApiEnvironment, member: As
) -> None:
    backup = await finished_backup(environment, version="4.17.2")
    made = await member.cluster(restore={"backup": backup["id"]})
    assert made["spec"]["version"]["name"] == "v4-17-2"
    assert made["spec"]["restore"] == {"backup": backup["id"], "request": "generation-1"}
    odd = await finished_backup(environment, version="4.17.77")
    new = BY_KIND["Cluster"].fresh()
    del new["metadata"]["tenant"]
    new["spec"]["restore"] = {"backup": odd["id"]}
    failed = await member.refused(CLUSTERS, "Create", object=new)
    assert "name a later one" in failed.violations["spec.version"]


async def test_a_backup_stays_until_what_is_made_of_it_is_made(
    environment: ApiEnvironment, member: As
) -> None:
    backup = await finished_backup(environment)
    id = backup["spec"]["cluster"]
    shown = await change(member, id, "spec.restore", restore={"backup": backup["id"]})
    failed = await member.refused(BACKUPS, "Delete", id=backup["id"])
    assert failed.code == "FAILED_PRECONDITION"
    request = shown["spec"]["restore"]["request"]
    await progress(environment, id, state=ClusterState.READY, restored=request)
    await member(BACKUPS, "Delete", id=backup["id"])
    stored = await environment.ledger.documents.get(Backup, backup["id"])
    assert stored is not None
    failed = await refused(member, id, "spec.restore", restore={"backup": backup["id"]})
    assert "is being deleted" in failed.violations["spec.restore.backup"]


# --- templates ----------------------------------------------------------------------------------


async def test_what_a_template_asks_of_hubs_and_tells_the_platform(
    environment: ApiEnvironment, member: As, operator: As
) -> None:
    template = BY_KIND["ClusterTemplate"].fresh()
    template |= {"hub_labels": {"platform": "local"}, "platform_settings": {"nodes": "real"}}
    made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    assert made["platform_settings"] == {"nodes": "real"}
    shown = await member("osac.public.v1.ClusterTemplates", "Get", id=made["id"])
    assert not {"hub_labels", "platform_settings"} & shown.keys()

    ordered = await member.cluster(template={"id": made["id"]}, hub_labels={"disk": "fast"})
    assert ordered["spec"]["hub_labels"] == {"disk": "fast", "platform": "local"}
    new = BY_KIND["Cluster"].fresh()
    del new["metadata"]["tenant"]
    new["spec"] |= {"template": {"id": made["id"]}, "hub_labels": {"platform": "other"}}
    failed = await member.refused(CLUSTERS, "Create", object=new)
    assert set(failed.violations) == {"spec.hub_labels.platform"}
    emptied = await change(member, ordered["id"], "spec.hub_labels")
    assert emptied["spec"]["hub_labels"] == {"platform": "local"}


async def test_the_public_package_keeps_what_it_does_not_show(
    environment: ApiEnvironment, operator: As
) -> None:
    template = BY_KIND["ClusterTemplate"].fresh() | {"platform_settings": {"nodes": "real"}}
    made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    public = "osac.public.v1.ClusterTemplates"
    read = await operator(public, "Get", id=made["id"])
    await operator(public, "Update", object=read | {"title": "Other"})
    shown = await operator(f"{PRIVATE}.ClusterTemplates", "Get", id=made["id"])
    assert (shown["title"], shown["platform_settings"]) == ("Other", {"nodes": "real"})
