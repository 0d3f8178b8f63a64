"""What deleting means, and what stands in its way.

Numbers in names are defects of the contract's own service that we must not have.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.api import samples
from tests.api.doors import PRIVATE, PUBLIC, ApiEnvironment, Door, Failed
from tests.api.roles import BY_KIND, CLUSTERS, As, finish

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_n8_what_is_in_use_cannot_be_deleted(operator: As, member: As) -> None:
    template = BY_KIND["ClusterTemplate"].fresh()
    host = BY_KIND["HostType"].fresh()
    host_type = await operator(f"{PRIVATE}.HostTypes", "Create", object=host)
    template["node_sets"] = {"a": {"host_type": {"id": host_type["id"]}, "size": 1}}
    made = await operator(f"{PRIVATE}.ClusterTemplates", "Create", object=template)
    version = await operator(
        f"{PRIVATE}.ClusterVersions", "Create", object=BY_KIND["ClusterVersion"].fresh()
    )
    await member.cluster(template={"id": made["id"]}, version={"id": version["id"]})
    for service, id in (
        ("HostTypes", host_type["id"]),
        ("ClusterTemplates", made["id"]),
        ("ClusterVersions", version["id"]),
        ("Tenants", "acme"),
    ):
        failed = await operator.refused(f"{PRIVATE}.{service}", "Delete", id=id)
        assert failed.code == "FAILED_PRECONDITION", service


async def test_a_hub_with_clusters_stays(operator: As, member: As) -> None:
    hub = await operator(f"{PRIVATE}.Hubs", "Create", object=BY_KIND["Hub"].fresh())
    made = await member.cluster()
    await operator(
        f"{PRIVATE}.Clusters",
        "Update",
        object={"id": made["id"], "status": {"hub": hub["id"]}},
        update_mask="status.hub",
    )
    failed = await operator.refused(f"{PRIVATE}.Hubs", "Delete", id=hub["id"])
    assert failed.code == "FAILED_PRECONDITION"
    await finish(operator, made["id"])
    await operator(f"{PRIVATE}.Hubs", "Delete", id=hub["id"])


async def test_n14_built_in_tenants_stay(operator: As) -> None:
    for name in ("shared", "system"):
        assert await operator(f"{PRIVATE}.Tenants", "Get", id=name)
        failed = await operator.refused(f"{PRIVATE}.Tenants", "Delete", id=name)
        assert failed.code == "FAILED_PRECONDITION"


async def test_n16_a_project_in_use_stays(
    environment: ApiEnvironment, door: Door, operator: As
) -> None:
    admin = As(environment, door, "admin")
    name = f"dev-{door.name}"
    project = await admin(f"{PUBLIC}.Projects", "Create", object={"metadata": {"name": name}})
    child = await admin(
        f"{PUBLIC}.Projects", "Create", object={"metadata": {"name": f"{name}.web"}}
    )
    assert child["metadata"]["project"] == name
    failed = await admin.refused(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    assert failed.code == "FAILED_PRECONDITION"
    await admin(f"{PUBLIC}.Projects", "Delete", id=child["id"])
    made = await admin(
        CLUSTERS,
        "Create",
        object={
            "metadata": {"name": "one", "project": name},
            "spec": {"template": {"name": "ocp"}},
        },
    )
    failed = await admin.refused(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    assert failed.code == "FAILED_PRECONDITION"
    await finish(operator, made["id"])
    # An operator's hub in the project does not keep it: the tenant would learn of the hub.
    hub = BY_KIND["Hub"].fresh()
    hub["metadata"] = {**hub.get("metadata", {}), "tenant": "acme", "project": name}
    await operator(f"{PRIVATE}.Hubs", "Create", object=hub)
    await admin(f"{PUBLIC}.Projects", "Delete", id=project["id"])
    gone = await admin.refused(
        CLUSTERS,
        "Create",
        object={
            "metadata": {"name": "two", "project": name},
            "spec": {"template": {"name": "ocp"}},
        },
    )
    assert "metadata.project" in gone.violations


async def test_n24_a_tenant_with_a_domain_can_be_deleted_and_the_domain_is_free(
    operator: As,
) -> None:
    one, two = (BY_KIND["Tenant"].fresh() for _ in range(2))
    two["spec"]["domains"] = one["spec"]["domains"]
    made = await operator(f"{PRIVATE}.Tenants", "Create", object=one)
    failed = await operator.refused(f"{PRIVATE}.Tenants", "Create", object=two)
    assert failed.code == "ALREADY_EXISTS"
    await operator(f"{PRIVATE}.Tenants", "Delete", id=made["id"])
    await operator(f"{PRIVATE}.Tenants", "Create", object=two)


async def test_the_last_finalizer_ends_a_deleted_object(operator: As, member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    await finish(operator, made["id"])
    assert (await member.refused(CLUSTERS, "Get", id=made["id"])).code == "NOT_FOUND"
    await member(
        CLUSTERS, "Create", object=samples.cluster(made["metadata"]["name"])
    )  # the name is free again


async def test_the_id_of_a_cluster_is_never_given_twice(operator: As) -> None:
    """What its end left outside is found by that id, and would be taken from the second one."""
    first = BY_KIND["Cluster"].fresh()
    chosen = {"id": first["metadata"]["name"]}
    made = await operator(f"{PRIVATE}.Clusters", "Create", object=first | chosen)
    await finish(operator, made["id"])
    again = BY_KIND["Cluster"].fresh() | chosen
    failed = await operator.refused(f"{PRIVATE}.Clusters", "Create", object=again)
    assert failed.code == "ALREADY_EXISTS"


async def test_a_deleted_name_is_taken_until_the_object_is_gone(member: As) -> None:
    made = await member.cluster()
    await member(CLUSTERS, "Delete", id=made["id"])
    failed = await member.refused(
        CLUSTERS, "Create", object=samples.cluster(made["metadata"]["name"])
    )
    assert failed.code == "ALREADY_EXISTS"


async def test_of_a_create_and_a_delete_that_meet_one_gives_way(
    environment: ApiEnvironment,
) -> None:
    """Nothing ever refers to what is gone."""
    operator, member = (
        As(environment, environment.grpc, "operator"),
        As(environment, environment.grpc, "member"),
    )
    for _ in range(10):
        template = await operator(
            f"{PRIVATE}.ClusterTemplates", "Create", object=BY_KIND["ClusterTemplate"].fresh()
        )
        made, gone = await asyncio.gather(
            member.cluster(template={"id": template["id"]}),
            operator(f"{PRIVATE}.ClusterTemplates", "Delete", id=template["id"]),
            return_exceptions=True,
        )
        assert isinstance(made, Failed) != isinstance(gone, Failed)


async def test_the_name_of_a_tenant_is_never_given_again(operator: As) -> None:
    """Tokens and receipts outlive a tenant: its successor must not inherit them."""
    tenant = BY_KIND["Tenant"].fresh()
    made = await operator(f"{PRIVATE}.Tenants", "Create", object=tenant)
    await operator(f"{PRIVATE}.Tenants", "Delete", id=made["id"])
    failed = await operator.refused(f"{PRIVATE}.Tenants", "Create", object=tenant)
    assert failed.code == "ALREADY_EXISTS"
    assert "choose another" in failed.message
