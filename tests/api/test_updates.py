"""What updates change and what they leave alone.

Numbers in names are defects of the contract's own service that we must not have.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from boatyard.model.generated.osac import Cluster, ClusterTemplate, Hub
from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed
from tests.api.roles import BY_KIND, CLUSTERS, As
from tests.support.kubeconfigs import kubeconfig

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_1_status_cannot_be_written_by_tenants(
    member: As, environment: ApiEnvironment
) -> None:
    made = await member.cluster()
    written = {**made, "status": {"state": "CLUSTER_STATE_READY", "api_url": "http://evil"}}
    assert await member(CLUSTERS, "Update", object=written) == made
    for mask in ("status", "status.state"):
        failed = await member.refused(
            CLUSTERS, "Update", object={"id": made["id"]}, update_mask=mask
        )
        assert failed.code == "INVALID_ARGUMENT"
    stored = await environment.ledger.documents.get(Cluster, made["id"])
    assert stored is not None
    assert stored.status.state.name == "PROGRESSING"


async def test_1_a_patch_of_status_changes_nothing(environment: ApiEnvironment) -> None:
    member = As(environment, environment.rest, "member")
    made = await member.cluster()
    assert await member(CLUSTERS, "Update", object={"id": made["id"], "status": {}}) == made


async def test_5_a_mask_is_obeyed_for_every_kind(operator: As) -> None:
    for kind, package in (("HostType", PUBLIC), ("ClusterTemplate", PUBLIC)):
        sample = BY_KIND[kind]
        service = f"{package}.{sample.service}"
        made = await operator(service, "Create", object=sample.fresh(package))
        changed = await operator(
            service, "Update", object={"id": made["id"], "title": "New"}, update_mask="title"
        )
        assert changed["title"] == "New"
        assert changed["metadata"]["name"] == made["metadata"]["name"]


async def test_6_what_the_public_package_does_not_show_is_kept(
    operator: As, environment: ApiEnvironment
) -> None:
    made = await operator(
        f"{PRIVATE}.Clusters", "Create", object=_finalized(BY_KIND["Cluster"].fresh())
    )
    await operator(
        f"{PRIVATE}.Clusters",
        "Update",
        object={
            "id": made["id"],
            "status": {"hub": "boston-1"},
            "spec": {"node_sets": {"compute": {"fabric_interface": "eth7"}}},
        },
        update_mask=["status.hub", "spec.node_sets.compute.fabric_interface"],
    )
    public = await operator(CLUSTERS, "Get", id=made["id"])
    public["metadata"]["labels"] = {"a": "b"}
    await operator(CLUSTERS, "Update", object=public)
    stored = await environment.ledger.documents.get(Cluster, made["id"])
    assert stored is not None
    assert stored.metadata.finalizers == ("boatyard.io/order", "example.com/mine")
    assert stored.status.hub == "boston-1"
    assert stored.spec.node_sets["compute"].fabric_interface == "eth7"
    assert stored.metadata.labels == {"a": "b"}


async def test_an_edit_of_the_whole_object_does_not_bring_an_old_status_back(
    environment: ApiEnvironment,
) -> None:
    """`osac edit` after `login --private`: the cluster was placed while the editor was open."""
    operator = As(environment, environment.grpc, "operator")
    clusters = f"{PRIVATE}.Clusters"
    read = await operator(clusters, "Create", object=BY_KIND["Cluster"].fresh())
    placed = {"id": read["id"], "status": {"hub": "boston-1"}}
    await operator(clusters, "Update", object=placed, update_mask="status.hub")
    read["metadata"]["labels"] = {"a": "b"}
    written = await operator(clusters, "Update", object=read)
    assert written["metadata"]["labels"] == {"a": "b"}
    assert written["status"]["hub"] == "boston-1"
    written["status"]["hub"] = "boston-2"
    again = await operator(clusters, "Update", object=written)
    assert again["status"]["hub"] == "boston-2", "who has read the latest may change it"


async def test_7_a_mask_into_a_map_keeps_the_entrys_other_fields(member: As) -> None:
    made = await member.cluster()
    changed = await member(
        CLUSTERS,
        "Update",
        object={"id": made["id"], "spec": {"node_sets": {"compute": {"size": 9}}}},
        update_mask="spec.node_sets.compute.size",
    )
    assert changed["spec"]["node_sets"]["compute"] == {
        "host_type": {"id": "small", "name": "small"},
        "size": 9,
    }
    assert changed["spec"]["node_sets"]["gpu"] == made["spec"]["node_sets"]["gpu"]
    assert changed["metadata"]["generation"] == "2"


async def test_scaling_as_the_contracts_command_line_does(member: As) -> None:
    """The whole object with the mask spec.node_sets."""
    made = await member.cluster()
    made["spec"]["node_sets"]["compute"]["size"] = 7
    changed = await member(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")
    assert changed["spec"]["node_sets"]["compute"]["size"] == 7


async def test_n7_stars_keep_the_stored_secret_with_and_without_a_mask(
    member: As, environment: ApiEnvironment
) -> None:
    made = await member.cluster(pull_secret="mine")
    assert made["spec"]["pull_secret"] == "***"
    made["metadata"]["labels"] = {"a": "1"}
    made = await member(CLUSTERS, "Update", object=made)
    await member(CLUSTERS, "Update", object=made, update_mask="spec.pull_secret")
    stored = await environment.ledger.documents.get(Cluster, made["id"])
    assert stored is not None
    assert stored.spec.pull_secret == "mine"
    assert stored.metadata.version == 1
    made["spec"]["pull_secret"] = "another"
    await member(CLUSTERS, "Update", object=made, update_mask="spec.pull_secret")
    stored = await environment.ledger.documents.get(Cluster, made["id"])
    assert stored is not None
    assert stored.spec.pull_secret == "another"


async def test_n18_what_is_hidden_from_the_package_survives_a_label(
    operator: As, environment: ApiEnvironment
) -> None:
    template = await operator(
        f"{PRIVATE}.ClusterTemplates", "Create", object=BY_KIND["ClusterTemplate"].fresh()
    )
    shown = await operator(f"{PUBLIC}.ClusterTemplates", "Get", id=template["id"])
    assert "pull_secret" not in shown.get("spec_defaults", {})
    shown["metadata"]["labels"] = {"a": "b"}
    await operator(f"{PUBLIC}.ClusterTemplates", "Update", object=shown)
    stored = await environment.ledger.documents.get(ClusterTemplate, template["id"])
    assert stored is not None
    assert stored.spec_defaults.pull_secret == "from-the-template"

    hub = await operator(f"{PRIVATE}.Hubs", "Create", object=BY_KIND["Hub"].fresh())
    hub["metadata"]["labels"] = {"a": "b"}
    await operator(f"{PRIVATE}.Hubs", "Update", object=hub)
    kept = await environment.ledger.documents.get(Hub, hub["id"])
    assert kept is not None
    assert kept.spec.kubeconfig == kubeconfig()


async def test_n19_what_is_left_out_of_a_map_is_gone(
    member: As, environment: ApiEnvironment
) -> None:
    made = await environment.grpc.call(
        CLUSTERS,
        "Create",
        {"object": {**samples.cluster(f"n19-{member._door.name}")}},
        token=environment.token("member"),
    )
    made["metadata"]["labels"] = {"a": "1", "b": "2"}
    made = await member(CLUSTERS, "Update", object=made)
    del made["spec"]["node_sets"]["gpu"]
    made["metadata"]["labels"] = {"b": "2"}
    changed = await member(CLUSTERS, "Update", object=made)
    assert set(changed["spec"]["node_sets"]) == {"compute"}
    assert changed["metadata"]["labels"] == {"b": "2"}
    del made["spec"]["node_sets"]["compute"]
    made["spec"]["node_sets"] = {}
    failed = await member.refused(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")
    assert "spec.node_sets" in failed.violations


async def test_n11_a_negative_size_is_refused_and_zero_is_not(member: As) -> None:
    made = await member.cluster()
    for size, code in ((-1, "INVALID_ARGUMENT"), (0, "")):
        made["spec"]["node_sets"]["compute"]["size"] = size
        if code:
            failed = await member.refused(CLUSTERS, "Update", object=made)
            assert "spec.node_sets.compute.size" in failed.violations
        else:
            await member(CLUSTERS, "Update", object=made, update_mask="spec.node_sets")


async def test_n3_server_owned_metadata_written_back_is_ignored(member: As) -> None:
    made = await member.cluster()
    written = {**made, "metadata": {**made["metadata"], "creator": "mallory"}}
    written["metadata"] |= {
        "creation_timestamp": "2001-01-01T00:00:00Z",
        "version": 77,
        "generation": "9",
        "deletion_timestamp": "2001-01-01T00:00:00Z",
    }
    assert await member(CLUSTERS, "Update", object=written) == made


@pytest.mark.parametrize(
    "path, value",
    [
        ("metadata.name", "other"),
        ("metadata.tenant", "globex"),
        ("metadata.project", "other"),
        ("spec.template", {"id": "other-template"}),
        ("spec.template_parameters", {"motd": {"@type": samples.STRING, "value": "new"}}),
        ("spec.network", {"pod_cidr": "10.0.0.0/16"}),
        ("spec.node_sets.compute.host_type", {"name": "large"}),
    ],
)
async def test_what_cannot_change(member: As, operator: As, path: str, value: Any) -> None:
    if path == "spec.template":
        template = BY_KIND["ClusterTemplate"].fresh()
        made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
        value = {"id": made["id"]}
    made = await member.cluster()
    body: dict[str, Any] = {"id": made["id"]}
    inner = body
    *parents, last = path.split(".")
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = value
    for mask in (path, None):
        more = {"update_mask": mask} if mask else {}
        whole = body if mask else {**made, **_deep(made, body)}
        failed = await member.refused(CLUSTERS, "Update", object=whole, **more)
        assert failed.code == "INVALID_ARGUMENT"
        assert any(path.startswith(found) for found in failed.violations)


async def test_a_cluster_being_deleted_cannot_be_changed(member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    body = {"id": made["id"], "spec": {"node_sets": {"compute": {"size": 9}}}}
    failed = await member.refused(
        CLUSTERS, "Update", object=body, update_mask="spec.node_sets.compute.size"
    )
    assert failed.code == "FAILED_PRECONDITION"


async def test_a_dry_run_of_what_has_none_changes_nothing(
    environment: ApiEnvironment, door: Door
) -> None:
    member = As(environment, door, "member")
    made = await member.cluster()
    for rpc, body in (
        ("Update", {"object": {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}}),
        ("Delete", {"id": made["id"]}),
    ):
        with pytest.raises(Failed) as failed:
            await door.call(
                CLUSTERS, rpc, body, token=environment.token("member"), x_dry_run="true"
            )
        assert failed.value.code == "INVALID_ARGUMENT"
    assert await member(CLUSTERS, "Get", id=made["id"]) == made


async def test_many_at_once_without_a_lock_all_count(environment: ApiEnvironment) -> None:
    member = As(environment, environment.grpc, "member")
    made = await member.cluster()

    async def label(number: int) -> None:
        body = {"id": made["id"], "metadata": {"labels": {f"n{number}": "x"}}}
        await member(CLUSTERS, "Update", object=body, update_mask=f"metadata.labels.n{number}")

    await asyncio.gather(*(label(number) for number in range(6)))
    shown = await member(CLUSTERS, "Get", id=made["id"])
    assert len(shown["metadata"]["labels"]) == 6
    assert shown["metadata"]["version"] == 6


async def test_a_key_with_dots_is_masked_by_its_whole_name(member: As) -> None:
    made = await member.cluster()
    body = {"id": made["id"], "metadata": {"labels": {"app.example.com/part": "web"}}}
    changed = await member(
        CLUSTERS, "Update", object=body, update_mask="metadata.labels.app.example.com/part"
    )
    assert changed["metadata"]["labels"] == {"app.example.com/part": "web"}


async def test_a_patch_without_a_mask_changes_the_leaves_of_its_body(
    environment: ApiEnvironment,
) -> None:
    member = As(environment, environment.rest, "member")
    made = await member.cluster()
    changed = await member(
        CLUSTERS, "Update", object={"id": made["id"], "metadata": {"description": "new"}}
    )
    assert changed["metadata"]["description"] == "new"
    assert changed["spec"] == made["spec"]
    assert await member(CLUSTERS, "Update", object={"id": made["id"]}) == changed


def _finalized(body: dict[str, Any]) -> dict[str, Any]:
    body["metadata"]["finalizers"] = ["example.com/mine"]
    return body


def _deep(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _deep(old.get(key), value) for key, value in new.items()}}
